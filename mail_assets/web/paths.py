"""Table of the site's paths: parameters, response, and the description for programs of each.

app.py makes routes of them, and openapi.py the description of the API.
"""

from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass, replace
from typing import Any

from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response, StreamingResponse

from mail_assets.answers.answer import AnswerMaker, PassageMaker
from mail_assets.reading.browsing import find_newest_id
from mail_assets.search.language.request import MAX_QUERY
from mail_assets.search.response import Response as SearchResponse
from mail_assets.web.answers import MAX_FIELDS, Answering, AnswerRoutes
from mail_assets.web.browse import Archives, Front, Site
from mail_assets.web.commit_documents import CommitDocuments
from mail_assets.web.document_types import (
    Document,
    ListMonthsDocument,
    ListsDocument,
    MessageDocument,
    MonthDocument,
    SearchPage,
    ThreadDocument,
)
from mail_assets.web.documents import Documents
from mail_assets.web.exports import ADDRESSES_HIDDEN, Export, Exports
from mail_assets.web.feeds import Feeds
from mail_assets.web.files import Download, Downloads
from mail_assets.web.limits import Asked, Cost, PathCost
from mail_assets.web.openapi import About, Archive, Path, describe_api
from mail_assets.web.page_documents import PageDocuments
from mail_assets.web.pages import Pages, find_version
from mail_assets.web.patch_types import (
    AppliedDocument,
    CommitDocument,
    OpenPatchesDocument,
    SeriesDocument,
)
from mail_assets.web.requests import (
    ADDRESS,
    BY_ID,
    BY_ID_FROM,
    FILE,
    FROM_FIRST,
    NOTHING,
    OF_COMMIT,
    OF_LIST,
    OF_LIST_FROM,
    OF_MONTH,
    OF_MONTH_FIRST,
    OF_MONTH_FROM,
    OF_SERIES,
    QUESTION,
    SEARCH,
    TEXT,
    Reading,
    find_other_address,
    link_data,
    write_json,
)
from mail_assets.web.responses import (
    DEFAULT_MAX_AGE,
    SEARCH_MAX_AGE,
    allow_keeping,
    compress,
    describe_error,
    error_headers,
    is_known,
    respond_packed,
    tag_document,
)
from mail_assets.web.searchers import Workers
from mail_assets.web.series_documents import SeriesDocuments
from mail_assets.web.thread_pages import ThreadPages

HTML, JSON, ATOM = "text/html", "application/json", "application/atom+xml"
PLAIN, GZIP, XML = "text/plain", "application/gzip", "application/xml"
OPENSEARCH = "application/opensearchdescription+xml"
#: Worker threads for pages of conversations, so that message pages do not wait for these.
THREAD_PAGES = 2
_NEWEST = "The newest messages; the link `next` of the feed leads to the older ones."
_WHOLE = (
    "mboxrd in gzip, the oldest month first, as many messages as the JSON says. "
    "X-Export-Messages of the last one is their number: without it a part is missing."
)


Make = Callable[..., Mapping[str, Any]]


