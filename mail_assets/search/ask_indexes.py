"""Both legs of a search: the two indexes asked, then PostgreSQL once; again where too few pass.

[index_answers] The indexes of words and of vectors, asked beside each other, and how deep.

Where a filter is applied behind an index and too few pass, the index is asked deeper, at once as
deep as it takes by the share that passes.
"""

import math
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple, TypeVar

import psycopg

from mail_assets.indexes.encoder_probe import Encoder
from mail_assets.search.candidates import Candidate, Found, FoundOne, Stored, WordHit, read_stored
from mail_assets.search.fulltext import (
    DEEPER,
    MAX_DEPTH,
    FulltextRanking,
    LanguageTerms,
    enough,
    find_required,
    max_depth,
    measure_coverage,
    search_words,
    weigh_query,
)
from mail_assets.search.live_index import LookedUp
from mail_assets.search.semantic import MAX_NEAREST, Vector, rerank, search_vectors
from mail_assets.vectors.index import Match

#: Messages with the words that a query requires, so that the vector index is asked about these
#: alone, and misses none.
FEW_REQUIRED = 500
#: What an index is asked for of what it takes if the share that passes stays the same: it falls.
SPARE = 2

T = TypeVar("T")


class Depths(NamedTuple):
    """Copies of messages by words and chunks by meaning that are wanted; a leg with 0 rests."""

    words: int = 0
    vectors: int = 0


class Nearest(NamedTuple):
    """The chunks nearest to a query, and how many were asked for.

    `passing` are the ids of the messages that the index was asked about, None for any.
    """

    matches: Sequence[Match] = ()
    asked: int = 0
    passing: Sequence[str] | None = None


class Answer(NamedTuple):
    """What the indexes found, how many messages by words were asked for, and milliseconds."""

    by_words: Sequence[WordHit] = ()
    asked: int = 0
    nearest: Nearest = Nearest()
    words_ms: float = 0.0
    nearest_ms: float = 0.0

    @property
    def found(self) -> Found:
        """What is to be read."""
        return Found(self.by_words, self.nearest.matches)


def ask_indexes(
    ahead: ThreadPoolExecutor,
    looked_up: LookedUp,
    languages: Sequence[LanguageTerms],
    depths: Depths,
    before: Answer,
) -> Answer:
    """Return what the indexes find; of one that was asked as deep `before`, that.

    The vector index is asked by a thread of `ahead`, which touches no connection.

    Raises:
        VectorError, WordsError: an index is missing or fails.
    """

    def find_words() -> Sequence[WordHit]:
        if depths.words == before.asked:
            return before.by_words
        return search_words(looked_up, languages, depths.words)

    # Both release the interpreter's lock.
    asked = ahead.submit(timed, lambda: _find_nearest(looked_up, depths.vectors, before.nearest))
    hits, words_ms = timed(find_words)
    nearest, nearest_ms = asked.result()
    return Answer(
        hits,
        depths.words,
        nearest,
        round(before.words_ms + words_ms, 1),
        round(before.nearest_ms + nearest_ms, 1),
    )


def choose_first_depths(looked_up: LookedUp, wanted: Depths) -> Depths:
    """Return how deep the index of words is asked first: deeper where a known share passes."""
    share = _known_share(looked_up)
    if not wanted.words or share is None:
        return wanted
    words = widen(enough(wanted.words), share, MAX_DEPTH)
    return wanted._replace(words=max(wanted.words, words))


def widen(wanted: int, share: float | None, most: int) -> int:
    """Return how many an index is asked for first, where a filter behind it passes a share."""
    return DEEPER * wanted if share is None else min(most, math.ceil(SPARE * wanted / share))


def choose_depths(
    looked_up: LookedUp, wanted: Depths, answer: Answer, stored: Stored
) -> Depths | None:
    """Return how deep the indexes are asked next, None where enough passes or there is no more."""
    query, nearest = looked_up.query, answer.nearest
    words = vectors = 0
    if wanted.words and not looked_up.filters.word_filter.complete:
        found, passed = len(answer.by_words), len(stored.by_words)
        words = deepen(answer.asked, found, passed, enough(wanted.words), max_depth(query))
    # A phrase with stop words is looked for in the text of each message, and by words is enough.
    is_told = looked_up.vector_filter.complete or (
        nearest.passing is not None and looked_up.filters.ids_say_all
    )
    if looked_up.vectors and not is_told and not (query.patterned and wanted.words):
        most = min(MAX_NEAREST, max_depth(query), looked_up.vectors.max_matches())
        chunks = sum(len(one.chunks) for one in stored.by_meaning)
        vectors = deepen(nearest.asked, len(nearest.matches), chunks, wanted.vectors, most)
    return Depths(words or answer.asked, vectors or nearest.asked) if words or vectors else None


