"""The searcher: answers a request with a page of conversations or messages."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

import psycopg

from mail_assets.mail.message.ids import normalize_id
from mail_assets.postgres.statements import statement
from mail_assets.search.conversations import read_conversations
from mail_assets.search.direct_hits import is_whole_subject
from mail_assets.search.facets import NO_FACETS, count_facets
from mail_assets.search.filters import MessageFilter, compile_filters
from mail_assets.search.highlights import WordReader, weigh_texts
from mail_assets.search.language.expression import Field
from mail_assets.search.language.permalink import build_permalink, describe_request
from mail_assets.search.language.request import (
    After,
    Group,
    MissingMessageError,
    Mode,
    Request,
    RequestError,
    Sort,
    quote,
    strip_brackets,
)
from mail_assets.search.language.syntax import (
    ParsedRequest,
    join_thread,
    list_by_date,
    loosen,
    parse_request,
)
from mail_assets.search.live_index import AskVectors, follow_live
from mail_assets.search.look_up import AskWords, LookedUp, LookUp
from mail_assets.search.notes import write_notes
from mail_assets.search.page import HitReader, Page, read_page
from mail_assets.search.query import Query
from mail_assets.search.response import End, Reading, Response
from mail_assets.search.retrieval import FOLDED, RankedMatches, Retriever, milliseconds_since
from mail_assets.tables.lists import show_lists
from mail_assets.tables.search_vectors import ADDRESS
from mail_assets.text.chunking import build_document

#: Most chunks of a message that a search for similar messages uses.
SIMILAR_CHUNKS = 4

T = TypeVar("T")


class Searcher:
    """Answers requests over one connection; not safe for several threads at once.

    `languages` maps each searched list to its text search configuration; other lists are never
    found, named or counted. `reconnect` opens another connection if the server has closed this one.
    Every method that takes a request raises the errors of `search`.
    """

    def __init__(
        self,
        connection: psycopg.Connection,
        ask_words: AskWords,
        ask_vectors: AskVectors,
        languages: Mapping[str, str],
        reconnect: Callable[[], psycopg.Connection] | None = None,
    ) -> None:
        self._ask_words = ask_words
        self._ask_vectors = ask_vectors
        self._languages = languages
        self._reconnect = reconnect
        self._use(connection)

    def show(self, languages: Mapping[str, str]) -> None:
        """Search these lists from now on."""
        if languages != self._languages:
            self._languages = languages
            self._use(self._connection)

    def _use(self, connection: psycopg.Connection) -> None:
        show_lists(connection, self._languages)
        self._connection = connection
        self._look_up = LookUp(connection, self._ask_words, self._ask_vectors, self._languages)
        self._hits = HitReader(connection)
        self._stems = WordReader(connection)
        self.retriever = Retriever(connection)

    def search(self, request: Request) -> Response:
        """Answer a request.

        Raises:
            RequestError: a field of the query is wrong, a list is unknown, or a sender matches too
                many addresses.
            VectorError, WordsError: an index is missing or fails.
        """
        return self._connected(lambda: self._search(request))

    def weigh_texts(self, request: Request, texts: Sequence[str]) -> list[float]:
        """Return the share of a query's weight that each text has, 0 to 1."""
        return self._connected(lambda: weigh_texts(self._stems, self.look_up(request), texts))

    def compare_texts(self, request: Request, texts: Sequence[str]) -> list[float]:
        """Return the cosine similarity of each text to a query; 0 if the mode uses no model."""
        found = self._connected(lambda: self.look_up(request))
        vectors = found.vectors
        return vectors.similarities(found.query.text, texts) if vectors else [0.0] * len(texts)

    def find_threads(self, message_ids: Iterable[str]) -> dict[str, str]:
        """Return the thread of each stored message by id; a message in no thread is its own."""
        parameters = {"message_ids": sorted({*message_ids})}
        query = statement("search", "threads_of")
        return self._connected(lambda: dict(self._connection.execute(query, parameters).fetchall()))

    def find_unknown_share(self, request: Request) -> tuple[float, str]:
        """Return the share of a query's tokens unknown to the encoder, and the encoder's name."""
        found = self._connected(lambda: self.look_up(request))
        if found.vectors is None:
            return 0.0, ""
        return found.vectors.unknown_share(found.query.text), found.vectors.name.encoder

    def similar(self, message_id: str, limit: int = 10) -> Response:
        """Return the messages nearest in meaning to a message, without the message itself.

        Raises:
            MissingMessageError: there is no such message, or it has no text.
            VectorError: the index is missing or fails.
        """
        return self._connected(lambda: self._similar(message_id, limit))

    def _search(self, request: Request) -> Response:
        began = time.perf_counter()
        typed = parse_request(request)
        asked = self._read_dashes(typed)
        near = self._find_near(asked)
        parsed = whole = asked
        if near:
            thread = ("thread", near.thread_id) if near.thread_id else ("id", near.message_id)
            parsed = whole = join_thread(asked, Field(*thread), near.subject)
        filters, found = self._find(parsed)
        opening_ms = found.opening_ms
        if filters and not found.candidates and asked.phrases:
            parsed = loosen(whole)
            filters, found = self._find(parsed)
            opening_ms += found.opening_ms
        if filters and (listed := self._find_common(whole, filters, found)):
            parsed, (filters, found) = listed
        wanted = parsed.request
        page_began = time.perf_counter()
        own = self._look_up.read_query(asked, filters) if near and filters else None
        lists = filters.lists if filters else []
        page = self._read_page(wanted, found, lists, own)
        while page.is_short and (more := self.retriever.retrieve_more(found)):
            found = more
            page = self._read_page(wanted, found, lists, own)
        facets = NO_FACETS if wanted.facets else None
        if filters and wanted.facets:
            facets = count_facets(self._connection, parsed, filters, found)
        is_loose = parsed is not whole and parsed.ranks
        understood = describe_request(loosen(asked) if is_loose else asked)
        if near:
            understood += f" · reading: {near.subject}"
        explanation = {"query": understood, **found.explanation}
        if parts := explanation.get("ms"):
            explanation["ms"] = {**parts, "page": milliseconds_since(page_began)}
        next_row = _find_next_row(wanted, found, page)
        return Response(
            query_id=request.query_id,
            query=request.query,
            mode=str(wanted.mode),
            took_ms=round(milliseconds_since(began) - opening_ms, 1),
            short=page.is_short,
            hits=page.hits,
            conversations=page.conversations,
            permalink=build_permalink(typed),
            without_quotes=tuple(asked.phrases) if is_loose else (),
            notes=write_notes(self._connection, self._languages, whole, parsed, found, page),
            looked_back_to=str(found.looked_back_to) if found.looked_back_to else None,
            explain=explanation if wanted.explain else None,
            facets=facets,
            near=near,
            end=None if next_row else _find_end(wanted, found),
            next_row=next_row,
            previous_row=_find_previous_row(wanted, found),
        )

    def _read_dashes(self, typed: ParsedRequest) -> ParsedRequest:
        """Read dashes as text if the query is a message's whole subject, even of a left-out one."""
        if not (typed.ranks and typed.excludes_words):
            return typed
        whole = parse_request(replace(typed.request, without=()), dashes=False)
        filters = self._compile(whole)
        if filters is None or not is_whole_subject(self._connection, whole, filters):
            return typed
        return parse_request(typed.request, dashes=False)

    def _find_near(self, parsed: ParsedRequest) -> Reading | None:
        """Return the thread at hand (`near`); None for a pasted id, which is found anywhere."""
        id = normalize_id(parsed.request.near)
        if not id or parsed.message_ids:
            return None
        parameters = {"id": id, "lists": [*self._languages]}
        row = self._connection.execute(statement("search", "near"), parameters).fetchone()
        if row is None:
            raise MissingMessageError(
                f"near: no message or thread has the id {quote(parsed.request.near)}"
            )
        return Reading(id, *row)

    def _read_page(
        self, request: Request, found: RankedMatches, lists: Sequence[str], own: Query | None
    ) -> Page:
        """Return a page; with `own`, highlight its words instead of all words that ranked."""
        if own:
            lexemes = {term.lexeme for one in own.by_language for term in one.words.terms}
            terms = [term for term in found.terms if term.lexeme in lexemes]
            found = found._replace(query=own, terms=terms)
        if request.group == Group.conversation:
            return read_conversations(self._hits, request, found, lists)
        return read_page(self._hits, request, found)

    def _find(self, parsed: ParsedRequest) -> tuple[MessageFilter | None, RankedMatches]:
        """Return the filter of a request (None if no message can meet it) and the matches."""
        filters = self._compile(parsed)
        if filters is None:
            return None, RankedMatches([])
        if parsed.message_ids:
            worded = filters
            if parsed.texts and parsed.ranks:
                worded = filters.require_words(self._look_up.read_query(parsed, filters))
            if pasted := self.retriever.find_pasted(parsed.message_ids, worded):
                return filters, pasted
        found = follow_live(
            lambda: self._look_up.read(parsed, filters),
            lambda looked_up: looked_up.live,
            lambda looked_up: self.retriever.retrieve(parsed.request, looked_up),
            lambda found: not found.candidates,
        )
        return filters, found

    def _find_common(
        self, parsed: ParsedRequest, filters: MessageFilter, found: RankedMatches
    ) -> tuple[ParsedRequest, tuple[MessageFilter | None, RankedMatches]] | None:
        """Return a list by date for a query of stop words only (`AT&T`), which PostgreSQL finds."""
        query = found.looked_up and found.looked_up.query
        if not query or not parsed.ranks or parsed.message_ids:
            return None
        if parsed.request.mode == Mode.semantic:
            return None
        terms = (term for one in query.by_language for term in one.words.terms)
        if not all(term.lexeme.startswith(ADDRESS) for term in terms):
            return None
        dated = list_by_date(parsed)
        required = self._look_up.read_query(dated, filters).by_language
        return (dated, self._find(dated)) if any(one.required for one in required) else None

    def _compile(self, parsed: ParsedRequest) -> MessageFilter | None:
        request = parsed.request
        filters = compile_filters(
            self._connection, parsed.clauses, self._languages, names_only=request.names_only
        )
        return filters and replace(filters, oldest=request.sort == Sort.oldest)

    def look_up(self, request: Request) -> LookedUp:
        """Look up what a request needs before the indexes are searched."""
        parsed = parse_request(request)
        filters = self._compile(parsed)
        if filters is None:
            raise RequestError(f"nothing passes the filters of {quote(request.query)}")
        return self._look_up.read(parsed, filters)

    def _similar(self, message_id: str, limit: int) -> Response:
        wanted = strip_brackets(message_id)
        request = Request(message_id, Mode.semantic, limit, group=Group.message)
        filters = compile_filters(self._connection, (), self._languages)
        filters = filters and self._look_up.name_lists(filters)
        parameters = {"message_id": wanted, "most": SIMILAR_CHUNKS}
        rows = self._connection.execute(statement("search", "chunk_texts"), parameters).fetchall()
        if not rows or filters is None:
            raise MissingMessageError(f"no message {quote(message_id)} with text")
        texts = [build_document(subject, text) for text, subject in rows]
        self._look_up.open_index()  # now, so that it does not count as search time
        began = time.perf_counter()
        found = follow_live(
            self._look_up.open_index,
            lambda index: index.name,
            lambda index: self.retriever.retrieve_similar(index, wanted, texts, filters),
            lambda found: not found.candidates,
        )
        page = read_page(self._hits, request, found)
        return Response(
            end="far",
            query_id="",
            query=message_id,
            mode="similar",
            took_ms=milliseconds_since(began),
            short=page.is_short,
            hits=page.hits,
        )

    def _connected(self, work: Callable[[], T]) -> T:
        """Do some work; if the server closed the connection, reconnect and do it again once."""
        try:
            return work()
        except psycopg.OperationalError:
            if self._reconnect is None or not self._connection.broken:
                raise
            self._use(self._reconnect())
            return work()


