"""Responses: how long they may be kept, what tells one state of a page from another, errors."""

import hashlib
import json
import logging
from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from mail_assets.serving.errors import ServingError, read_error

logger = logging.getLogger(__name__)

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