def deepen(asked: int, found: int, passed: int, wanted: int, most: int) -> int:
    """Return how many an index is asked for next, 0 where enough passed or it has no more."""
    if passed >= wanted or found < asked or asked >= most:
        return 0
    needed = SPARE * wanted * asked // passed if passed else most
    return min(most, max(DEEPER * wanted, needed))


def timed(work: Callable[[], T]) -> tuple[T, float]:
    """Return what the work returns, and its time in milliseconds."""
    began = time.perf_counter()
    return work(), round((time.perf_counter() - began) * 1000, 1)


def _find_nearest(looked_up: LookedUp, depth: int, before: Nearest) -> Nearest:
    index, (where, complete) = looked_up.vectors, looked_up.vector_filter
    if index is None or depth == before.asked:
        return before
    passing = before.passing
    if not before.asked:
        passing = _find_few_passing(looked_up, index.max_constraints())
        if passing is None and not complete:
            depth = widen(depth, _known_share(looked_up), MAX_NEAREST)
    depth = min(depth, index.max_matches())
    text = looked_up.query.text
    return Nearest(search_vectors(index, text, where, passing, depth), depth, passing)


def _known_share(looked_up: LookedUp) -> float | None:
    """Return which share of all messages passes, None where the words of a message decide too."""
    query = looked_up.query
    decide = (one.words.required or one.words.excluded for one in query.by_language)
    return None if query.patterned or any(decide) else looked_up.share


def _find_few_passing(looked_up: LookedUp, most: int) -> Sequence[str] | None:
    """Return the ids of the messages that pass, where they are as few as the index takes."""
    passing = looked_up.passing
    if passing is None and not looked_up.vector_filter.complete:
        passing = find_required(looked_up, min(FEW_REQUIRED, most))
    return passing if passing is None or len(passing) <= most else None


class Rankings(NamedTuple):
    """What each leg ranks, the other messages of the best threads, and milliseconds by part."""

    fulltext: FulltextRanking
    semantic: list[Candidate]
    members: list[Candidate]
    milliseconds: dict[str, float]


@dataclass(frozen=True)
class Legs:
    """The legs over one connection; only the thread of the caller uses it.

    The thread that asks the vector index, and encodes a query for the lazy lane, is kept: a busy
    machine takes milliseconds to start one.
    """

    connection: psycopg.Connection
    _ahead: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1))

    def rank(self, looked_up: LookedUp, depths: Depths, *, threads: bool = False) -> Rankings:
        """Ask the indexes and return what is stored of it and passes the filters.

        Raises:
            VectorError, WordsError: an index is missing or fails.
        """
        languages = weigh_query(looked_up.query, looked_up.frequencies) if depths.words else []
        lexemes = sorted({term.lexeme for one in languages for term in one.terms})
        read = partial(
            read_stored, self.connection, looked_up.filters, lexemes=lexemes, threads=threads
        )
        answer, stored, stored_ms = Answer(), Stored([], [], [], frozenset()), 0.0
        asked: Depths | None = choose_first_depths(looked_up, depths)
        refused: set[FoundOne] = set()
        model = looked_up.vectors.reranker() if looked_up.vectors else None
        query: Future[Vector] | None = None
        while asked is not None:
            answer = ask_indexes(self._ahead, looked_up, languages, asked, answer)
            if model and query is None:  # encoded while PostgreSQL reads
                query = self._ahead.submit(model.encode_query, looked_up.query.text)
            found = answer.found._replace(refused=refused)
            stored, read_ms = timed(partial(read, found))
            stored_ms = round(stored_ms + read_ms, 1)
            asked = choose_depths(looked_up, depths, answer, stored)
            if asked is not None:
                refused = stored.find_refused(found)
        ranked, rerank_ms = stored.by_meaning, 0.0
        if model and query:
            ranked, rerank_ms = timed(partial(self._rerank, model.encoder, query, stored))
        spent = {"nearest": answer.nearest_ms, "words": answer.words_ms, "stored": stored_ms}
        return Rankings(
            FulltextRanking(
                stored.by_words,
                measure_coverage(languages, stored.lexemes),
                [term for one in languages for term in one.terms],
            ),
            ranked,
            stored.members,
            {**spent, "rerank": rerank_ms},
        )

    def _rerank(self, model: Encoder, query: Future[Vector], stored: Stored) -> list[Candidate]:
        """Return the candidates by meaning of a static index, ranked by the model."""
        return rerank(self.connection, model, query.result(), stored.by_meaning, stored.by_words)
