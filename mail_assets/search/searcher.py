"""The searcher: one request in, one page of hits out."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import psycopg

from mail_assets.postgres.statements import statement
from mail_assets.search.ask_indexes import Rankings
from mail_assets.search.filters import MessageFilter, compile_filters
from mail_assets.search.highlights import StemReader, weigh_texts, weigh_thread
from mail_assets.search.hits import HitReader
from mail_assets.search.language.permalink import build_permalink, describe_request
from mail_assets.search.language.request import (
    MissingMessageError,
    Mode,
    Request,
    RequestError,
    quote,
    strip_brackets,
)
from mail_assets.search.language.syntax import ParsedRequest, loosen, parse_request
from mail_assets.search.live_index import (
    AskWords,
    LiveName,
    LookedUp,
    LookUp,
    VectorSearch,
    VectorSource,
    follow_live,
)
from mail_assets.search.page import NO_FACETS, count_facets, read_page
from mail_assets.search.response import Response
from mail_assets.search.retrieval import Retrieval, Retriever
from mail_assets.text.chunking import build_document

#: Chunks of a message that similar messages are searched with.
SIMILAR_CHUNKS = 4

T = TypeVar("T")


class Searcher:
    """Answers requests over one connection; not for use by several threads at once.

    `languages` maps each list that is searched to its text search configuration. `reconnect` opens
    another connection where the server has closed this one. What takes a request raises what
    `search` does.
    """

    def __init__(
        self,
        connection: psycopg.Connection,
        ask_words: AskWords,
        vectors: VectorSource,
        languages: Mapping[str, str],
        reconnect: Callable[[], psycopg.Connection] | None = None,
    ) -> None:
        self._ask_words = ask_words
        self._vectors = vectors
        self._languages = languages
        self._reconnect = reconnect
        self._use(connection)

    def _use(self, connection: psycopg.Connection) -> None:
        self._connection = connection
        self._look_up = LookUp(connection, self._ask_words, self._vectors, self._languages)
        self._hits = HitReader(connection)
        self._stems = StemReader(connection)
        self.retriever = Retriever(connection)

    def search(self, request: Request) -> Response:
        """Answer a request.

        Raises:
            RequestError: a filter in the query is wrong, it names an unknown list, or a sender
                that matches too many addresses.
            VectorError, WordsError: an index is missing or fails.
        """
        return self._connected(lambda: self._search(request))

    def rank(self, request: Request) -> Rankings:
        """Return what both legs of a hybrid search rank, before fusion: for measurements."""
        return self.retriever.rank_legs(self._read_request(request))

    def weigh_texts(self, request: Request, texts: Sequence[str]) -> list[float]:
        """Return how much of a query each text has: the share of its words' weight, 0 to 1."""
        return self._connected(lambda: weigh_texts(self._stems, self._read_request(request), texts))

    def weigh_thread(self, request: Request, message_id: str) -> float:
        """Return how much of a query a message has with those around it in its thread, 0 to 1.

        Of k words it is (k - 1) / k at most.
        """
        return self._connected(
            lambda: weigh_thread(self._connection, self._read_request(request), message_id)
        )

    def compare_texts(self, request: Request, texts: Sequence[str]) -> list[float]:
        """Return how near each text is to a query in meaning: cosines, 0 without a model."""
        found = self._connected(lambda: self._read_request(request))
        vectors = found.vectors
        return vectors.similarities(found.query.text, texts) if vectors else [0.0] * len(texts)

    def find_unknown_share(self, request: Request) -> tuple[float, str]:
        """Return which share of a query's tokens the encoder does not know, and the encoder."""
        found = self._connected(lambda: self._read_request(request))
        vectors = found.vectors
        return (vectors.unknown_share(found.query.text), vectors.name[0]) if vectors else (0.0, "")

    def similar(self, message_id: str, limit: int = 10) -> Response:
        """Return the messages whose meaning is nearest to that of a message, without itself.

        Raises:
            MissingMessageError: there is no such message, or it has no text.
            VectorError: the index is missing or fails.
        """
        return self._connected(lambda: self._similar(message_id, limit))

    def _search(self, request: Request) -> Response:
        began = time.perf_counter()
        asked = parsed = parse_request(request)
        wanted = asked.request
        filters, found, opening_ms = self._find(asked)
        if filters and not found.candidates and asked.phrases:
            parsed = loosen(asked)
            filters, found, more_ms = self._find(parsed)
            opening_ms += more_ms
        page_began = time.perf_counter()
        hits = read_page(self._hits, wanted, found)
        while len(hits) < wanted.limit and (more := self.retriever.retrieve_more(found)):
            found = more
            hits = read_page(self._hits, wanted, found)
        facets = NO_FACETS if wanted.facets else None
        if filters and wanted.facets:
            facets = count_facets(self._connection, parsed, filters, found)
        explanation = {"query": describe_request(parsed), **found.explanation}
        if parts := explanation.get("ms"):
            explanation["ms"] = {**parts, "page": _milliseconds_since(page_began)}
        return Response(
            query_id=request.query_id,
            query=request.query,
            mode=str(wanted.mode),
            took_ms=round(_milliseconds_since(began) - opening_ms, 1),
            short=len(hits) < wanted.limit,
            hits=tuple(hits),
            permalink=build_permalink(asked),
            without_quotes=() if parsed is asked else tuple(asked.phrases),
            looked_back_to=str(found.looked_back_to) if found.looked_back_to else None,
            explain=explanation if wanted.explain else None,
            facets=facets,
        )

    def _find(self, parsed: ParsedRequest) -> tuple[MessageFilter | None, Retrieval, float]:
        """Return what a request filters by and finds, and how long it took to open an index."""
        filters = self._compile(parsed)
        if filters is None:
            return None, Retrieval([]), 0.0
        return filters, *self._retrieve(parsed, filters)

    def _compile(self, parsed: ParsedRequest) -> MessageFilter | None:
        return compile_filters(
            self._connection,
            parsed.clauses,
            self._languages,
            names_only=parsed.request.names_only,
        )

    def _retrieve(self, parsed: ParsedRequest, filters: MessageFilter) -> tuple[Retrieval, float]:
        """Return what is found, and the milliseconds that it took to open an index."""
        if pasted := self._find_pasted(parsed, filters):
            return pasted, 0.0

        def look_up() -> tuple[object, LookedUp]:
            looked_up = self._look_up.read(parsed, filters)
            return looked_up.live, looked_up

        return follow_live(
            look_up,
            lambda found: (self.retriever.retrieve(parsed.request, found), found.opening_ms),
            lambda answer: not answer[0].candidates,
        )

    def _find_pasted(self, parsed: ParsedRequest, filters: MessageFilter) -> Retrieval | None:
        if parsed.message_ids and parsed.texts and parsed.ranks:
            filters = filters.require_words(self._look_up.read_query(parsed, filters))
        return self.retriever.find_pasted(parsed.message_ids, filters)

    def _read_request(self, request: Request) -> LookedUp:
        """Look up what a request needs, which must have messages that pass its filters."""
        parsed = parse_request(request)
        filters = self._compile(parsed)
        if filters is None:
            raise RequestError(f"nothing passes the filters of {quote(request.query)}")
        return self._look_up.read(parsed, filters)

    def _similar(self, message_id: str, limit: int) -> Response:
        wanted = strip_brackets(message_id)
        request = Request(message_id, mode=Mode.semantic, limit=limit)
        filters = compile_filters(self._connection, (), self._languages)
        filters = filters and self._look_up.name_lists(filters)
        parameters = {"message_id": wanted, "most": SIMILAR_CHUNKS}
        rows = self._connection.execute(statement("search", "chunk_texts"), parameters).fetchall()
        if not rows or filters is None:
            raise MissingMessageError(f"no message {quote(message_id)} with text")
        texts = [build_document(subject, text) for text, subject in rows]

        def look_up() -> tuple[LiveName, VectorSearch]:
            index = self._look_up.index()
            return index.name, index

        look_up()  # opens the index, which is not the search's own time
        began = time.perf_counter()
        found = follow_live(
            look_up,
            lambda index: self.retriever.retrieve_similar(index, wanted, texts, filters),
            lambda answer: not answer.candidates,
        )
        hits = read_page(self._hits, request, found)
        return Response(
            query_id="",
            query=message_id,
            mode="similar",
            took_ms=_milliseconds_since(began),
            short=len(hits) < limit,
            hits=tuple(hits),
        )

    def _connected(self, work: Callable[[], T]) -> T:
        """Do some work, once more over another connection where the server closed this one."""
        try:
            return work()
        except psycopg.OperationalError:
            if self._reconnect is None or not self._connection.broken:
                raise
            self._use(self._reconnect())
            return work()


def _milliseconds_since(began: float) -> float:
    return round((time.perf_counter() - began) * 1000, 1)
