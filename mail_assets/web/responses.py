"""Responses to requests: errors in one shape, and how long a page may be kept."""

import hashlib
import json
import logging
from collections.abc import Mapping, Sequence
from typing import Any

import psycopg
from psycopg_pool import PoolTimeout
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from mail_assets.errors import MailAssetsError, NotFoundError, UnavailableError, WrongInputError
from mail_assets.search.language.request import EmptyPeriodError
from mail_assets.web.document_types import Code, ErrorDocument

logger = logging.getLogger(__name__)

#: Seconds that a page may be kept: a forgotten message must disappear.
DEFAULT_MAX_AGE = 300
#: Seconds that a search may be kept.
SEARCH_MAX_AGE = 60
#: Keys whose values differ each time that the same is found.
_MEASURED = frozenset({"took_ms", "ms"})


class ServingError(MailAssetsError):
    """A request that is refused: its status, a code for programs, a message for people.

    `retry_after` is in seconds, 0 if to try again does not help. `allowed` are values that would
    be right, if they are few: the lists, or the ids nearest to an unknown one.
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
    """Return an expected error as the client reads it, None for a fault of the program.

    What makes searches unavailable is logged for the operator.
    """
    found = _translate(error)
    if found and found.status == 503 and found is not error:  # refusals of our own are no faults
        logger.error("a request was not answered", exc_info=error)
    return found


def describe_error(error: Exception) -> ServingError:
    """Return any error as the client reads it; a fault of the program is logged."""
    if found := read_error(error):
        return found
    logger.error("a request failed", exc_info=error)
    return ServingError(500, "internal", "the program failed; the error was logged")


def find_status(error: Exception) -> int:
    """Return the status of an error, 500 for a fault of the program."""
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
        case NotFoundError() | EmptyPeriodError():
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
    """Return the entity tag of a document and of the program's version (RFC 9110, 8.8.3).

    It is weak: two documents with one tag may differ in what was measured.
    """
    state = json.dumps([version, _leave_out_measured(document)], sort_keys=True)
    return f'W/"{hashlib.sha256(state.encode()).hexdigest()[:32]}"'


def tag_body(body: bytes) -> str:
    """Return the entity tag of a body that is kept as it is sent; weak, as it may be unpacked."""
    return f'W/"{hashlib.sha256(body).hexdigest()[:32]}"'


def is_known(request: Request, tag: str) -> bool:
    """Return whether the client already has the document of a tag (RFC 9110, 13.1.2)."""
    known = request.headers.get("if-none-match", "")
    weak = {one.strip().removeprefix("W/") for one in known.split(",")}
    return "*" in weak or tag.removeprefix("W/") in weak


def allow_keeping(max_age: int, tag: str = "") -> dict[str, str]:
    """Return the headers of a response that may be kept for some seconds.

    Not "public": a shared cache would then serve pages that need a password (RFC 9111, 3.5).
    """
    headers = {"Cache-Control": f"max-age={max_age}"}
    return headers | ({"ETag": tag} if tag else {})


def _leave_out_measured(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    return {key: _leave_out_measured(one) for key, one in value.items() if key not in _MEASURED}
