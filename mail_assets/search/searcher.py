"""The searcher: one request in, one page of hits out.

It needs Postgres for text and threads, the vector index for meaning, and the encoder for the
query. What does not live here: opening these (open.py).
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import replace

import psycopg

from mail_assets.postgres.statements import statement
from mail_assets.search.filters import read_limits
from mail_assets.search.find import Found, Legs, by_thread, find, similar
from mail_assets.search.hits import MORE, fold, read_hits
from mail_assets.search.request import VECTOR_MODES, Group, Request, RequestError, bare_id, quoted
from mail_assets.search.response import Hit, Response
from mail_assets.search.semantic import DEPTH, Nearest
from mail_assets.search.syntax import permalink, read_request
from mail_assets.text.document import build_document

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
        if wanted.mode in VECTOR_MODES and wanted.query.strip():
            self._warm_up()
        began = time.perf_counter()
        limits = read_limits(self._connection, wanted, self._languages)
        found = find(self._legs(), wanted, limits, self._languages) if limits else Found([])
        hits = self._page(wanted, found)
        return Response(
            query_id=request.query_id,
            query=request.query,
            mode=str(wanted.mode),
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
        wanted = bare_id(message_id)
        request = Request(message_id, mode="semantic", limit=limit)
        limits = read_limits(self._connection, request, self._languages)
        parameters = {"message_id": wanted, "most": SIMILAR_BY}
        rows = self._connection.execute(statement("search", "chunk_texts"), parameters).fetchall()
        if not rows or limits is None:
            raise RequestError(f"no message {quoted(message_id)} with text")
        self._warm_up()
        began = time.perf_counter()
        texts = [build_document(subject, text) for text, subject in rows]
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
        threads = by_thread(ranked) if request.group == Group.thread else {}
        if request.group == Group.thread:
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
