"""What is looked at before anything runs: the size of a request, what it costs, and who asks."""

import json
from collections.abc import Awaitable, Callable
from contextlib import ExitStack

import anyio
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mail_assets.serving.clients import Clients
from mail_assets.serving.errors import ServingError
from mail_assets.serving.limits import Cost, Limits
from mail_assets.serving.search_address import ADDRESS

#: Bytes of a body: a question, or the call of a tool.
MAX_BODY = 256 * 1024
#: Seconds that a body may take to arrive.
BODY_SECONDS = 10
#: What is asked by machines that watch, and what is read from files.
_FREE = frozenset({"health", "robots.txt", "static"})
#: Parameters that are counted.
MAX_FIELDS = 50
_SEARCHES = frozenset({"search", "similar"})
_EXPORTS = frozenset({"search.mbox.gz", "thread.mbox.gz"})
_SEARCHING_TOOLS = frozenset({"semantic_search", "similar", "explain_search"})

Refuse = Callable[[Request, Exception], Awaitable[Response]]


class Admission:
    """ASGI middleware that admits requests within limits; `refuse` makes the other responses."""

    def __init__(self, app: ASGIApp, limits: Limits, clients: Clients, refuse: Refuse) -> None:
        self._app, self._limits, self._clients, self._refuse = app, limits, clients, refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        with ExitStack() as admitted:
            try:
                body = await _read_body(scope, receive)
                if cost := find_cost(scope["method"], scope["path"], body, scope["query_string"]):
                    client = self._clients.identify(scope)
                    admitted.enter_context(self._limits.admit(client, cost))
            except ServingError as error:
                response = await self._refuse(Request(scope), error)
                await response(scope, receive, send)
            else:
                await self._app(scope, _replay(body, receive), send)


def find_cost(method: str, path: str, body: bytes, query: bytes = b"") -> Cost | None:
    """Return what a request costs, None where it is free."""
    page = path.removeprefix("/").partition("/")[0]
    name = page.partition(".")[0]
    if page in _FREE:
        return None
    if page in _EXPORTS:
        return Cost.export
    if page == "search" and _is_redirected(query):
        return Cost.read
    if name == "mcp":
        return Cost.search if _calls_search(body) else Cost.read
    if name == "answer" and method == "POST":
        return Cost.answer
    return Cost.search if name in _SEARCHES else Cost.read


def _is_redirected(query: bytes) -> bool:
    """Say whether a page of a search is asked for by more than its address has: that finds nothing.

    Of a long query nothing is said.
    """
    return query.count(b"&") < MAX_FIELDS and bool(QueryParams(query).keys() - ADDRESS)


def _calls_search(body: bytes) -> bool:
    """Say whether a message of the Model Context Protocol calls a tool that searches."""
    try:
        match json.loads(body):
            case {"params": {"name": str(name)}}:
                return name in _SEARCHING_TOOLS
    except (ValueError, RecursionError):
        pass  # the protocol's own server says what is wrong
    return False


async def _read_body(scope: Scope, receive: Receive) -> bytes:
    """Return the body of a request; a page that is only read has none that matters.

    Raises:
        ServingError: it is too large, or too slow.
    """
    if scope["method"] in ("GET", "HEAD", "OPTIONS"):
        return b""
    body = bytearray()
    _check_size(int(_declared(scope)))
    try:
        with anyio.fail_after(BODY_SECONDS):
            more = True
            while more:
                message = await receive()
                body += message.get("body", b"")
                _check_size(len(body))
                more = message.get("more_body", False)
    except TimeoutError:
        raise ServingError(408, "timeout", "the request did not arrive in time") from None
    return bytes(body)


def _declared(scope: Scope) -> bytes:
    return next((value for name, value in scope["headers"] if name == b"content-length"), b"0")


def _check_size(size: int) -> None:
    if size > MAX_BODY:
        raise ServingError(413, "too_large", f"a request has at most {MAX_BODY} bytes")


def _replay(body: bytes, receive: Receive) -> Receive:
    """Return a channel that gives the body once, and then whether the client has left."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_again() -> Message:
        return messages.pop() if messages else await receive()

    return receive_again
