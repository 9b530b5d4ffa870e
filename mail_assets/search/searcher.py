"""The searcher: one request in, one response out; and the way to open one from settings.

It needs Postgres for text and threads, the vector index for meaning, and the encoder for the
query. The encoder is loaded by the first request that asks for meaning.
"""

import contextlib
import functools
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import psycopg

from mail_assets.encoding.encoder import Encoder, load_encoder
from mail_assets.search.fusion import fuse
from mail_assets.search.legs import Candidate, find_senders, fulltext, semantic
from mail_assets.search.request import Request, RequestError
from mail_assets.search.response import Hit, Response
from mail_assets.steps.vectors import index_spec
from mail_assets.store.database import MAIL, Database, embedded_dsn
from mail_assets.store.messages import utc
from mail_assets.store.statements import statement
from mail_assets.vectors.bucket import open_bucket
from mail_assets.vectors.index import VectorIndex

EncodeQuery = Callable[[str], npt.NDArray[np.float32]]


class Searcher:
    """Answers requests over one connection; not for use by several threads at once.

    `languages` maps each list to its text search configuration.
    """

    def __init__(
        self,
        connection: psycopg.Connection,
        index: VectorIndex,
        encode_query: EncodeQuery,
        languages: Mapping[str, str],
    ) -> None:
        self._connection = connection
        self._index = index
        self._encode_query = encode_query
        self._languages = languages

    def search(self, request: Request) -> Response:
        """Answer a request.

        Raises:
            RequestError: it names an unknown list, or a sender that says nothing.
            VectorError: the index is missing or fails.
        """
        began = time.perf_counter()
        for name in request.lists:
            if name not in self._languages:
                known = ", ".join(sorted(self._languages))
                raise RequestError(f"list {name!r} is unknown; there are: {known}")
        senders = find_senders(self._connection, request.sender)
        ranked = [] if senders == [] else self._ranked(request, senders)
        hits = self._hits(ranked[: request.limit])
        return Response(
            query_id=request.query_id,
            query=request.query,
            mode=request.mode,
            took_ms=round((time.perf_counter() - began) * 1000, 1),
            short=len(hits) < request.limit,
            hits=hits,
        )

    def _ranked(self, request: Request, senders: list[str] | None) -> list[Candidate]:
        legs: dict[str, list[Candidate]] = {}
        if request.mode in ("semantic", "hybrid"):
            vector = self._encode_query(request.query)
            legs["semantic"] = semantic(self._connection, self._index, vector, request, senders)
        if request.mode in ("fulltext", "hybrid"):
            asked = request.lists or self._languages.keys()
            languages = sorted({self._languages[name] for name in asked})
            legs["fulltext"] = fulltext(self._connection, request, senders, languages)
        return fuse(legs) if len(legs) > 1 else next(iter(legs.values()))

    def _hits(self, candidates: list[Candidate]) -> tuple[Hit, ...]:
        ids = [candidate.message_id for candidate in candidates]
        rows = self._connection.execute(statement("search", "messages"), {"message_ids": ids})
        copies: dict[str, list[tuple[Any, ...]]] = {}
        for message_id, *copy in rows.fetchall():
            copies.setdefault(message_id, []).append(tuple(copy))
        return tuple(_hit(c, copies[c.message_id]) for c in candidates if c.message_id in copies)


def _hit(candidate: Candidate, copies: list[tuple[Any, ...]]) -> Hit:
    """Return a hit as its candidate's copy stands, with the names of all lists that carry it."""
    own = next((copy for copy in copies if copy[:2] == candidate.archive), copies[0])
    _, month, subject, from_name, from_email, sent_at, thread_id = own
    return Hit(
        message_id=candidate.message_id,
        lists=tuple(sorted({copy[0] for copy in copies})),
        month=month,
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
    """Yield a searcher over the live index: that of the encoder in force."""
    server = (dsn or embedded_dsn(home, MAIL)) if vectors.startswith("pgvector:") else None
    index = open_bucket(vectors, dsn=server).index(index_spec(encoder, precision))

    def encode_query(text: str) -> npt.NDArray[np.float32]:
        return _encoder(encoder, precision, cache).encode_query(text)

    with Database(home, dsn).connect("search") as connection:
        yield Searcher(connection, index, encode_query, languages)


@functools.cache
def _encoder(name: str, precision: str, cache: Path) -> Encoder:
    return load_encoder(name, precision, cache)
