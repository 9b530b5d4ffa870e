"""The searcher: one request in, one page of hits out."""

import time
from collections.abc import Mapping

import psycopg

from mail_assets.postgres.statements import statement
from mail_assets.search.facets import NO_FACETS, count_facets
from mail_assets.search.filters import compile_filters
from mail_assets.search.page import read_page
from mail_assets.search.permalink import build_permalink
from mail_assets.search.reading import describe_request
from mail_assets.search.request import (
    VECTOR_MODES,
    Mode,
    Request,
    RequestError,
    quote,
    strip_brackets,
)
from mail_assets.search.response import Response
from mail_assets.search.retrieval import Retrieval, Retriever
from mail_assets.search.semantic_leg import SemanticLeg, VectorSearch
from mail_assets.search.syntax import parse_request
from mail_assets.text.document import build_document

#: Chunks of a message that similar messages are searched with.
SIMILAR_CHUNKS = 4


class Searcher:
    """Answers requests over one connection; not for use by several threads at once.

    `languages` maps each list that is searched to its text search configuration.
    """

    def __init__(
        self,
        connection: psycopg.Connection,
        vectors: VectorSearch,
        languages: Mapping[str, str],
    ) -> None:
        self.retriever = Retriever(connection, SemanticLeg(connection, vectors), languages)
        self._connection = connection
        self._vectors = vectors
        self._languages = languages

    def search(self, request: Request) -> Response:
        """Answer a request.

        Raises:
            RequestError: a filter in the query is wrong, it names an unknown list, or a sender
                that matches too many addresses.
            VectorError: the index is missing or fails.
        """
        parsed = parse_request(request)
        wanted = parsed.request
        if wanted.mode in VECTOR_MODES and parsed.ranks:
            self._vectors.warm_up()
        began = time.perf_counter()
        filters = compile_filters(self._connection, parsed.clauses, self._languages)
        found = self.retriever.retrieve(parsed, filters) if filters else Retrieval([])
        hits = read_page(self._connection, wanted, found)
        facets = None
        if wanted.facets:
            facets = (
                count_facets(self._connection, parsed, filters, found) if filters else NO_FACETS
            )
        return Response(
            query_id=request.query_id,
            query=request.query,
            mode=str(wanted.mode),
            took_ms=_milliseconds_since(began),
            short=len(hits) < wanted.limit,
            hits=tuple(hits),
            permalink=build_permalink(parsed),
            explain={"query": describe_request(parsed), **found.explanation}
            if wanted.explain
            else None,
            facets=facets,
        )

    def similar(self, message_id: str, limit: int = 10) -> Response:
        """Return the messages whose meaning is nearest to that of a message, without itself.

        Raises:
            RequestError: there is no such message, or it has no text.
            VectorError: the index is missing or fails.
        """
        wanted = strip_brackets(message_id)
        request = Request(message_id, mode=Mode.semantic, limit=limit)
        filters = compile_filters(self._connection, (), self._languages)
        parameters = {"message_id": wanted, "most": SIMILAR_CHUNKS}
        rows = self._connection.execute(statement("search", "chunk_texts"), parameters).fetchall()
        if not rows or filters is None:
            raise RequestError(f"no message {quote(message_id)} with text")
        self._vectors.warm_up()
        began = time.perf_counter()
        texts = [build_document(subject, text) for text, subject in rows]
        found = self.retriever.retrieve_similar(wanted, texts, filters)
        hits = read_page(self._connection, request, found)
        return Response(
            query_id="",
            query=message_id,
            mode="similar",
            took_ms=_milliseconds_since(began),
            short=len(hits) < limit,
            hits=tuple(hits),
        )


def _milliseconds_since(began: float) -> float:
    return round((time.perf_counter() - began) * 1000, 1)
