"""The web application: routes, worker threads, and errors as pages or JSON."""

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from urllib.parse import quote

from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mail_assets.answers.answer import AnswerMaker, PassageMaker
from mail_assets.web.browse import Site
from mail_assets.web.documents import Documents
from mail_assets.web.limits import Admission, Clients, Cost, HostCheck, Hosts, Limits
from mail_assets.web.mcp import build_mcp_server, find_call_cost
from mail_assets.web.openapi import Endpoint
from mail_assets.web.paths import Paths
from mail_assets.web.privacy import find_mark_key
from mail_assets.web.requests import SAFE, page_url
from mail_assets.web.responses import (
    Compression,
    describe_error,
    error_headers,
    make_static_endpoint,
    respond_with_error,
    wants_page,
)

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
        key = find_mark_key(self.documents.service.options.forget_key)
        publication = replace(self.documents.publication, mark_key=key)
        self.documents = replace(self.documents, publication=publication)
        site = Site(self.base_url, self.title, self.about, self.descriptions)
        writers = self.limits.allowances[Cost.answer].at_once
        self.paths = Paths(self.documents, site, self.maker, writers)
        self._mcp = build_mcp_server(self.paths.shown, self.base_url)
        by_path = {one.path.split("/")[1]: one.cost for one in self.paths.all}
        self.costs = {**by_path, "mcp": find_call_cost, "static": None}

    def build(self) -> Starlette:
        """Return the ASGI application."""
        app = Starlette(
            routes=[*self._routes()],
            middleware=[
                Middleware(Compression),
                Middleware(SecurityHeaders),
                Middleware(ErrorResponses, respond=self._show_error),
                Middleware(HostCheck, hosts=Hosts(self.base_url, self.hosts), costs=self.costs),
                Middleware(Admission, limits=self.limits, clients=self.clients, costs=self.costs),
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
        for path in self.paths.all:
            yield from path.list_routes()
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
        yield Route("/static/{path:path}", make_static_endpoint())
        yield Route("/favicon.ico", make_static_endpoint("favicon.ico"))
        yield Route("/{path:path}/", _drop_slash)

    async def _show_error(self, request: Request, error: Exception) -> Response:
        shown = describe_error(error)
        # error pages contain names of lists, which a refused site must not read
        if shown.code == "wrong_host" or not wants_page(request):
            return respond_with_error(shown)
        parameters = request.query_params if request.url.path == "/search" else None
        headers = error_headers(shown)
        return HTMLResponse(self.paths.pages.error(shown, parameters), shown.status, headers)


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
