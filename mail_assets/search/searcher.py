"""The searcher: one request in, one response out; and the way to open one from settings.

It needs Postgres for text and threads, the vector index for meaning, and the encoder for the
query. Index and encoder are opened by the first request that asks for meaning, before its clock
starts: LanceDB alone takes a second to import, once per process.
"""

import contextlib
import functools
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg

from mail_assets.encoding.choice import open_encoder
from mail_assets.encoding.encoder import Encoder
from mail_assets.search.filters import Limits, read_limits
from mail_assets.search.fusion import fuse
from mail_assets.search.legs import Candidate, Copy, Nearest, fulltext, semantic, speaking
from mail_assets.search.live import LiveIndex
from mail_assets.search.request import Request
from mail_assets.search.response import Hit, Response
from mail_assets.search.words import Question, ask, read_words
from mail_assets.settings import SettingsError
from mail_assets.steps.vectors import index_spec, open_mail_bucket
from mail_assets.store.database import Database
from mail_assets.store.messages import utc
from mail_assets.store.statements import statement
from mail_assets.vectors.index import VectorIndex

if TYPE_CHECKING:
    from mail_assets.encoding.endpoint import Endpoint

#: The modes that ask the vector index.
MEANING = ("semantic", "hybrid")


class Searcher:
    """Answers requests over one connection; not for use by several threads at once.

    `languages` maps each list that is searched to its text search configuration; `warm_up` is
    called before a request that asks for meaning, and opens what `nearest` needs.
    """

    def __init__(
        self,
        connection: psycopg.Connection,
        nearest: Nearest,
        languages: Mapping[str, str],
        warm_up: Callable[[], object] = lambda: None,
    ) -> None:
        self._connection = connection
        self._nearest = nearest
        self._languages = languages
        self._warm_up = warm_up

    def search(self, request: Request) -> Response:
        """Answer a request.

        Raises:
            RequestError: it names an unknown list, or a sender that says nothing.
            VectorError: the index is missing or fails.
        """
        if request.mode in MEANING:
            self._warm_up()
        began = time.perf_counter()
        limits = read_limits(self._connection, request, self._languages)
        hits = () if limits.senders == [] else self._answer(request, limits)
        return Response(
            query_id=request.query_id,
            query=request.query,
            mode=request.mode,
            took_ms=round((time.perf_counter() - began) * 1000, 1),
            short=len(hits) < request.limit,
            hits=hits,
        )

    def _answer(self, request: Request, limits: Limits) -> tuple[Hit, ...]:
        legs: dict[str, list[Candidate]] = {}
        questions: list[Question] = []
        words = read_words(request.query)
        if request.mode in MEANING:
            legs["semantic"] = semantic(self._connection, self._nearest, request.query, limits)
        if request.mode in ("fulltext", "hybrid"):
            questions = ask(self._connection, words, self._languages, limits.lists)
            legs["fulltext"] = fulltext(self._connection, questions, limits)
        ranked = fuse(legs) if len(legs) > 1 else next(iter(legs.values()))
        page = speaking(self._connection, ranked[: request.limit], questions, words.identifiers)
        return self._hits(page)

    def _hits(self, page: list[Candidate]) -> tuple[Hit, ...]:
        """Return the hits of a page; a message that has gone meanwhile is left out."""
        ids = [candidate.message_id for candidate in page]
        rows = self._connection.execute(statement("search", "messages"), {"message_ids": ids})
        copies: dict[str, dict[Copy, tuple[Any, ...]]] = {}
        for message_id, list_, month, variant, *shown in rows.fetchall():
            copies.setdefault(message_id, {})[Copy(list_, month, variant)] = tuple(shown)
        return tuple(
            _hit(candidate, copies[candidate.message_id])
            for candidate in page
            if candidate.copy in copies.get(candidate.message_id, {})
        )


def _hit(candidate: Candidate, copies: Mapping[Copy, tuple[Any, ...]]) -> Hit:
    """Return a hit as its candidate's copy stands, with the names of all lists that carry it."""
    subject, from_name, from_email, sent_at, thread_id = copies[candidate.copy]
    return Hit(
        message_id=candidate.message_id,
        lists=tuple(sorted({copy.list for copy in copies})),
        month=candidate.copy.month,
        subject=subject,
        from_name=from_name,
        from_email=from_email,
        sent_at=utc(sent_at),
        score=candidate.score,
        thread_id=thread_id,
        chunks=tuple(candidate.chunks),
    )


@contextlib.contextmanager
def open_searcher(
    home: Path,
    dsn: str,
    vectors: str,
    encoder: str,
    precision: str,
    cache: Path,
    languages: Mapping[str, str],
) -> Iterator[Searcher]:
    """Yield a searcher over the live index; that of the encoder in force, where none is live."""
    with Database(home, dsn).connect("search") as connection:
        live = LiveIndex(
            connection,
            vectors,
            encoder,
            precision,
            open_index=functools.cache(functools.partial(open_index, home, dsn, vectors)),
            open_encoder=functools.partial(_encoder, cache=cache),
        )
        yield Searcher(connection, live.nearest, languages, live.warm_up)


def open_index(home: Path, dsn: str, vectors: str, encoder: str, precision: str) -> VectorIndex:
    """Return the index of an encoder in the bucket `vectors`; it may not exist yet.

    Raises:
        SettingsError: the bucket needs what is not set.
    """
    try:
        bucket = open_mail_bucket(home, dsn, vectors)
    except ValueError as error:
        raise SettingsError("MAIL_VECTORS", vectors, str(error)) from None
    return bucket.index(index_spec(encoder, precision))


@functools.cache
def _encoder(name: str, precision: str, cache: Path) -> "Encoder | Endpoint":
    return open_encoder(name, precision, cache)
