"""From a request to ranked candidates: which legs search, and how their rankings are combined."""

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from types import MappingProxyType
from typing import Any, NamedTuple

import psycopg

from mail_assets.search.ask_indexes import Depths, Legs, Rankings
from mail_assets.search.candidates import (
    Candidate,
    Found,
    append_unknown,
    read_candidates,
    read_stored,
)
from mail_assets.search.filters import MessageFilter
from mail_assets.search.fulltext import (
    DEEPER,
    FULLTEXT_DEPTH,
    HYBRID_MESSAGES,
    MESSAGES_OF_A_HIT,
    PAGE_DEPTH,
    list_newest,
    max_depth,
)
from mail_assets.search.fusion import add_thread_messages, fuse, rank_single_leg, weigh_legs
from mail_assets.search.language.request import Mode, Request
from mail_assets.search.live_index import LookedUp, VectorSearch
from mail_assets.search.query import Query, WeighedTerm
from mail_assets.search.semantic import HYBRID_CHUNKS, SEMANTIC_DEPTH, search_vectors
from mail_assets.text.letters import pair_letters

#: Chunks that are asked for each hit up to the last of a page: of some messages several are found.
CHUNKS_OF_A_HIT = 3
#: Candidates beyond a page, for those that are folded into another hit.
SPARE_CANDIDATES = 5


class Retrieval(NamedTuple):
    """Candidates, best first, with the query and terms that found them, and what to explain.

    `looked_back_to`: messages before that day were not looked at. `looked_up` is what the
    search began with, None where an id was pasted. `asked` is how many copies of the newest were
    asked for, None where to ask for more finds no more. `first`: so many of the candidates every
    page has, however deep it asks, None for all.
    """

    candidates: list[Candidate]
    query: Query | None = None
    terms: Sequence[WeighedTerm] = ()
    explanation: Mapping[str, Any] = MappingProxyType({})
    looked_back_to: dt.date | None = None
    looked_up: LookedUp | None = None
    asked: int | None = None
    first: int | None = None