@dataclass
class Paths:
    """The paths of an archive; searches, reads and answers have separate threads.

    `writers` is the number of answers at once.
    """

    documents: Documents
    site: Site
    maker: AnswerMaker
    writers: int

    def __post_init__(self) -> None:
        searchers = self.documents.service.options.searchers
        # separate threads: a read must not wait for searches
        self._reads, self._searches = Workers(searchers + 1), Workers(searchers + 1)
        self._threads = Workers(THREAD_PAGES)
        has_chat = not isinstance(self.maker, PassageMaker)
        publication = replace(self.documents.publication, marks_all=True)
        self.shown = replace(self.documents, surface="page", publication=publication)
        self.pages = Pages(self.shown, self.site, has_chat)
        self._thread_pages = ThreadPages(self.shown, self.pages)
        self._shown = PageDocuments(self.shown, Front(self.shown, self.site))
        self._exports = Exports(self.documents, self.site.base_url)
        self._feeds = Feeds(replace(self.documents, surface="feed"), self._exports)
        addresses = publication.addresses
        self._settings = f"{find_version()} {addresses} {self.site} {has_chat}"
        #: The first that matches a request answers it.
        self.all = [*self._list_all()]

    def _list_all(self) -> Iterator[Path]:
        for tag, paths in (
            ("search", self._list_searches()),
            ("messages", self._list_messages()),
            ("lists", self._list_lists()),
            ("patches", self._list_patches()),
            ("service", self._list_own()),
        ):
            for path in paths:
                yield path if path.tag else path._replace(tag=tag)

    # fmt: off
    def _list_searches(self) -> Iterator[Path]:
        age, shown = SEARCH_MAX_AGE, self._shown
        yield self._page("/", NOTHING, shown.front.home, self.pages.home, age)
        find = find_other_address
        yield self._page(
            "/search", SEARCH, shown.search, self.pages.search, age, find, cost=_cost_search
        )
        yield self._data("/search.json", SEARCH, self.documents.search, SearchPage, About(
            "search", "Search",
            "Conversations with their best messages, or messages; without parameters the newest. "
            "`next` leads through all that match: by date to the last message, by relevance until "
            "what follows is too far from the question, or the ranking ends; `end` says which."
        ), age, cost=Cost.search)
        yield self._feed("/search.atom", SEARCH, self._feeds.search, About(
            "search_feed", "A feed of a search",
            "The newest messages that have every word, an entry for each; `sort=relevance` gives "
            "the best. The link `next` of the feed leads to the following ones."
        ), age, cost=Cost.search)
        yield self._mailbox("/search.mbox.gz", SEARCH, self._exports.search, About(
            "search_mailbox", "The messages of a search as a mailbox",
            "mboxrd in gzip. X-Export-Total is the number of messages that match, "
            "X-Export-Truncated is true if they are more than the 10,000 that a mailbox of a "
            "search has at most. The last message has both fields too, and X-Export-Messages, the "
            "number of messages.",
            headers={
                "X-Export-Total": "the number of messages that match, `at least N` if more may",
                "X-Export-Truncated": "some of them are left out",
            },
        ), age)

    def _list_messages(self) -> Iterator[Path]:
        documents, shown, pages = self.documents, self._shown, self.pages
        files = Downloads(documents, self._exports)
        yield self._data("/message.json/{id:path}", TEXT, documents.message, MessageDocument, About(
            "get_message", "A message",
            "Its text, its place in the thread and in its lists, and other texts of its id."
        ))
        yield self._file("/message.mbox/{id:path}", TEXT, files.message, About(
            "get_message_mailbox", "A message as a mailbox",
            "mboxrd. If addresses are hidden, it is written from the stored fields; otherwise it "
            "has the original bytes."
        ), "application/mbox")
        yield self._data("/thread.json/{id:path}", BY_ID, documents.thread, ThreadDocument, About(
            "get_thread", "A page of a thread",
            "The page that has the message of the id, in the order of the tree."
        ))
        yield self._feed("/thread.atom/{id:path}", BY_ID_FROM, self._feeds.thread, About(
            "get_thread_feed", "A feed of a thread", _NEWEST
        ))
        yield self._mailbox("/thread.mbox.gz/{id:path}", BY_ID, self._exports.thread, About(
            "get_thread_mailbox", "A whole thread as a mailbox",
            "mboxrd in gzip, the oldest message first. X-Export-Messages of the last one is "
            "their number."
        ))
        yield self._data("/similar.json/{id:path}", BY_ID, documents.similar, SearchResponse, About(
            "get_similar", "The messages nearest in meaning to one", "The best ten."
        ), SEARCH_MAX_AGE, cost=Cost.search)
        # before the page of a message, which takes any path
        yield self._file("/message/{id:path}/attachment/{number}", FILE, files.attachment, About(
            "get_attachment", "An attachment",
            "Where addresses are hidden, only plain text, with its addresses masked."
        ), PLAIN, "application/octet-stream")
        yield self._page("/message/{id:path}", TEXT, shown.message, pages.message)
        yield Path("/thread/{id:path}", self._answer_thread, BY_ID.table)
        age, cost = SEARCH_MAX_AGE, Cost.search
        yield self._page("/similar/{id:path}", BY_ID, shown.similar, pages.similar, age, cost=cost)

    def _list_lists(self) -> Iterator[Path]:
        archives = Archives(self.documents.service, self.documents.publication)
        exports, feeds = self._exports, self._feeds
        yield self._data("/lists.json", NOTHING, archives.lists, ListsDocument, About(
            "list_lists", "The lists", "All lists with their months."
        ))
        yield self._data("/lists.json/{list}", OF_LIST, archives.months, ListMonthsDocument, About(
            "get_list", "A list", "Its months, with links to each."
        ))
        month, first = "/lists{}/{{list}}/{{month}}", OF_MONTH_FIRST
        yield self._data(month.format(".json"), first, archives.month, MonthDocument, About(
            "get_month", "A page of a month",
            "Its messages, thread by thread; `next` leads to the rest, `later_url` to the next "
            "month."
        ))
        yield self._mailbox("/lists.mbox.gz/{list}", OF_LIST, exports.archive, About(
            "get_list_mailbox", "A list as a mailbox", _WHOLE
        ))
        yield self._feed("/lists.atom/{list}", OF_LIST_FROM, feeds.of_list, About(
            "get_list_feed", "A feed of a list", _NEWEST
        ))
        yield self._mailbox(month.format(".mbox.gz"), OF_MONTH, exports.archive, About(
            "get_month_mailbox", "A month as a mailbox", _WHOLE
        ))
        yield self._feed(month.format(".atom"), OF_MONTH_FROM, feeds.of_month, About(
            "get_month_feed", "A feed of a month", _NEWEST
        ))
        front, pages = self._shown.front, self.pages
        yield self._page("/lists", NOTHING, front.archives.lists, pages.lists)
        yield self._page("/lists/{list}", OF_LIST, self._shown.list, pages.months)
        yield self._page(month.format(""), first, front.archives.month, pages.month)
        yield self._text("/robots.txt", NOTHING, front.write_robots, PLAIN)._replace(cost=None)
        yield self._text("/sitemap.xml", FROM_FIRST, front.list_sitemaps, XML)
        yield self._text("/sitemap/{list}/{month}", first, front.map_month, XML)
        yield self._text("/opensearch.xml", NOTHING, pages.opensearch, OPENSEARCH)

    def _list_patches(self) -> Iterator[Path]:
        age, at, pages = SEARCH_MAX_AGE, OF_LIST_FROM, self.pages
        commits, shown = map(CommitDocuments, (self.documents, self.shown))
        series, shown_series = map(SeriesDocuments, (self.documents, self.shown))
        yield self._data("/commits.json/{sha}", OF_COMMIT, commits.commit, CommitDocument, About(
            "get_commit", "A commit, and the mail that decided it",
            "Its mails best first, each with its evidence; where none is certain, `reason` says "
            "why. Digits that begin one commit are redirected to it, those of several are an error "
            "that names them in `allowed`.",
            moved="the digits begin one commit: Location has its address",
        ), DEFAULT_MAX_AGE, commits.find_commit_data_address)
        yield self._data("/series.json/{id:path}", OF_SERIES, series.series, SeriesDocument, About(
            "get_series", "A series of patches in all its versions",
            "The state of each change, with its evidence. With `old` and `new` also the difference "
            "between two of its postings.",
            "A series of patches, by any id",
        ), cost=_cost_series)
        yield self._data("/patches.json/{list}/open", at, series.open, OpenPatchesDocument, About(
            "list_open_patches", "The open patches of a list",
            "The newest first. A page reads 1,000 messages: it may be short and have a `next`."
        ), age)
        applied = commits.applied
        yield self._data("/patches.json/{list}/applied", at, applied, AppliedDocument, About(
            "list_applied", "What was applied",
            "The newest commits with a certain mail. A page reads 1,000 commits."
        ), age)
        yield self._feed("/patches.atom/{list}/applied", at, commits.feed, About(
            "get_applied_feed", "A feed of what was applied",
            "The newest commits with a certain mail; the link `next` leads to the older ones."
        ), age, pages.applied_feed)
        options = (DEFAULT_MAX_AGE, shown.find_commit_address)
        yield self._page("/commits/{sha}", OF_COMMIT, shown.commit, pages.commit, *options)
        yield self._page(
            "/series/{id:path}", OF_SERIES, shown_series.series, pages.series, cost=_cost_series
        )
        yield self._page("/patches/{list}/open", at, shown_series.open, pages.open_patches, age)
        yield self._page("/patches/{list}/applied", at, shown.applied, pages.applied, age)

    def _list_own(self) -> Iterator[Path]:
        own = self._write(self._describe_api, write_json, JSON)
        yield self._row("/openapi.json", NOTHING, own, About(
            "describe_api", "This description", "OpenAPI 3.1."
        ), JSON)
        answering = Answering(replace(self.documents, surface="answer"), self.maker)
        answers = AnswerRoutes(self._searches, Workers(self.writers), answering, self.pages)
        yield Path("/answer", answers.handle, QUESTION.table, (HTML,), About(
            "show_answer_form", "The form that asks a question",
            "A page for people. POST asks the question."
        ), "answers", ("GET", "POST"), _cost_answer)
        about = About("check_health", "Liveness", "The process answers.")
        yield Path("/health", _answer_health, {}, (PLAIN,), about, cost=None)
        about = About("check_ready", "Readiness", "The database answers too.")
        yield Path("/ready", self._answer_ready, {}, (PLAIN,), about)
    # fmt: on

    def _row(
        self,
        path: str,
        reading: Reading,
        respond: Callable[..., Response],
        about: About | None = None,
        *results: type | str,
        cost: PathCost = Cost.read,
    ) -> Path:
        cost_of_get = cost(Asked("GET")) if callable(cost) else cost
        workers = self._searches if cost_of_get is Cost.search else self._reads

        async def answer(request: Request) -> Response:
            return await workers.run(lambda: respond(request, *reading.read(request)))

        return Path(path, answer, reading.table, results, about, cost=cost)

    def _page(
        self,
        path: str,
        reading: Reading,
        make: Make,
        write: Callable[[Any], str],
        *options: Any,
        **row: Any,
    ) -> Path:
        return self._row(path, reading, self._write(make, write, HTML, *options), **row)

    def _data(
        self,
        path: str,
        reading: Reading,
        make: Make,
        result: type,
        about: About,
        *options: Any,
        **row: Any,
    ) -> Path:
        respond = self._write(make, _write_data, JSON, *options)
        return self._row(path, reading, respond, about, result, **row)

    def _feed(
        self,
        path: str,
        reading: Reading,
        make: Make,
        about: About,
        max_age: int = DEFAULT_MAX_AGE,
        write: Callable[[Any], str] | None = None,
        cost: PathCost = Cost.read,
    ) -> Path:
        respond = self._write(make, write or self._feeds.write, ATOM, max_age)
        return self._row(path, reading, respond, about, ATOM, cost=cost)

    def _text(
        self, path: str, reading: Reading, write: Callable[..., str], media_type: str
    ) -> Path:
        headers = allow_keeping(DEFAULT_MAX_AGE)

        def respond(_: Request, *given: Any) -> Response:
            return Response(write(*given), headers=headers, media_type=media_type)

        return self._row(path, reading, respond)

    def _mailbox(
        self,
        path: str,
        reading: Reading,
        make: Callable[..., Export],
        about: About,
        max_age: int = DEFAULT_MAX_AGE,
    ) -> Path:
        def respond(request: Request, *given: Any) -> Response:
            export = make(*given)
            headers = {**_as_file(export.name, max_age, export.tag), **export.fields}
            if export.tag and is_known(request, export.tag):
                return Response(status_code=304, headers=allow_keeping(max_age, export.tag))
            pieces = self._reads.follow(export.pieces)
            return StreamingResponse(pieces, headers=headers, media_type=GZIP)

        return self._row(path, reading, respond, about, GZIP, cost=Cost.export)

    def _file(
        self,
        path: str,
        reading: Reading,
        make: Callable[..., Download],
        about: About,
        *results: str,
    ) -> Path:
        def respond(_: Request, *given: Any) -> Response:
            file = make(*given)
            hidden = {ADDRESSES_HIDDEN: str(file.hidden)} if file.hidden else {}
            headers = {**_as_file(file.name), **hidden}
            return Response(file.data, headers=headers, media_type=file.media_type)

        return self._row(path, reading, respond, about, *results)

    def _write(
        self,
        make: Make,
        write: Callable[[Any], str],
        media_type: str,
        max_age: int = DEFAULT_MAX_AGE,
        find_address: Callable[..., str | None] = lambda *_: None,
    ) -> Callable[..., Response]:
        """Return a function that responds with a document, or redirects to its address.

        `find_address` returns the canonical address, or None if the request has it.
        """

        def respond(request: Request, *given: Any) -> Response:
            if address := find_address(*given):
                # not permanent, because "2y" means another day tomorrow
                return RedirectResponse(address, 303, allow_keeping(max_age))
            document = make(*given)
            lists = ",".join(self.documents.service.options.lists)
            tag = tag_document(document, f"{self._settings} {lists} {media_type}")
            headers = allow_keeping(max_age, tag)
            if is_known(request, tag):
                return Response(status_code=304, headers=headers)
            return respond_packed(request, compress(write(document).encode()), headers, media_type)

        return respond

    def _describe_api(self) -> Document:
        service, publication = self.documents.service, self.documents.publication
        newest = service.read(find_newest_id) or "id@example.org"
        archive = Archive(service.options.lists, publication.private_keys, newest)
        return describe_api(self.all, self.site.base_url, archive)

    async def _answer_thread(self, request: Request) -> Response:
        [id] = BY_ID.read(request)
        page = await self._threads.run(lambda: self._thread_pages.read(id))
        headers = allow_keeping(DEFAULT_MAX_AGE, page.tag)
        if is_known(request, page.tag):
            return Response(status_code=304, headers=headers)
        return respond_packed(request, page.packed, headers, HTML)

    async def _answer_ready(self, _: Request) -> Response:
        try:
            await self._reads.run(self.documents.check_ready)
        except Exception as error:
            shown = describe_error(error)
            return PlainTextResponse(f"{shown.message}\n", shown.status, error_headers(shown))
        return PlainTextResponse("ready\n")


