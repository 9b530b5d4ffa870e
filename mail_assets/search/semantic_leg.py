"""The semantic leg: messages ranked by their chunk that is nearest to the query."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import psycopg

from mail_assets.month import ListMonth
from mail_assets.search.candidates import Candidate, MessageCopy
from mail_assets.search.filters import MessageFilter
from mail_assets.search.index_filters import MAX_VALUES
from mail_assets.vectors.filters import Filter
from mail_assets.vectors.index import Match

#: Chunks that hybrid asks for, and that are enough where filters are applied after the index:
#: 100 to 1,000 rank no better (docs/search.md), and 100 take half as long again.
HYBRID_DEPTH = 50
#: Chunks that the semantic mode asks for; more for a page that ends beyond a third of them.
SEMANTIC_DEPTH = 100


class VectorSearch(Protocol):
    """A vector index that is searched by text."""

    def warm_up(self) -> None:
        """Open what `nearest` needs, which may take seconds."""

    def max_matches(self) -> int:
        """Return how many matches the index returns at most."""

    def nearest(self, text: str, top_k: int, where: Filter | None) -> list[Match]:
        """Return the vectors nearest to a text, nearest first."""


@dataclass(frozen=True)
class SemanticLeg:
    """Ranks messages by meaning, over one connection to Postgres and a vector index."""

    connection: psycopg.Connection
    vectors: VectorSearch

    def prefetch(self, text: str, filters: MessageFilter) -> list[Match] | None:
        """Return the matches that `rank` starts with; asks the vector index alone.

        None where `rank` has to ask Postgres first.
        """
        if not filters.index_checks_all:
            return None
        top_k = min(HYBRID_DEPTH, self.vectors.max_matches())
        return self.vectors.nearest(text, top_k, filters.index_filter)

    def rank(
        self,
        text: str,
        filters: MessageFilter,
        depth: int = HYBRID_DEPTH,
        prefetched: list[Match] | None = None,
    ) -> list[Candidate]:
        """Return messages by their nearest chunk; the score is the cosine similarity.

        Filters that the index does not know are applied after it. Where few messages pass them,
        the index is restricted to these, and nothing is missed; else it is asked for `depth`
        chunks, and for more until enough pass or it returns no more. A vector whose chunk was
        replaced, or whose message changed and no longer passes, is left out: the bucket follows
        the tables with a delay.
        """
        if not filters.index_checks_all:
            passing = self._read_few_passing(filters)
            if passing is not None:
                return self._rank_only(text, filters, passing)
        max_matches = self.vectors.max_matches()
        top_k, where = min(depth, max_matches), filters.index_filter
        matches = prefetched
        while True:
            if matches is None:
                matches = self.vectors.nearest(text, top_k, where)
            found = self._read_messages(matches, filters)
            kept = sum(len(one.chunks) for one in found)
            exhausted = len(matches) < top_k or top_k == max_matches
            if filters.index_checks_all or kept >= depth or exhausted:
                return found
            top_k, matches = min(4 * top_k, max_matches), None

    def _rank_only(
        self, text: str, filters: MessageFilter, message_ids: list[str]
    ) -> list[Candidate]:
        """Rank the few messages that pass."""
        if not message_ids:
            return []
        filters = filters.limit_index_to(message_ids)
        top_k = self.vectors.max_matches()
        matches = self.vectors.nearest(text, top_k, filters.index_filter)
        return self._read_messages(matches, filters)

    def _read_few_passing(self, filters: MessageFilter) -> list[str] | None:
        """Return the ids that pass, None where they are more than a filter of the index takes."""
        parameters = {**filters.parameters, "most": MAX_VALUES + 1}
        rows = self.connection.execute(filters.statement("passing"), parameters).fetchall()
        return None if len(rows) > MAX_VALUES else [message_id for (message_id,) in rows]

    def _read_messages(self, matches: Sequence[Match], filters: MessageFilter) -> list[Candidate]:
        """Return the messages of the matches that pass, each in the copy with the nearest chunk."""
        parameters = {**filters.parameters, "keys": [match.key for match in matches]}
        rows = self.connection.execute(filters.statement("chunks"), parameters).fetchall()
        known = {row[0]: row[1:] for row in rows}
        found: dict[str, Candidate] = {}
        for match in matches:
            if match.key not in known:
                continue
            message_id, list_name, month, variant, thread_id = known[match.key]
            copy = MessageCopy(ListMonth(list_name, month), variant)
            similarity = round(1.0 - match.distance, 6)
            candidate = found.setdefault(
                message_id, Candidate(message_id, copy, thread_id, similarity)
            )
            if candidate.copy == copy:
                candidate.chunks[match.key] = round(match.distance, 6)
        return [*found.values()]
