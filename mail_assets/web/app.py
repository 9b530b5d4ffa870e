"""The web application: routes, worker threads, and errors as pages or JSON."""

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import quote

from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mail_assets.answers.answer import AnswerMaker, PassageMaker
from mail_assets.reading.browsing import find_newest_id
from mail_assets.web.answers import Answering, AnswerRoutes
from mail_assets.web.browse import Archives, Front, Site
from mail_assets.web.commit_documents import CommitDocuments
from mail_assets.web.document_types import Document
from mail_assets.web.documents import Documents
from mail_assets.web.exports import Exports
from mail_assets.web.feeds import Feeds
from mail_assets.web.files import Downloads, FileRoutes
from mail_assets.web.limits import Admission, Clients, Cost, HostCheck, Hosts, Limits, find_cost
from mail_assets.web.mcp import build_mcp_server
from mail_assets.web.openapi import Archive, describe_api
from mail_assets.web.page_documents import PageDocuments, ThreadState
from mail_assets.web.pages import Pages, find_version
from mail_assets.web.privacy import find_mark_key
from mail_assets.web.requests import (
    SAFE,
    find_other_address,
    link_data,
    page_url,
    read_commit,
    read_first,
    read_id,
    read_id_place,
    read_list,
    read_list_place,
    read_month,
    read_nothing,
    read_patches_place,
    read_query,
    read_series_id,
    read_text,
    write_json,
)
from mail_assets.web.responses import (
    DEFAULT_MAX_AGE,
    SEARCH_MAX_AGE,
    Compression,
    KeptPage,
    KeptPages,
    allow_keeping,
    compress,
    describe_error,
    error_headers,
    is_known,
    make_static_endpoint,
    respond_packed,
    respond_with_error,
    tag_body,
    tag_document,
    wants_page,
)
from mail_assets.web.searchers import Workers
from mail_assets.web.series_documents import SeriesDocuments

Endpoint = Callable[[Request], Awaitable[Response]]

HTML, JSON, ATOM = "text/html", "application/json", "application/atom+xml"
XML, OPENSEARCH = "application/xml", "application/opensearchdescription+xml"
#: Worker threads for pages of conversations, so that message pages do not wait for these.
THREAD_PAGES = 2

#: Pages load styles and scripts of this site only, send requests to this site only, and run nothing
#: inline (https://www.w3.org/TR/CSP3/).
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    # URLs contain queries, so other sites must not see them. "no-referrer" would also remove the
    # Origin of this site's own forms.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}


class ErrorResponses:
    """ASGI middleware that responds to errors raised before the response has begun."""

    def __init__(
        self, app: ASGIApp, respond: Callable[[Request, Exception], Awaitable[Response]]
    ) -> None:
        self._app, self._respond = app, respond

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or respond with its error."""
        has_begun = False

        async def send_and_note(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        try:
            await self._app(scope, receive, send_and_note)
        except Exception as error:
            if has_begun or scope["type"] != "http":
                raise
            response = await self._respond(Request(scope), error)
            await response(scope, receive, send)


class SecurityHeaders:
    """ASGI middleware that adds HEADERS to every response."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, with the headers added."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        await self.app(scope, receive, send_with_headers)


