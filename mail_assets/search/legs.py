"""Both legs of a search: the two indexes asked, then PostgreSQL once; again where too few pass."""

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import psycopg

from mail_assets.indexes.encoder_probe import Encoder
from mail_assets.search.candidates import Candidate
from mail_assets.search.fulltext_leg import (
    FulltextRanking,
    measure_coverage,
    weigh_query,
)
from mail_assets.search.index_answers import (
    Answer,
    Depths,
    ask_indexes,
    choose_depths,
    choose_first_depths,
    timed,
)
from mail_assets.search.lazy_lane import Vector, rerank
from mail_assets.search.look_up import LookedUp
from mail_assets.search.stored import FoundOne, Stored, read_stored


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