class Retriever:
    """Finds candidates over one connection."""

    def __init__(self, connection: psycopg.Connection) -> None:
        self.connection = connection
        self._legs = Legs(connection)

    def find_pasted(self, message_ids: Iterable[str], filters: MessageFilter) -> Retrieval | None:
        """Return the first message of some ids; None where none is a stored one's."""
        for message_id in message_ids:
            if copies := self._read("by_id", filters, message_id=message_id):
                return Retrieval([copies[0]._replace(score=1.0)])
        return None

    def retrieve(self, request: Request, looked_up: LookedUp) -> Retrieval:
        """Return everything that a request finds, best first, or newest first if nothing ranks.

        What a leg says of a message does not depend on how many are asked for, so one leg alone is
        asked for more where a later page wants them.

        Raises:
            VectorError, WordsError: an index is missing or fails.
        """
        return self._retrieve(request, looked_up)._replace(looked_up=looked_up)

    def _retrieve(self, request: Request, looked_up: LookedUp) -> Retrieval:
        last = request.offset + request.limit
        if not looked_up.query.ranks:
            return self._list_newest(looked_up, last + SPARE_CANDIDATES)
        if request.mode == Mode.hybrid:
            return self._retrieve_hybrid(looked_up)
        if request.mode == Mode.fulltext:
            depth = FULLTEXT_DEPTH if request.facets else PAGE_DEPTH
            deepest = max_depth(looked_up.query)
            depth = min(max(depth, MESSAGES_OF_A_HIT * last), deepest)
            return self._retrieve_fulltext(looked_up, depth)
        return self._retrieve_semantic(looked_up, last)

    def retrieve_more(self, found: Retrieval) -> Retrieval | None:
        """Return more of a list by date, from its begin; None where there is no more.

        Raises:
            WordsError: the index of words is missing or fails.
        """
        if found.asked is None or found.looked_up is None:
            return None
        return self._list_newest(found.looked_up, DEEPER * found.asked)

    def retrieve_similar(
        self, index: VectorSearch, message_id: str, texts: Iterable[str], filters: MessageFilter
    ) -> Retrieval:
        """Return the messages nearest to any of the texts of a message, without that one."""
        best: dict[str, Candidate] = {}
        where = filters.vector_filter(index.max_constraints()).where
        for text in texts:
            found = Found(by_meaning=search_vectors(index, text, where, from_mail=True))
            for one in read_stored(self.connection, filters, found).by_meaning:
                known = best.setdefault(one.message_id, one)
                if one.score > known.score:
                    best[one.message_id] = one
        best.pop(message_id, None)
        ranked = sorted(best.values(), key=lambda one: (-one.score, one.message_id))
        return Retrieval(rank_single_leg("semantic", ranked))

    def rank_legs(self, looked_up: LookedUp) -> Rankings:
        """Return what both legs rank, and the messages of the best threads."""
        return self._legs.rank(looked_up, Depths(HYBRID_MESSAGES, HYBRID_CHUNKS), threads=True)

    def _list_newest(self, looked_up: LookedUp, most: int) -> Retrieval:
        newest = list_newest(self.connection, looked_up, most)
        return Retrieval(
            newest.candidates,
            looked_up.query,
            looked_back_to=newest.looked_back_to,
            looked_up=looked_up,
            asked=None if newest.is_all else most,
        )

    def _retrieve_fulltext(self, looked_up: LookedUp, depth: int) -> Retrieval:
        ranked = self._legs.rank(looked_up, Depths(words=depth))
        terms = ranked.fulltext.terms
        explanation = {"terms": _explain_terms(terms), "ms": ranked.milliseconds}
        candidates = rank_single_leg("fulltext", ranked.fulltext.candidates)
        return Retrieval(candidates, looked_up.query, terms, explanation, first=PAGE_DEPTH)

    def _retrieve_semantic(self, looked_up: LookedUp, last: int) -> Retrieval:
        """Return the candidates by meaning, enough for a page that ends at `last`.

        An approximate index that is asked deeper finds others too that are near: they follow what
        was found before, so that pages of any size follow one another. Where nothing was, no page
        has anything.
        """
        depth = SEMANTIC_DEPTH
        ranked = self._legs.rank(looked_up, Depths(vectors=depth))
        found, milliseconds = ranked.semantic, ranked.milliseconds
        first = len(found)
        while found and depth < CHUNKS_OF_A_HIT * last:
            depth *= DEEPER
            ranked = self._legs.rank(looked_up, Depths(vectors=depth))
            found = append_unknown(found, ranked.semantic)
            spent = ranked.milliseconds
            milliseconds = {part: round(ms + spent[part], 1) for part, ms in milliseconds.items()}
        candidates = rank_single_leg("semantic", found)
        return Retrieval(candidates, looked_up.query, (), {"ms": milliseconds}, first=first)

    def _retrieve_hybrid(self, looked_up: LookedUp) -> Retrieval:
        ranked = self.rank_legs(looked_up)
        fulltext, semantic = ranked.fulltext, ranked.semantic
        query = looked_up.query
        names = len(query.parsed.identifiers)
        weights = weigh_legs(fulltext.covered, len(pair_letters(query.text).split()), names)
        fused = fuse(semantic, fulltext.candidates, weights)
        explanation = {
            "mix": asdict(weights),
            "covered": fulltext.covered,
            "terms": _explain_terms(fulltext.terms),
            "semantic": len(semantic),
            "fulltext": len(fulltext.candidates),
            "members": len(ranked.members),
            "ms": ranked.milliseconds,
        }
        candidates = add_thread_messages(fused, ranked.members)
        return Retrieval(candidates, query, fulltext.terms, explanation)

    def _read(self, name: str, filters: MessageFilter, **parameters: object) -> list[Candidate]:
        return read_candidates(self.connection, filters, name, **parameters)


def _explain_terms(terms: Iterable[WeighedTerm]) -> list[dict[str, Any]]:
    return [term.explain() for term in terms]