def _find_next_row(request: Request, found: RankedMatches, page: Page) -> After | None:
    """Return the row after which the next page begins; None if there is none.

    A list by date continues from a place once earlier rows cannot be folded any more, or if it
    ended early. Otherwise, and in a ranking, rows are counted.
    """
    rows = request.rows_before + len(page.conversations or page.hits)
    last, dated = page.last, found.dated
    if page.has_more or (found.asked and last):
        assert last
        seeks = dated is not None and (found.seeks or rows >= FOLDED)
        return After(rows, last.message_id, last.sent_at if seeks else None)
    if dated and (place := dated.resumes_at):
        return After(rows, place.message_id, place.sent_at)
    return None


def _find_previous_row(request: Request, found: RankedMatches) -> After | None:
    """Return the row of the previous page; a list read from a place on is read back to it."""
    rows = max(0, request.rows_before - request.limit)
    if not found.seeks:
        return After(rows, "") if request.rows_before else None
    place = found.dated.begins_after if found.dated else None
    return After(rows, place.message_id, place.sent_at, is_end=True) if place else None


def _find_end(request: Request, found: RankedMatches) -> End:
    if found.dated and found.dated.horizon:
        return "depth"
    if found.is_cut:
        return "depth"
    return "far" if found.far or request.min_score is not None else "all"
