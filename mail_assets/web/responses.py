"""Responses to requests: uniform errors, compressed bodies, static files.

Compression can reveal a secret in a page to an attacker who adds text to it and sees the length of
the response (BREACH, https://breachattack.com). Pages here contain no secrets.
"""

import gzip
import hashlib
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
from psycopg_pool import PoolTimeout
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mail_assets.errors import MailAssetsError, NotFoundError, UnavailableError, WrongInputError
from mail_assets.web.document_types import Code, ErrorDocument

logger = logging.getLogger(__name__)

#: Seconds that clients may cache a page; short, because forgotten messages must disappear.
DEFAULT_MAX_AGE = 300
#: Seconds that clients may cache a search.
SEARCH_MAX_AGE = 60
#: Keys whose values differ between equal searches.
_MEASURED = frozenset({"took_ms", "ms"})


class ServingError(MailAssetsError):
    """A refused request: HTTP status, code for programs, message for people.

    `retry_after` is in seconds; 0 if trying again does not help. `allowed` has valid values if they
    are few: the lists, or ids similar to an unknown one.
    """

    def __init__(
        self,
        status: int,
        code: Code,
        message: str,
        *,
        retry_after: int = 0,
        allowed: Sequence[str] = (),
    ) -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message
        self.retry_after, self.allowed = retry_after, tuple(allowed)

    def as_json(self) -> ErrorDocument:
        """Return the body of the response."""
        return {"error": {"code": self.code, "message": self.message, "allowed": [*self.allowed]}}


def read_error(error: Exception) -> ServingError | None:
    """Convert an expected error for the client; None for a fault of the program.

    Errors that make searches unavailable are logged for the operator.
    """
    found = _translate(error)
    if found and found.status == 503 and found is not error:  # own refusals are not logged
        logger.error("a request was not answered", exc_info=error)
    return found


def describe_error(error: Exception) -> ServingError:
    """Convert any error for the client; faults of the program are logged."""
    if found := read_error(error):
        return found
    logger.error("a request failed", exc_info=error)
    return ServingError(500, "internal", "the program failed; the error was logged")


def find_status(error: Exception) -> int:
    """Return the HTTP status of an error; 500 for a fault of the program."""
    found = _translate(error)
    return found.status if found else 500


def respond_with_error(error: Exception) -> Response:
    """Return an error as JSON."""
    shown = describe_error(error)
    return JSONResponse(shown.as_json(), shown.status, error_headers(shown))


def error_headers(error: ServingError) -> dict[str, str]:
    """Return the headers of an error."""
    headers = {"Cache-Control": "no-store"}
    if error.retry_after:
        headers["Retry-After"] = str(error.retry_after)
    if error.status == 405:
        headers["Allow"] = ", ".join(error.allowed)
    return headers


def _translate(error: Exception) -> ServingError | None:
    match error:
        case ServingError():
            return error
        case NotFoundError():
            return ServingError(404, "not_found", str(error))
        case WrongInputError():
            return ServingError(400, "bad_request", str(error))
        case HTTPException(status_code=404):
            return ServingError(404, "not_found", "there is no such page")
        case HTTPException(status_code=405, headers=headers):
            methods = (headers or {}).get("Allow", "").split(", ")
            message = f"method not allowed; use {' or '.join(methods)}"
            return ServingError(405, "method_not_allowed", message, allowed=methods)
        case psycopg.errors.QueryCanceled():
            message = "the search took too long; use fewer words, or add a filter"
            return ServingError(504, "timeout", message)
        case psycopg.OperationalError() | PoolTimeout():
            return _unavailable("the database does not answer")
        case UnavailableError():
            return _unavailable(error.notice)
    return None


def _unavailable(message: str) -> ServingError:
    return ServingError(503, "unavailable", message, retry_after=5)


def wants_page(request: Request) -> bool:
    """Return whether the client is a browser that shows pages, not a program."""
    page = request.url.path.split("/")[1]
    if page == "answer" and request.method == "POST":
        return "text/html" in request.headers.get("accept", "")
    return "." not in page and page != "mcp"


def tag_document(document: Mapping[str, Any], version: str) -> str:
    """Return the entity tag of a document and the program's version (RFC 9110, 8.8.3).

    It is weak: documents with the same tag may differ in measured times.
    """
    state = json.dumps([version, _leave_out_measured(document)], sort_keys=True)
    return f'W/"{hashlib.sha256(state.encode()).hexdigest()[:32]}"'


def tag_body(body: bytes) -> str:
    """Return the entity tag of a cached body; weak, because the body may be sent uncompressed."""
    return f'W/"{hashlib.sha256(body).hexdigest()[:32]}"'


def is_known(request: Request, tag: str) -> bool:
    """Return whether the client already has the document of a tag (RFC 9110, 13.1.2)."""
    known = request.headers.get("if-none-match", "")
    weak = {one.strip().removeprefix("W/") for one in known.split(",")}
    return "*" in weak or tag.removeprefix("W/") in weak


