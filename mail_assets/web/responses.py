"""Responses: how long they may be kept, what tells one state of a page from another, errors.

[errors] What a request is refused with: one shape for pages and data.
"""

import hashlib
import json
import logging
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import psycopg
from psycopg_pool import PoolTimeout
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from mail_assets.errors import MailAssetsError, NotFoundError, UnavailableError, WrongInputError
from mail_assets.search.language.request import EmptyPeriodError

logger = logging.getLogger(__name__)

#: What programs tell errors apart by: each is in docs/serving.md.
Code = Literal[
    "bad_request",
    "not_published",
    "cross_site",
    "not_found",
    "unknown_list",
    "unknown_month",
    "method_not_allowed",
    "timeout",
    "forgotten",
    "removed_upstream",
    "too_large",
    "unsupported_media_type",
    "too_many_requests",
    "internal",
    "overloaded",
    "unavailable",
]


class ServingError(MailAssetsError):
    """A request that is not answered: its status, a code for programs, a message for people.

    `retry_after` is in seconds, 0 where coming again does not help. `allowed` are the values that
    would do, where they are few, such as the ids that are nearest to an unknown one.
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

    def as_json(self) -> dict[str, object]:
        """Return the body of the response."""
        return {"error": {"code": self.code, "message": self.message, "allowed": [*self.allowed]}}


def read_error(error: Exception) -> ServingError | None:
    """Return what a request is told of an error, and log what keeps searches from being answered.

    None of a fault of the program.
    """
    told = _read(error)
    if told and told.status == 503 and told is not error:  # not of each that is turned away
        logger.error("a request was not answered", exc_info=error)
    return told


def find_status(error: Exception) -> int:
    """Return the status of an error, 500 of a fault of the program."""
    told = _read(error)
    return told.status if told else 500


def _read(error: Exception) -> ServingError | None:
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
            message = f"this can be asked by {' and '.join(methods)}"
            return ServingError(405, "method_not_allowed", message, allowed=methods)
        case psycopg.errors.QueryCanceled():
            message = "the search took too long: fewer words, or a filter, make it quicker"
            return ServingError(504, "timeout", message)
        case psycopg.OperationalError() | PoolTimeout():
            return _unavailable("the database does not answer")
        case UnavailableError():
            return _unavailable(error.notice)
    return None


def _unavailable(message: str) -> ServingError:
    return ServingError(503, "unavailable", message, retry_after=5)


#: Seconds that a page may be kept: what is forgotten must go.
DEFAULT_MAX_AGE = 300
#: Seconds that a search may be kept.
SEARCH_MAX_AGE = 60
#: What differs each time that the same is found.
_MEASURED = frozenset({"took_ms", "ms"})


def wants_page(request: Request) -> bool:
    """Return whether somebody reads what is at a path, and no program."""
    page = request.url.path.split("/")[1]
    if page == "answer" and request.method == "POST":
        return "text/html" in request.headers.get("accept", "")
    return "." not in page and page != "mcp"


def tag_document(document: Mapping[str, Any], version: str) -> str:
    """Return the entity tag of a document, written by a version of the program (RFC 9110, 8.8.3).

    It is weak: what was measured may differ where the tag does not.
    """
    state = json.dumps([version, _leave_out_measured(document)], sort_keys=True)
    return f'W/"{hashlib.sha256(state.encode()).hexdigest()[:32]}"'


def is_known(request: Request, tag: str) -> bool:
    """Return whether the client has what a tag stands for (RFC 9110, 13.1.2)."""
    known = request.headers.get("if-none-match", "")
    weak = {one.strip().removeprefix("W/") for one in known.split(",")}
    return "*" in weak or tag.removeprefix("W/") in weak


def allow_keeping(max_age: int, tag: str = "") -> dict[str, str]:
    """Return the headers of what may be kept for some seconds.

    Not "public": behind a password a shared cache would then give it to anybody (RFC 9111, 3.5).
    """
    headers = {"Cache-Control": f"max-age={max_age}"}
    return headers | ({"ETag": tag} if tag else {})


def tell(error: Exception) -> ServingError:
    """Return what a client is told of an error; a fault of the program is logged."""
    if told := read_error(error):
        return told
    logger.error("a request failed", exc_info=error)
    return ServingError(500, "internal", "this is a fault of the program; it was logged")


def respond_with_error(error: Exception) -> Response:
    """Return an error as data, in the one shape."""
    told = tell(error)
    return JSONResponse(told.as_json(), told.status, error_headers(told))


def error_headers(told: ServingError) -> dict[str, str]:
    """Return the headers of an error."""
    headers = {"Cache-Control": "no-store"}
    if told.retry_after:
        headers["Retry-After"] = str(told.retry_after)
    if told.status == 405:
        headers["Allow"] = ", ".join(told.allowed)
    return headers


def _leave_out_measured(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    return {key: _leave_out_measured(one) for key, one in value.items() if key not in _MEASURED}
