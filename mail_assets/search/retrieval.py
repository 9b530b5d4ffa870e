"""From a request to ranked candidates: which legs search, and how their rankings are combined."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

import psycopg

from mail_assets.search.candidates import Candidate, read_candidates
from mail_assets.search.filters import MessageFilter
from mail_assets.search.fulltext_leg import rank_fulltext
from mail_assets.search.fusion import (
    MAX_THREAD_MESSAGES,
    add_thread_messages,
    fuse,
    rank_single_leg,
    select_threads,
    weigh_legs,
)
from mail_assets.search.query import Query, read_query
from mail_assets.search.request import Mode
from mail_assets.search.semantic_leg import SEMANTIC_DEPTH, SemanticLeg
from mail_assets.search.syntax import ParsedRequest
from mail_assets.search.terms import Term

#: Candidates beyond a page, for those that are folded into another hit.
SPARE_CANDIDATES = 5

T = TypeVar("T")


class Retrieval(NamedTuple):
    """Candidates, best first, with the query and terms that found them, and what to explain."""

    candidates: list[Candidate]
    query: Query | None = None
    terms: Sequence[Term] = ()
    explanation: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True)
class Retriever:
    """Finds candidates; `languages` maps each list to its text search configuration."""

    connection: psycopg.Connection
    semantic_leg: SemanticLeg
    languages: Mapping[str, str]

    def retrieve(self, parsed: ParsedRequest, filters: MessageFilter) -> Retrieval:
        """Return everything that a request finds, best first, or newest first if nothing ranks."""
        request = parsed.request
        last = request.offset + request.limit
        for message_id in parsed.message_ids:
            if copies := self._read("by_id", filters, message_id=message_id):
                return Retrieval([replace(copies[0], score=1.0)])
        query = read_query(self.connection, parsed, self.languages, filters.lists)
        filters = filters.require_words(query.by_language)
        if not query.ranks:
            found = self._read("newest", filters, most=last + SPARE_CANDIDATES)
            return Retrieval(found, query)
        if request.mode == Mode.hybrid:
            return self._retrieve_hybrid(query, filters)
        if request.mode == Mode.fulltext:
            return self._retrieve_fulltext(query, filters)
        # Distances do not depend on top_k: a later page may request more.
        return self._retrieve_semantic(query, filters, max(SEMANTIC_DEPTH, 3 * last))

    def retrieve_similar(
        self, message_id: str, texts: Iterable[str], filters: MessageFilter
    ) -> Retrieval:
        """Return the messages nearest to any of the texts of a message, without that one."""
        best: dict[str, Candidate] = {}
        for text in texts:
            for one in self.semantic_leg.rank(text, filters):
                known = best.setdefault(one.message_id, one)
                if one.score > known.score:
                    best[one.message_id] = one
        best.pop(message_id, None)
        ranked = sorted(best.values(), key=lambda one: (-one.score, one.message_id))
        return Retrieval(rank_single_leg("semantic", ranked))

    def _retrieve_fulltext(self, query: Query, filters: MessageFilter) -> Retrieval:
        ranking = rank_fulltext(self.connection, query, filters)
        candidates = rank_single_leg("fulltext", ranking.candidates)
        return Retrieval(candidates, query, ranking.terms, {"terms": _explain_terms(ranking.terms)})

    def _retrieve_semantic(self, query: Query, filters: MessageFilter, depth: int) -> Retrieval:
        found = self.semantic_leg.rank(query.text, filters, depth)
        return Retrieval(rank_single_leg("semantic", found), query)

    def _retrieve_hybrid(self, query: Query, filters: MessageFilter) -> Retrieval:
        leg, text = self.semantic_leg, query.text
        with ThreadPoolExecutor(1) as pool:
            # The model and the index work while Postgres does; the connection stays here.
            ahead = pool.submit(_timed, lambda: leg.prefetch(text, filters))
            fulltext, fulltext_ms = _timed(lambda: rank_fulltext(self.connection, query, filters))
            prefetched, nearest_ms = ahead.result()
        semantic, chunks_ms = _timed(lambda: leg.rank(text, filters, prefetched=prefetched))
        weights = weigh_legs(fulltext.covered, len(text.split()))
        fused = fuse(semantic, fulltext.candidates, weights)
        threads = {"threads": select_threads(fused), "most": MAX_THREAD_MESSAGES}
        members, members_ms = _timed(lambda: self._read("members", filters, **threads))
        explanation = {
            "mix": asdict(weights),
            "covered": fulltext.covered,
            "terms": _explain_terms(fulltext.terms),
            "semantic": len(semantic),
            "fulltext": len(fulltext.candidates),
            "members": len(members),
            "ms": {
                "nearest": nearest_ms,
                "chunks": chunks_ms,
                "fulltext": fulltext_ms,
                "members": members_ms,
            },
        }
        candidates = add_thread_messages(fused, members)
        return Retrieval(candidates, query, fulltext.terms, explanation)

    def _read(self, name: str, filters: MessageFilter, **parameters: object) -> list[Candidate]:
        return read_candidates(self.connection, filters, name, **parameters)


def _explain_terms(terms: Iterable[Term]) -> list[dict[str, Any]]:
    return [asdict(term) for term in terms]


def _timed(work: Callable[[], T]) -> tuple[T, float]:
    """Return what the work returns, and its time in milliseconds."""
    began = time.perf_counter()
    return work(), round((time.perf_counter() - began) * 1000, 1)