def allow_keeping(max_age: int, tag: str = "") -> dict[str, str]:
    """Return the headers of a response that clients may cache for `max_age` seconds.

    Not "public": then a shared cache could serve pages that need a password (RFC 9111, 3.5).
    """
    headers = {"Cache-Control": f"max-age={max_age}"}
    return headers | ({"ETag": tag} if tag else {})


def _leave_out_measured(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    return {key: _leave_out_measured(one) for key, one in value.items() if key not in _MEASURED}


STATIC = Path(__file__).with_name("static")
#: Types of fixed files, by the end of their names.
STATIC_TYPES = {
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
    ".ico": "image/x-icon",
}
#: Seconds (a year) that clients may cache a file whose address contains its digest.
FOREVER = 365 * 24 * 3600
#: Fewest bytes of a body that is compressed.
MIN_COMPRESSED = 800
#: zlib's level; the next ones take twice as long and save a tenth.
LEVEL = 4
#: Types of bodies that are compressed; mailboxes, pictures and events are not.
_TEXTS = ("text/html", "text/css", "text/plain", "text/javascript", "image/svg+xml")
_ENDS = ("json", "xml")


def accepts_gzip(headers: Headers) -> bool:
    """Return whether the client takes gzip (RFC 9110, 12.5.3)."""
    weights: dict[str, float] = {}
    for one in ",".join(headers.getlist("accept-encoding")).split(","):
        name, _, parameter = one.partition(";")
        weight = parameter.strip().removeprefix("q=") or "1"
        try:
            weights[name.strip().lower()] = float(weight)
        except ValueError:
            weights[name.strip().lower()] = 0.0
    return weights.get("gzip", weights.get("*", 0.0)) > 0


def _is_text(media_type: str) -> bool:
    plain = media_type.partition(";")[0]
    return plain in _TEXTS or plain.endswith(_ENDS)


def compress(body: bytes) -> bytes:
    """Return a body in gzip, the same for the same body."""
    return gzip.compress(body, LEVEL, mtime=0)


class Compression:
    """ASGI middleware: gzip for whole text bodies; bodies sent in pieces pass unchanged."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; compress the body if it is long enough."""
        takes_gzip = scope["type"] == "http" and accepts_gzip(Headers(scope=scope))
        start: Message | None = None

        async def send_compressed(message: Message) -> None:
            nonlocal start
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                if not _is_text(headers.get("content-type", "")):
                    await send(message)
                    return
                headers.add_vary_header("Accept-Encoding")
                if "content-encoding" in headers or not takes_gzip:
                    await send(message)
                    return
                start = message
                return
            if start is not None:
                head, start = start, None
                body = message.get("body", b"")
                if len(body) >= MIN_COMPRESSED and not message.get("more_body"):
                    message = {**message, "body": compress(body)}
                    headers = MutableHeaders(scope=head)
                    headers["Content-Encoding"] = "gzip"
                    headers["Content-Length"] = str(len(message["body"]))
                await send(head)
            await send(message)

        await self.app(scope, receive, send_compressed)


def respond_packed(
    request: Request, packed: bytes, headers: dict[str, str], media_type: str
) -> Response:
    """Return a response with a compressed body, or decompressed if the client needs that."""
    if accepts_gzip(request.headers):
        return Response(
            packed, headers=headers | {"Content-Encoding": "gzip"}, media_type=media_type
        )
    return Response(gzip.decompress(packed), headers=headers, media_type=media_type)


class StaticFile(NamedTuple):
    """A static file: type, content, and the digest in its address."""

    media_type: str
    data: bytes
    packed: bytes
    digest: str


@cache
def read_static() -> dict[str, StaticFile]:
    """Return the static files by name."""
    files = {}
    for path in sorted(STATIC.iterdir()):
        if media_type := STATIC_TYPES.get(path.suffix):
            data = path.read_bytes()
            digest = hashlib.sha256(data).hexdigest()[:16]
            files[path.name] = StaticFile(media_type, data, compress(data), digest)
    return files


def static_url(name: str) -> str:
    """Return the address of a static file; it changes with the content."""
    return f"/static/{read_static()[name].digest}/{name}"


def make_static_endpoint(path: str = "") -> Callable[[Request], Response]:
    """Return the endpoint of all static files, or of the file `path`."""

    def answer(request: Request) -> Response:
        digest, _, name = (path or request.path_params["path"]).rpartition("/")
        found = read_static().get(name)
        if found is None or "/" in digest:
            raise ServingError(404, "not_found", "there is no such page")
        tag = f'W/"{found.digest}"'
        max_age = FOREVER if digest == found.digest else DEFAULT_MAX_AGE
        headers = allow_keeping(max_age, tag)
        if digest == found.digest:
            headers["Cache-Control"] += ", immutable"
        if is_known(request, tag):
            return Response(status_code=304, headers=headers)
        if not _is_text(found.media_type):
            return Response(found.data, headers=headers, media_type=found.media_type)
        return respond_packed(request, found.packed, headers, found.media_type)

    return answer