async def _answer_health(_: Request) -> Response:
    return PlainTextResponse("ok\n")


def _cost_search(asked: Asked) -> Cost:
    """A search with other parameters than an address is redirected; a long one may keep them."""
    names = _read_names(asked.query)
    return Cost.read if names is not None and names - ADDRESS else Cost.search


def _cost_series(asked: Asked) -> Cost:
    """A comparison of two postings costs as much as a search."""
    names = _read_names(asked.query)
    return Cost.search if names is None or names & {"old", "new"} else Cost.read


def _cost_answer(asked: Asked) -> Cost:
    return Cost.answer if asked.method == "POST" else Cost.read


def _read_names(query: bytes) -> Set[str] | None:
    """Return the names of the parameters of a query string, None if it is too long to parse."""
    is_long = query.count(b"&") >= MAX_FIELDS or len(query) > MAX_QUERY
    return None if is_long else QueryParams(query).keys()


def _write_data(document: Mapping[str, Any]) -> str:
    return write_json(link_data(document))


def _as_file(name: str, max_age: int = DEFAULT_MAX_AGE, tag: str = "") -> Mapping[str, str]:
    """Return headers that make a browser save the response (RFC 6266)."""
    disposition = {"Content-Disposition": f'attachment; filename="{name}"'}
    return disposition | allow_keeping(max_age, tag)
