"""Both legs of a search: the two indexes asked beside each other, then PostgreSQL once.

Where a filter is applied after an index and too few pass, that index is asked for more.
"""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

import psycopg

from mail_assets.search.candidates import Candidate
from mail_assets.search.fulltext_leg import (
    DEEPER,
    ENOUGH,
    FulltextRanking,
    LanguageTerms,
    find_required,
    max_depth,
    measure_coverage,
    search_words,
    weigh_query,
)
from mail_assets.search.lazy_lane import rerank
from mail_assets.search.look_up import LookedUp
from mail_assets.search.semantic_leg import MAX_NEAREST, search_vectors
from mail_assets.search.stored import Found, Stored, WordHit, read_stored
from mail_assets.vectors.index import Match

#: Messages with the words that a query requires, so that the vector index is asked about these
#: alone: it takes 14 microseconds for each, three times.
FEW_REQUIRED = 500

T = TypeVar("T")


class Depths(NamedTuple):
    """Copies of messages by words and chunks by meaning that are wanted; a leg with 0 rests."""

    words: int = 0
    vectors: int = 0


class Rankings(NamedTuple):
    """What each leg ranks, the other messages of the best threads, and milliseconds by part."""

    fulltext: FulltextRanking
    semantic: list[Candidate]
    members: list[Candidate]
    milliseconds: dict[str, float]


class _Nearest(NamedTuple):
    """Chunks near a query; `passing` are the messages that the index was asked about."""

    matches: list[Match]
    passing: Sequence[str] | None


@dataclass(frozen=True)
class Legs:
    """The legs over one connection; only the thread of the caller uses it.

    The thread that asks the vector index is kept: to start one takes as long as a query of it.
    """

    connection: psycopg.Connection
    _ahead: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1))

    def rank(self, looked_up: LookedUp, depths: Depths, *, threads: bool = False) -> Rankings:
        """Ask the indexes and return what is stored of it and passes the filters.

        Raises:
            VectorError, WordsError: an index is missing or fails.
        """
        languages = weigh_query(looked_up.query, looked_up.frequencies) if depths.words else []
        # Both release the interpreter's lock; the helper touches no connection.
        ahead = self._ahead.submit(timed, lambda: self._nearest(looked_up, depths.vectors))
        hits, words_ms = timed(lambda: self._words(looked_up, languages, depths.words))
        nearest, nearest_ms = ahead.result()
        lexemes = sorted({term.lexeme for one in languages for term in one.terms})
        found = Found(hits, nearest.matches)
        stored, stored_ms = timed(
            lambda: read_stored(self.connection, looked_up.filters, found, lexemes, threads=threads)
        )
        by_words = self._deepen_words(looked_up, languages, hits, stored.by_words, depths.words)
        by_meaning = self._deepen_nearest(looked_up, nearest, stored.by_meaning, depths.vectors)
        ranked, rerank_ms = timed(lambda: self._rerank(looked_up, by_meaning, by_words))
        return Rankings(
            FulltextRanking(
                by_words,
                measure_coverage(languages, stored.lexemes),
                [term for one in languages for term in one.terms],
            ),
            ranked,
            stored.members,
            {"nearest": nearest_ms, "words": words_ms, "stored": stored_ms, "rerank": rerank_ms},
        )

    def _words(
        self, looked_up: LookedUp, languages: Sequence[LanguageTerms], depth: int
    ) -> list[WordHit]:
        if not depth:
            return []
        return search_words(looked_up, languages, depth)

    def _nearest(self, looked_up: LookedUp, depth: int) -> _Nearest:
        index, filters, passing = looked_up.vectors, looked_up.filters, looked_up.passing
        if index is None or not depth:
            return _Nearest([], None)
        most = index.max_values()
        if passing is None and not filters.index_checks_all:
            required = find_required(looked_up, min(FEW_REQUIRED, most))
            passing = None if required is None else tuple(required)
        if passing is not None and len(passing) > most:
            passing = None
        if passing is None and not filters.index_checks_all:
            depth *= DEEPER
        text = looked_up.query.text
        return _Nearest(search_vectors(index, text, filters, passing, depth), passing)

    def _deepen_words(
        self,
        looked_up: LookedUp,
        languages: Sequence[LanguageTerms],
        hits: Sequence[WordHit],
        kept: list[Candidate],
        depth: int,
    ) -> list[Candidate]:
        """Return what passes, with more of it where too few did and the index has more."""
        exact = looked_up.filters.words_check_all
        most = max_depth(looked_up.query)
        while not exact and len(kept) < ENOUGH and 0 < depth <= len(hits) and depth < most:
            depth = min(DEEPER * depth, most)
            hits = self._words(looked_up, languages, depth)
            kept = self._stored(looked_up, Found(by_words=hits)).by_words
        return kept

    def _deepen_nearest(
        self, looked_up: LookedUp, nearest: _Nearest, kept: list[Candidate], depth: int
    ) -> list[Candidate]:
        index, filters = looked_up.vectors, looked_up.filters
        if index is None or filters.index_checks_all or nearest.passing is not None:
            return kept
        text, matches = looked_up.query.text, nearest.matches
        most = min(MAX_NEAREST, max_depth(looked_up.query), index.max_matches())
        asked = min(DEEPER * depth, index.max_matches())
        while (
            sum(len(one.chunks) for one in kept) < depth and asked <= len(matches) and asked < most
        ):
            asked = min(DEEPER * asked, most)
            matches = search_vectors(index, text, filters, None, asked)
            kept = self._stored(looked_up, Found(by_meaning=matches)).by_meaning
        return kept

    def _rerank(
        self, looked_up: LookedUp, by_meaning: list[Candidate], by_words: Sequence[Candidate]
    ) -> list[Candidate]:
        """Return the candidates by meaning, ranked by the model where the index is a static one."""
        model = looked_up.vectors.reranker() if looked_up.vectors else None
        if model is None:
            return by_meaning
        return rerank(self.connection, model, looked_up.query.text, by_meaning, by_words)

    def _stored(self, looked_up: LookedUp, found: Found) -> Stored:
        return read_stored(self.connection, looked_up.filters, found)


def timed(work: Callable[[], T]) -> tuple[T, float]:
    """Return what the work returns, and its time in milliseconds."""
    began = time.perf_counter()
    return work(), round((time.perf_counter() - began) * 1000, 1)
