"""The application: routes, threads, errors. What pages say is made in documents.py."""

import contextlib
import logging
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from anyio import CapacityLimiter, to_thread
from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import (
    HTMLResponse,
    JSONResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
)
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from mail_assets.serving.documents import Documents
from mail_assets.serving.errors import ServingError, read_error
from mail_assets.serving.headers import SecurityHeaders
from mail_assets.serving.mcp_server import build_mcp_server
from mail_assets.serving.pages import Pages
from mail_assets.serving.urls import page_url

logger = logging.getLogger(__name__)

T = TypeVar("T")
Endpoint = Callable[[Request], Awaitable[Response]]

STATIC = Path(__file__).with_name("static")
#: Names that assistants on the same machine call it by: the page of another site cannot ask it by a
#: name of its own that leads to this machine (DNS rebinding).
LOCAL_HOSTS = ("127.0.0.1:*", "localhost:*", "[::1]:*")
#: Requests that wait, for each that runs; more are turned away at once.
MAX_WAITING = 4
#: Searches have no end, so robots read messages, threads and lists.
ROBOTS = "User-agent: *\nDisallow: /search\nDisallow: /similar\n"
#: Seconds that a page may be kept: what is forgotten must go.
MAX_AGE = {"search": 60, "similar": 60}
DEFAULT_MAX_AGE = 300


@dataclass(frozen=True)
class Page:
    """A page and its data: what makes each, from what `read` takes out of a request."""

    name: str
    read: Callable[[Request], tuple[Any, ...]]
    make_document: Callable[..., dict[str, Any]]
    make_html: Callable[..., str]

    @property
    def paths(self) -> tuple[str, ...]:
        """Where it is found; an id that no path can hold is a parameter."""
        return ("", "/{id:path}") if self.read is _read_id else ("",)


@dataclass
class Application:
    """Answers many clients at once; what blocks runs in about as many threads as searchers.

    `hosts` are the names that assistants call it by, beside those of this machine.
    """

    documents: Documents
    hosts: Sequence[str] = ()

    def __post_init__(self) -> None:
        self._pages = Pages(self.documents)
        self._mcp = build_mcp_server(self.documents)

    def build(self) -> Starlette:
        """Return the ASGI application."""
        return Starlette(
            routes=[*self._routes()],
            middleware=[Middleware(SecurityHeaders)],
            exception_handlers={404: self._show_error, 405: self._show_error},
            lifespan=self._live,
        )

    @contextlib.asynccontextmanager
    async def _live(self, _: Starlette) -> AsyncIterator[None]:
        self._limiter = CapacityLimiter(self.documents.service.options.searchers + 1)
        async with self._mcp.session_manager.run():
            yield

    def _routes(self) -> Iterator[BaseRoute]:
        documents, pages = self.documents, self._pages
        for page in (
            Page("search", _read_parameters, documents.search, pages.search),
            Page("message", _read_id, documents.message, pages.message),
            Page("thread", _read_id, documents.thread, pages.thread),
            Page("similar", _read_id, documents.similar, pages.similar),
            Page("lists", lambda _: (), documents.lists, pages.lists),
        ):
            for path in page.paths:
                yield Route(f"/{page.name}.json{path}", self._answer_data(page))
                yield Route(f"/{page.name}{path}", self._answer_page(page))
        yield Route("/", self._answer_home)
        yield Route("/message-id/flat/{id:path}", _redirect_to("thread"))
        yield Route("/message-id/{id:path}", _redirect_to("message"))
        security = TransportSecuritySettings(allowed_hosts=[*LOCAL_HOSTS, *self.hosts])
        # not mounted: a mounted application would answer for paths that are not its own
        yield from self._mcp.streamable_http_app(
            stateless_http=True, json_response=True, transport_security=security
        ).routes
        yield Route("/health", _answer_health)
        yield Route("/ready", self._answer_ready)
        yield Route("/robots.txt", _answer_robots)
        yield Mount("/static", StaticFiles(directory=STATIC))

    def _answer_page(self, page: Page) -> Endpoint:
        async def answer(request: Request) -> Response:
            try:
                html = await self._run(lambda: page.make_html(*page.read(request)))
            except Exception as error:
                return await self._show_error(request, error)
            return HTMLResponse(html, headers=_caching(page))

        return answer

    def _answer_data(self, page: Page) -> Endpoint:
        async def answer(request: Request) -> Response:
            try:
                document = await self._run(lambda: page.make_document(*page.read(request)))
            except Exception as error:
                told = _tell(error)
                return JSONResponse(told.as_json(), told.status, _error_headers(told))
            return JSONResponse(document, headers=_caching(page))

        return answer

    async def _answer_home(self, _: Request) -> Response:
        return HTMLResponse(self._pages.home())

    async def _answer_ready(self, _: Request) -> Response:
        """Say whether searches can be answered: the database does, at this moment."""
        try:
            await self._run(self.documents.check_ready)
        except Exception as error:
            told = _tell(error)
            return PlainTextResponse(f"{told.message}\n", told.status, _error_headers(told))
        return PlainTextResponse("ready\n")

    async def _show_error(self, request: Request, error: Exception) -> Response:
        told = _tell(error)
        parameters = request.query_params if request.url.path == "/search" else None
        html = self._pages.error(told, parameters)
        return HTMLResponse(html, told.status, _error_headers(told))

    async def _run(self, work: Callable[[], T]) -> T:
        """Do blocking work in a thread.

        Raises:
            ServingError: too many requests wait for one.
        """
        waiting = self._limiter.statistics().tasks_waiting
        if waiting >= MAX_WAITING * self._limiter.total_tokens:
            raise ServingError(503, "overloaded", "too many searches at once", retry_after=1)
        return await to_thread.run_sync(work, limiter=self._limiter)


def _tell(error: Exception) -> ServingError:
    if told := read_error(error):
        return told
    logger.error("a request failed", exc_info=error)
    return ServingError(500, "internal", "this is a fault of the program; it was logged")


def _caching(page: Page) -> Mapping[str, str]:
    return {"Cache-Control": f"public, max-age={MAX_AGE.get(page.name, DEFAULT_MAX_AGE)}"}


def _error_headers(error: ServingError) -> Mapping[str, str]:
    headers = {"Cache-Control": "no-store"}
    return headers | ({"Retry-After": str(error.retry_after)} if error.retry_after else {})


def _read_id(request: Request) -> tuple[str]:
    id = request.path_params.get("id") or request.query_params.get("id", "")
    if not id or "\0" in id:
        raise ServingError(400, "bad_request", "give the id of a message")
    return (id,)


def _read_parameters(request: Request) -> tuple[Mapping[str, str]]:
    given = request.query_params.multi_items()
    [(name, times), *_] = Counter(name for name, _ in given).most_common(1) or [("", 0)]
    if times > 1:
        raise ServingError(400, "bad_request", f"parameter {name[:40]!r} is given {times} times")
    return (dict(given),)


def _redirect_to(page: str) -> Endpoint:
    async def redirect(request: Request) -> Response:
        """Follow the links of other archives, brackets and final slash included."""
        id = request.path_params["id"].removesuffix("/").removeprefix("<").removesuffix(">")
        return RedirectResponse(page_url(page, id), 301)

    return redirect


async def _answer_health(_: Request) -> Response:
    return PlainTextResponse("ok\n")


async def _answer_robots(_: Request) -> Response:
    return PlainTextResponse(ROBOTS)
