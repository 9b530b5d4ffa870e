"""What a request asks for, read out of its path and its query string."""

from collections import Counter
from collections.abc import Mapping, Sequence

from starlette.requests import Request

from mail_assets.search.language.request import MAX_NAME, check_month, check_text
from mail_assets.serving.errors import ServingError


def read_nothing(_: Request) -> tuple[()]:
    """Return nothing: the page is the same for everybody."""
    return ()


def read_id(request: Request) -> tuple[str]:
    """Return the id of the path, or of `?id=`: a path cannot hold every id.

    Raises:
        ServingError: there is none, or more than one.
    """
    id = request.path_params.get("id") or _read_parameter(request, "id", "")
    if not id:
        raise ServingError(400, "bad_request", "give the id of a message")
    return (id,)


def read_query(request: Request) -> tuple[Mapping[str, str]]:
    """Return the parameters of the query string.

    Raises:
        ServingError: one is given more than once.
    """
    return (require_once(request.query_params.multi_items()),)


def require_once(given: Sequence[tuple[str, str]]) -> Mapping[str, str]:
    """Return parameters by name.

    Raises:
        ServingError: one is given more than once.
    """
    [(name, times), *_] = Counter(name for name, _ in given).most_common(1) or [("", 0)]
    if times > 1:
        raise ServingError(400, "bad_request", f"parameter {name[:40]!r} is given {times} times")
    return dict(given)


def read_attachment_number(request: Request) -> tuple[str, int]:
    """Return the id of a message, and the number of one of its attachments.

    Raises:
        ServingError: there is no id, or the number is none.
    """
    number = request.path_params["number"]
    if not (number.isascii() and number.isdigit() and len(number) <= 9):
        raise ServingError(404, "not_found", f"attachments have numbers, not {number[:40]!r}")
    return (*read_id(request), int(number))


def read_list(request: Request) -> tuple[str]:
    """Return the name of a list, out of the path."""
    name = request.path_params["list"]
    check_text("list", name, MAX_NAME)
    return (name,)


def read_month(request: Request) -> tuple[str, str, int]:
    """Return the name of a list, a month of it, and the place of the first message, from 0.

    Raises:
        ServingError, RequestError: one of them cannot be one.
    """
    month = request.path_params["month"]
    check_month(month)
    first = _read_parameter(request, "first", "0")
    if not (first.isascii() and first.isdigit() and len(first) <= 7):
        raise ServingError(400, "bad_request", f"first {first[:40]!r}: must be a number")
    return (*read_list(request), month, int(first))


def _read_parameter(request: Request, name: str, otherwise: str) -> str:
    """Return a parameter of the query string; raises where one is given more than once."""
    [given] = read_query(request)
    return given.get(name, otherwise)