@dataclass(frozen=True)
class View:
    """A document and its format, at `/NAME`, and at `/NAME/ID` if `read` reads an id.

    `find_address` returns the canonical address to redirect to, or None if the request has it.
    """

    name: str
    read: Callable[[Request], tuple[Any, ...]]
    make_document: Callable[..., Mapping[str, Any]]
    write: Callable[[Any], str]
    media_type: str
    max_age: int = DEFAULT_MAX_AGE
    find_address: Callable[..., str | None] = lambda *_: None

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths of its routes; an id that does not fit into a path is a parameter."""
        path = f"/{self.name}"
        return (
            (path, f"{path}/{{id:path}}")
            if self.read in (read_id, read_id_place, read_series_id, read_text)
            else (path,)
        )


def _list_views(
    documents: Documents,
    of_pages: PageDocuments,
    pages: Pages,
    feeds: Feeds,
    describe_api: Callable[[], Document],
) -> Iterator[View]:
    age = SEARCH_MAX_AGE
    archives = Archives(documents.service, documents.publication)
    searches, listed = of_pages.search, of_pages.front.archives
    yield View("", read_nothing, of_pages.front.home, pages.home, HTML, age)
    yield View("search", read_query, searches, pages.search, HTML, age, find_other_address)
    yield View("search.json", read_query, documents.search, _write_data, JSON, age)
    yield View("search.atom", read_query, feeds.search, feeds.write, ATOM, age)
    yield View("message", read_text, of_pages.message, pages.message, HTML)
    yield View("message.json", read_text, documents.message, _write_data, JSON)
    yield View("thread.json", read_id, documents.thread, _write_data, JSON)
    yield View("thread.atom", read_id_place, feeds.thread, feeds.write, ATOM)
    yield View("similar", read_id, of_pages.similar, pages.similar, HTML, age)
    yield View("similar.json", read_id, documents.similar, _write_data, JSON, age)
    yield View("openapi.json", read_nothing, describe_api, write_json, JSON)
    yield View("lists", read_nothing, listed.lists, pages.lists, HTML)
    yield View("lists.json", read_nothing, archives.lists, _write_data, JSON)
    yield View("lists/{list}", read_list, of_pages.list, pages.months, HTML)
    yield View("lists.json/{list}", read_list, archives.months, _write_data, JSON)
    yield View("lists.atom/{list}", read_list_place, feeds.archive, feeds.write, ATOM)
    yield View("lists.atom/{list}/{month}", read_list_place, feeds.archive, feeds.write, ATOM)
    yield View("lists/{list}/{month}", read_month, listed.month, pages.month, HTML)
    yield View("lists.json/{list}/{month}", read_month, archives.month, _write_data, JSON)


def _list_patch_views(documents: Documents, of_pages: Documents, pages: Pages) -> Iterator[View]:
    commits, shown = CommitDocuments(documents), CommitDocuments(of_pages)
    series, shown_series = SeriesDocuments(documents), SeriesDocuments(of_pages)
    address, data_address = commits.find_commit_address, commits.find_commit_data_address
    yield View("commits/{sha}", read_commit, shown.commit, pages.commit, HTML, find_address=address)
    yield View(
        *("commits.json/{sha}", read_commit, commits.commit, _write_data, JSON),
        find_address=data_address,
    )
    yield View("series", read_series_id, shown_series.series, pages.series, HTML)
    yield View("series.json", read_series_id, series.series, _write_data, JSON)
    age, place = SEARCH_MAX_AGE, read_patches_place
    yield View("patches/{list}/open", place, shown_series.open, pages.open_patches, HTML, age)
    yield View("patches.json/{list}/open", place, series.open, _write_data, JSON, age)
    yield View("patches/{list}/applied", place, shown.applied, pages.applied, HTML, age)
    yield View("patches.json/{list}/applied", place, commits.applied, _write_data, JSON, age)
    yield View("patches.atom/{list}/applied", place, commits.feed, pages.applied_feed, ATOM, age)


def _write_data(document: Mapping[str, Any]) -> str:
    return write_json(link_data(document))


@dataclass
class Application:
    """Answers many clients at once; searches, reads and answers have separate threads.

    `base_url` is the public URL, without a slash at its end; links in feeds and mailboxes begin
    with it. `hosts` are further host names to accept, in addition to those of the URL and this
    machine. `title` and `about` describe the archive, `descriptions` its lists by name.
    """

    documents: Documents
    base_url: str
    maker: AnswerMaker = field(default_factory=PassageMaker)
    hosts: Sequence[str] = ()
    limits: Limits = field(default_factory=Limits)
    clients: Clients = field(default_factory=Clients)
    title: str = ""
    about: str = ""
    descriptions: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        searchers = self.documents.service.options.searchers
        # separate threads: a read must not wait for searches
        self._reads = Workers(searchers + 1)
        self._searches = Workers(searchers + 1)
        self._writers = Workers(self.limits.allowances[Cost.answer].at_once)
        has_chat = not isinstance(self.maker, PassageMaker)
        site = Site(self.base_url, self.title, self.about, self.descriptions)
        key = find_mark_key(self.documents.service.options.forget_key)
        publication = replace(self.documents.publication, mark_key=key)
        self.documents = replace(self.documents, publication=publication)
        self._exports = Exports(self.documents, self.base_url)
        publication = replace(publication, marks_all=True)
        documents = replace(self.documents, surface="page", publication=publication)
        self._pages = Pages(documents, site, has_chat)
        self._page_documents = PageDocuments(documents, Front(documents, site))
        self._threads, self._kept = Workers(THREAD_PAGES), KeptPages()
        self._mcp = build_mcp_server(documents, self.base_url)
        addresses = self.documents.publication.addresses
        self._settings = f"{find_version()} {addresses} {site} {has_chat}"

    @property
    def _version(self) -> str:
        """Part of each entity tag: the settings that affect how documents are written."""
        return f"{self._settings} {','.join(self.documents.service.options.lists)}"

    def build(self) -> Starlette:
        """Return the ASGI application."""
        app = Starlette(
            routes=[*self._routes()],
            middleware=[
                Middleware(Compression),
                Middleware(SecurityHeaders),
                Middleware(ErrorResponses, respond=self._show_error),
                Middleware(HostCheck, hosts=Hosts(self.base_url, self.hosts)),
                Middleware(Admission, limits=self.limits, clients=self.clients),
            ],
            exception_handlers={404: self._show_error, 405: self._show_error},
            lifespan=self._live,
        )
        # Starlette would redirect to the client's Host, and caches would keep that for others.
        app.router.redirect_slashes = False
        return app

    @contextlib.asynccontextmanager
    async def _live(self, _: Starlette) -> AsyncIterator[None]:
        async with self._mcp.session_manager.run():
            yield

    def _routes(self) -> Iterator[BaseRoute]:
        downloads = Downloads(self.documents, self._exports)
        yield from FileRoutes(self._reads, self._exports, downloads).list_routes()
        answering = Answering(replace(self.documents, surface="answer"), self.maker)
        answers = AnswerRoutes(self._searches, self._writers, answering, self._pages)
        yield from answers.list_routes()
        feeds = Feeds(replace(self.documents, surface="feed"), self._exports)
        for view in _list_views(
            self.documents, self._page_documents, self._pages, feeds, self._describe_api
        ):
            for path in view.paths:
                yield Route(path, self._answer_view(view))
        for view in _list_patch_views(self.documents, self._page_documents.documents, self._pages):
            for path in view.paths:
                yield Route(path, self._answer_view(view))
        for path in ("/thread", "/thread/{id:path}"):
            yield Route(path, self._answer_thread)
        front = self._page_documents.front
        yield Route("/robots.txt", self._send_text(read_nothing, front.write_robots, "text/plain"))
        yield Route("/sitemap.xml", self._send_text(read_first, front.list_sitemaps, XML))
        yield Route("/sitemap/{list}/{month}", self._send_text(read_month, front.map_month, XML))
        path = "/opensearch.xml"
        yield Route(path, self._send_text(read_nothing, self._pages.opensearch, OPENSEARCH))
        yield Route("/message-id/flat/{id:path}", _redirect_to("thread"))
        yield Route("/message-id/{id:path}", _redirect_to("message"))
        # hosts and origins of all routes are checked by HostCheck
        unchecked = TransportSecuritySettings(enable_dns_rebinding_protection=False)
        # not mounted, because a mounted application turns 405 of other paths into 404
        for route in self._mcp.streamable_http_app(
            stateless_http=True, json_response=True, transport_security=unchecked
        ).routes:
            assert isinstance(route, Route)
            # no GET, because it would hold a connection and wait for events that never come
            yield Route(route.path, route.endpoint, methods=["POST"])
        yield Route("/health", _answer_health)
        yield Route("/ready", self._answer_ready)
        yield Route("/static/{path:path}", make_static_endpoint())
        yield Route("/favicon.ico", make_static_endpoint("favicon.ico"))
        yield Route("/{path:path}/", _drop_slash)

    def _send_text(
        self, read: Callable[[Request], tuple[Any, ...]], write: Callable[..., str], media_type: str
    ) -> Endpoint:
        async def answer(request: Request) -> Response:
            given = read(request)
            text = await self._reads.run(lambda: write(*given))
            return Response(text, headers=allow_keeping(DEFAULT_MAX_AGE), media_type=media_type)

        return answer

    def _describe_api(self) -> Document:
        service, publication = self.documents.service, self.documents.publication
        newest = service.read(find_newest_id) or "id@example.org"
        archive = Archive(service.options.lists, publication.private_keys, newest)
        return describe_api(self.base_url, archive)

    def _answer_view(self, view: View) -> Endpoint:
        cost = find_cost("GET", view.paths[0], b"")
        workers = self._searches if cost is Cost.search else self._reads

        async def answer(request: Request) -> Response:
            return await workers.run(lambda: self._respond(request, view))

        return answer

    def _respond(self, request: Request, view: View) -> Response:
        given = view.read(request)
        if address := view.find_address(*given):
            # not permanent, because "2y" means another day tomorrow
            return RedirectResponse(address, 303, allow_keeping(view.max_age))
        document = view.make_document(*given)
        tag = tag_document(document, f"{self._version} {view.media_type}")
        headers = allow_keeping(view.max_age, tag)
        if is_known(request, tag):
            return Response(status_code=304, headers=headers)
        body = compress(view.write(document).encode())
        return respond_packed(request, body, headers, view.media_type)

    async def _answer_thread(self, request: Request) -> Response:
        [id] = read_id(request)
        return await self._threads.run(lambda: self._respond_with_thread(request, id))

    def _respond_with_thread(self, request: Request, id: str) -> Response:
        """Return the cached page of a thread; it is made again if its rows have changed."""
        with self.documents.service.reading():
            key, rows = self._page_documents.read_rows(id)
            page = self._find_thread(key, rows)
        if page is None:
            with self._kept.making(key):
                page = self._find_thread(key, rows) or self._make_thread(key, rows, id)
        headers = allow_keeping(DEFAULT_MAX_AGE, page.tag)
        if is_known(request, page.tag):
            return Response(status_code=304, headers=headers)
        return respond_packed(request, page.packed, headers, HTML)

    def _find_thread(self, key: str, rows: str) -> KeptPage | None:
        page = self._kept.find(key)
        return page if page and self._page_documents.is_current(page.state, rows) else None

    def _make_thread(self, key: str, rows: str, id: str) -> KeptPage:
        document, named = self._page_documents.documents.read_thread(id)
        posts = tuple(post["message_id"] for post in document["posts"])
        mentions, patches = tuple(document["mentions"]), document["patch_states"]
        state = ThreadState(rows, named, mentions, posts, patches)
        packed = compress(self._pages.thread({**document}).encode())
        page = KeptPage(tag_body(packed), packed, state)
        self._kept.keep(key, page)
        return page

    async def _answer_ready(self, _: Request) -> Response:
        try:
            await self._reads.run(self.documents.check_ready)
        except Exception as error:
            shown = describe_error(error)
            return PlainTextResponse(f"{shown.message}\n", shown.status, error_headers(shown))
        return PlainTextResponse("ready\n")

    async def _show_error(self, request: Request, error: Exception) -> Response:
        shown = describe_error(error)
        # error pages contain names of lists, which a refused site must not read
        if shown.code == "wrong_host" or not wants_page(request):
            return respond_with_error(shown)
        parameters = request.query_params if request.url.path == "/search" else None
        headers = error_headers(shown)
        return HTMLResponse(self._pages.error(shown, parameters), shown.status, headers)


def _redirect_to(page: str) -> Endpoint:
    async def redirect(request: Request) -> Response:
        """Redirect links in the style of public-inbox and pgarchives; ids may have brackets."""
        id = request.path_params["id"].removesuffix("/").removeprefix("<").removesuffix(">")
        return RedirectResponse(page_url(page, id), 301)

    return redirect


async def _drop_slash(request: Request) -> Response:
    """Redirect to the path without its last slash; "//host" must not lead to another site."""
    path = quote(request.path_params["path"].strip("/"), safe=f"/{SAFE}")
    query = request.url.query
    return RedirectResponse(f"/{path}{'?' if query else ''}{query}", 308)


async def _answer_health(_: Request) -> Response:
    return PlainTextResponse("ok\n")
