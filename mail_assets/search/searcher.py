"""The searcher: one request in, one response out; and the way to open one from settings.

It needs Postgres for text and threads, the vector index for meaning, and the encoder for the
query. Index and encoder are opened by the first request that asks for meaning, before its clock
starts: LanceDB alone takes a second to import, once per process.
"""

import contextlib
import functools
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

import psycopg

from mail_assets.encoding.choice import open_encoder
from mail_assets.encoding.encoder import Encoder
from mail_assets.search.candidates import Candidate, Copy
from mail_assets.search.filters import Limits, read_limits
from mail_assets.search.fulltext import fulltext
from mail_assets.search.fusion import LIFTED_MESSAGES, by_leg, fuse, lift, lifted_threads, mix_of
from mail_assets.search.judged import bare
from mail_assets.search.live import LiveIndex
from mail_assets.search.page import Asked, fold, read_hits
from mail_assets.search.request import Request, RequestError
from mail_assets.search.response import Hit, Response
from mail_assets.search.semantic import DEPTH, Nearest, semantic
from mail_assets.search.syntax import permalink, read_request
from mail_assets.search.words import ask, meaning_of, read_words
from mail_assets.settings import SettingsError
from mail_assets.steps.vectors import index_spec, open_mail_bucket
from mail_assets.store.database import Database
from mail_assets.store.statements import statement
from mail_assets.text.chunking import document
from mail_assets.vectors.index import Match, VectorIndex

if TYPE_CHECKING:
    from mail_assets.encoding.endpoint import Endpoint

#: The modes that ask the vector index.
MEANING = ("semantic", "hybrid")
#: Candidates read beyond a page, for those that are folded into another.
MORE = 5
#: Chunks of a message that `similar` asks by.
SIMILAR_BY = 4
#: `<id>`, `id`, `mid:id` or a link that ends in an id.
_PASTED = re.compile(r"(?:mid:|id:|https?://\S+/)?<?([^\s<>/@]+@[^\s<>/@]+)>?/?")


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
        found = self._find(wanted, limits) if limits else Found([])
        hits = self._page(wanted, found)
        return Response(
            query_id=request.query_id,
            query=request.query,
            mode=wanted.mode,
            took_ms=_ms(began),
            short=len(hits) < wanted.limit,
            hits=tuple(hits),
            permalink=link,
            explain=found.explained if wanted.explain else None,
        )

    def similar(self, message_id: str, limit: int = 10) -> Response:
        """Return the messages whose meaning is nearest to that of a message, itself left out.

        Raises:
            RequestError: there is no such message, or it has no text.
        """
        request = Request(message_id, mode="semantic", limit=limit)
        limits = read_limits(self._connection, request, self._languages)
        parameters = {"message_id": bare(message_id), "most": SIMILAR_BY}
        rows = self._connection.execute(statement("search", "chunk_texts"), parameters).fetchall()
        if not rows or limits is None:
            raise RequestError(f"no message {message_id!r} with text")
        self._warm_up()
        began = time.perf_counter()
        best: dict[str, Candidate] = {}
        for text, subject in rows:
            for one in self._semantic(document(subject, text), limits):
                known = best.setdefault(one.message_id, one)
                if one.score > known.score:
                    best[one.message_id] = one
        best.pop(bare(message_id), None)
        ranked = sorted(best.values(), key=lambda c: (-c.score, c.message_id))
        hits = self._page(request, Found(by_leg("semantic", ranked)))
        return Response(
            query_id="",
            query=message_id,
            mode="similar",
            took_ms=_ms(began),
            short=len(hits) < limit,
            hits=tuple(hits),
        )

    def _find(self, request: Request, limits: Limits) -> "Found":
        """Return everything that was found, best first."""
        if not request.query.strip():
            return Found(self._listed("newest", limits, most=request.offset + request.limit + MORE))
        if pasted := message_id_in(request.query):
            copies = self._listed("by_id", limits, message_id=pasted)
            if copies:
                return Found([replace(copies[0], score=1.0)])
        words = read_words(request.query)
        questions = ask(self._connection, words, self._languages, limits.lists)
        limits = limits.requiring(questions)
        text = meaning_of(request.query)
        if request.mode == "semantic":
            # Distances do not depend on how many are asked for: a later page may ask for more.
            depth = max(DEPTH, 3 * (request.offset + request.limit))
            found = self._semantic(text, limits, depth)
            return Found(by_leg("semantic", found), Asked(questions, words, ()))
        began = time.perf_counter()
        with ThreadPoolExecutor(1) as pool:
            # The model and the index work while Postgres does; the connection stays here.
            ahead = (
                pool.submit(self._nearest, text, min(DEPTH, self._deepest()), limits.filter)
                if request.mode == "hybrid" and limits.whole
                else None
            )
            ranking = fulltext(self._connection, questions, words, limits)
            words_ms = _ms(began)
            first = ahead.result() if ahead else None
        asked = Asked(questions, words, ranking.terms)
        if request.mode == "fulltext":
            return Found(by_leg("fulltext", ranking.candidates), asked, {"fulltext_ms": words_ms})
        meant = self._semantic(text, limits, first=first)
        mix = mix_of(ranking.covered)
        fused = fuse(meant, ranking.candidates, mix)
        parameters = {"threads": lifted_threads(fused), "most": LIFTED_MESSAGES}
        ranked = lift(fused, self._listed("members", limits, **parameters))
        explained = {
            "mix": asdict(mix),
            "covered": ranking.covered,
            "terms": [asdict(term) for term in ranking.terms],
            "semantic": len(meant),
            "fulltext": len(ranking.candidates),
            "fulltext_ms": words_ms,
            "ranked_ms": _ms(began),
        }
        return Found(ranked, asked, explained)

    def _semantic(
        self, text: str, limits: Limits, depth: int = DEPTH, first: list[Match] | None = None
    ) -> list[Candidate]:
        deepest = self._deepest()
        return semantic(self._connection, self._nearest, text, limits, depth, deepest, first)

    def _listed(self, name: str, limits: Limits, **parameters: object) -> list[Candidate]:
        """Return the messages of a statement as candidates, each in its first copy."""
        rows = self._connection.execute(
            limits.statement(name), {**limits.parameters, **parameters}
        ).fetchall()
        found: dict[str, Candidate] = {}
        for message_id, list_, month, variant, thread_id in rows:
            copy = Copy(list_, month, variant)
            found.setdefault(message_id, Candidate(message_id, copy, thread_id, 0.0))
        return [*found.values()]

    def _page(self, request: Request, found: "Found") -> list[Hit]:
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


class Found(NamedTuple):
    """Candidates, best first, with what their words were taken as and how they were found."""

    ranked: list[Candidate]
    asked: Asked = Asked((), read_words(""), ())
    explained: Mapping[str, Any] = MappingProxyType({})


def by_thread(ranked: Iterable[Candidate]) -> dict[str, list[Candidate]]:
    """Return candidates by thread, threads in the order of their best."""
    threads: dict[str, list[Candidate]] = {}
    for one in ranked:
        threads.setdefault(one.thread_id or one.message_id, []).append(one)
    return threads


def message_id_in(query: str) -> str | None:
    """Return what a pasted Message-ID, with or without brackets or in a link, may stand for."""
    match = _PASTED.fullmatch(query.strip())
    return unquote(match[1]) if match else None


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
