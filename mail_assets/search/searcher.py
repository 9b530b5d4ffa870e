"""The searcher: one request in, one page of hits out; and the way to open one from settings.

It needs Postgres for text and threads, the vector index for meaning, and the encoder for the
query. Index and encoder are opened by the first request that asks for meaning, before its clock
starts: LanceDB alone takes a second to import, once per process.
"""

import contextlib
import functools
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg

from mail_assets.encoding.choice import open_encoder
from mail_assets.encoding.encoder import Encoder
from mail_assets.search.filters import read_limits
from mail_assets.search.judged import bare
from mail_assets.search.live import LiveIndex
from mail_assets.search.page import MORE, fold, read_hits
from mail_assets.search.ranking import Found, Legs, by_thread, find, similar
from mail_assets.search.request import Request, RequestError, quoted
from mail_assets.search.response import Hit, Response
from mail_assets.search.semantic import DEPTH, Nearest
from mail_assets.search.syntax import permalink, read_request
from mail_assets.settings import SettingsError
from mail_assets.steps.indexes import live_encoder
from mail_assets.steps.vectors import index_spec, open_mail_bucket
from mail_assets.store.database import Database
from mail_assets.store.statements import statement
from mail_assets.text.chunking import document
from mail_assets.vectors.index import VectorIndex

if TYPE_CHECKING:
    from mail_assets.encoding.endpoint import Endpoint

#: The modes that ask the vector index.
MEANING = ("semantic", "hybrid")
#: Chunks of a message that `similar` asks by.
SIMILAR_BY = 4


class Searcher:
    """Answers requests over one connection; not for use by several threads at once.

    `languages` maps each list that is searched to its text search configuration; `warm_up` is
    called before a request that asks for meaning, and opens what `nearest` needs; `deepest`
    says how many vectors it can be asked for.
    """

    def __init__(
        self,
        connection: psycopg.Connection,
        nearest: Nearest,
        languages: Mapping[str, str],
        warm_up: Callable[[], object] = lambda: None,
        deepest: Callable[[], int] = lambda: DEPTH,
    ) -> None:
        self._connection = connection
        self._nearest = nearest
        self._languages = languages
        self._warm_up = warm_up
        self._deepest = deepest

    def search(self, request: Request) -> Response:
        """Answer a request.

        Raises:
            RequestError: a filter in the query is wrong, it names an unknown list, or a sender
                that says nothing.
            VectorError: the index is missing or fails.
        """
        link = permalink(request)
        wanted = read_request(request)
        if wanted.mode in MEANING and wanted.query.strip():
            self._warm_up()
        began = time.perf_counter()
        limits = read_limits(self._connection, wanted, self._languages)
        found = find(self._legs(), wanted, limits, self._languages) if limits else Found([])
        hits = self._page(wanted, found)
        return Response(
            query_id=request.query_id,
            query=request.query,
            mode=wanted.mode,
            took_ms=_ms(began),
            short=len(hits) < wanted.limit,
            hits=tuple(hits),
            permalink=link,
            explain=dict(found.explained) if wanted.explain else None,
        )

    def similar(self, message_id: str, limit: int = 10) -> Response:
        """Return the messages whose meaning is nearest to that of a message, itself left out.

        Raises:
            RequestError: there is no such message, or it has no text.
        """
        wanted = bare(message_id)
        request = Request(message_id, mode="semantic", limit=limit)
        limits = read_limits(self._connection, request, self._languages)
        parameters = {"message_id": wanted, "most": SIMILAR_BY}
        rows = self._connection.execute(statement("search", "chunk_texts"), parameters).fetchall()
        if not rows or limits is None:
            raise RequestError(f"no message {quoted(message_id)} with text")
        self._warm_up()
        began = time.perf_counter()
        texts = [document(subject, text) for text, subject in rows]
        hits = self._page(request, similar(self._legs(), wanted, texts, limits))
        return Response(
            query_id="",
            query=message_id,
            mode="similar",
            took_ms=_ms(began),
            short=len(hits) < limit,
            hits=tuple(hits),
        )

    def _legs(self) -> Legs:
        return Legs(self._connection, self._nearest, self._deepest)

    def _page(self, request: Request, found: Found) -> list[Hit]:
        """Return the hits of the page, folded; further candidates are read as folding asks."""
        ranked = [
            one
            for one in found.ranked
            if request.min_score is None or one.score >= request.min_score
        ]
        threads = by_thread(ranked) if request.group == "thread" else {}
        if request.group == "thread":
            ranked = [of_thread[0] for of_thread in threads.values()]
        last = request.offset + request.limit
        hits: list[Hit] = []
        at = 0
        while at < len(ranked) and len(hits) < last:
            block = ranked[at : at + last - len(hits) + MORE]
            hits = fold([*hits, *read_hits(self._connection, block, found.asked)])
            at += len(block)
        page = hits[request.offset : last]
        return [
            replace(hit, in_thread=tuple(one.message_id for one in threads[_thread(hit)][1:]))
            if threads
            else hit
            for hit in page
        ]


def _thread(hit: Hit) -> str:
    return hit.thread_id or hit.message_id


def _ms(began: float) -> float:
    return round((time.perf_counter() - began) * 1000, 1)


@contextlib.contextmanager
def open_searcher(
    home: Path,
    dsn: str,
    vectors: str,
    encoder: str,
    precision: str,
    cache: Path,
    languages: Mapping[str, str],
    *,
    pinned: bool = False,
) -> Iterator[Searcher]:
    """Yield a searcher over the live index; that of the encoder in force, where none is live.

    A `pinned` one asks the index of `encoder` and `precision`, live or not.
    """
    with Database(home, dsn).connect("search") as connection:

        def asked() -> tuple[str, str]:
            in_force = (encoder, precision)
            return in_force if pinned else live_encoder(connection, vectors, *in_force)

        live = LiveIndex(
            asked,
            open_index=functools.cache(functools.partial(open_index, home, dsn, vectors)),
            open_encoder=functools.partial(_encoder, cache=cache),
        )
        yield Searcher(connection, live.nearest, languages, live.warm_up, live.deepest)


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
