"""What a request asks for, read out of its path and its query string."""

from collections import Counter
from collections.abc import Mapping, Sequence

from starlette.requests import Request

from mail_assets.search.request import MAX_QUERY, check_text
from mail_assets.serving.errors import ServingError


def read_nothing(_: Request) -> tuple[()]:
    """Return nothing: the page is the same for everybody."""
    return ()


def read_id(request: Request) -> tuple[str]:
    """Return the id of the path, or of `?id=`: a path cannot hold every id.

    Raises:
        ServingError, RequestError: there is none, or it cannot be one.
    """
    id = request.path_params.get("id") or request.query_params.get("id", "")
    if not id:
        raise ServingError(400, "bad_request", "give the id of a message")
    check_text("id", id, MAX_QUERY)  # one that is longer than what is stored has a hash
    return (id,)


def read_parameters(request: Request) -> tuple[Mapping[str, str]]:
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
        ServingError, RequestError: the id cannot be one, or the number is none.
    """
    number = request.path_params["number"]
    if not (number.isascii() and number.isdigit() and len(number) <= 9):
        raise ServingError(404, "not_found", f"attachments have numbers, not {number[:40]!r}")
    return (*read_id(request), int(number))
