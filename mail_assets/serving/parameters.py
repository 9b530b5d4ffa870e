"""The parameters of a search: one table for the form, the links and what reads them."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from mail_assets.search.language.fields import parse_day
from mail_assets.search.language.request import GROUPS, MAX_LIMIT, MAX_OFFSET, MODES, SORTS
from mail_assets.search.language.request import Request as SearchRequest
from mail_assets.search.language.syntax import parse_request
from mail_assets.serving.errors import ServingError

#: Hits of a page where no limit is given.
PAGE = 10


#: A day as people type it: search/dates.py reads more, this is what is promised.
_DAY = r"^(\d{1,3}[dwmy]|(19|20)\d\d(-(0[1-9]|1[0-2])(-(0[1-9]|1\d|2[0-8]))?)?)?$"
#: Parameters that say what is searched for.
ASKS = frozenset({"q", "list", "after", "before", "sender"})
#: Before any mail.
EVER = "1970"


class Parameter(NamedTuple):
    """A parameter of a search: what it means, and its values: a few, a number, or a text.

    `bounds` are the least and the greatest number; `pattern` is a regular expression (ECMA 262).
    """

    description: str
    choices: tuple[str, ...] = ()
    bounds: tuple[int, int] | None = None
    pattern: str = ""


SEARCH_PARAMETERS: Mapping[str, Parameter] = {
    "q": Parameter("what to search for: words, and fields such as from: or after:"),
    "list": Parameter("only this list"),
    "after": Parameter(
        "from this day on: YYYY, YYYY-MM, YYYY-MM-DD, or 2y for two years", pattern=_DAY
    ),
    "before": Parameter("before this day", pattern=_DAY),
    "sender": Parameter("a part of the sender's name"),
    "mode": Parameter("how messages are found", MODES),
    "group": Parameter("how many hits a thread has: three, all, or its best", GROUPS),
    "sort": Parameter("what comes first", SORTS),
    "limit": Parameter(f"hits of a page, 1 to {MAX_LIMIT}", bounds=(1, MAX_LIMIT)),
    "offset": Parameter(f"hits to skip, 0 to {MAX_OFFSET}", bounds=(0, MAX_OFFSET)),
}


#: Those of a question: an answer has no pages.
QUESTION_PARAMETERS = {
    name: SEARCH_PARAMETERS[name] for name in ("q", "list", "after", "before", "sender", "mode")
}


def read_parameters(
    given: Mapping[str, str], known: Mapping[str, Parameter] = SEARCH_PARAMETERS
) -> dict[str, str]:
    """Return the parameters of a search, or of a question, that are not empty.

    Raises:
        ServingError: there is no parameter of that name.
    """
    if unknown := sorted(given.keys() - known.keys()):
        allowed = [*known]
        message = f"parameter {unknown[0][:40]!r} is unknown; there are: {', '.join(allowed)}"
        raise ServingError(400, "bad_request", message, allowed=allowed)
    return {name: value for name, value in given.items() if value.strip()}


def make_request(parameters: Mapping[str, str]) -> SearchRequest:
    """Return the request that parameters ask for; that of none asks for the newest messages.

    Raises:
        RequestError, ServingError: a parameter is wrong.
    """
    given = parameters if ASKS & parameters.keys() else {**parameters, "after": EVER}
    optional: dict[str, Any] = {
        name: parameters[name] for name in ("mode", "group", "sort", "sender") if name in parameters
    }
    request = SearchRequest(
        query=parameters.get("q", ""),
        lists=(parameters["list"],) if "list" in parameters else (),
        after=parse_day(given["after"]) if "after" in given else None,
        before=parse_day(parameters["before"]) if "before" in parameters else None,
        limit=_read_number(parameters, "limit", PAGE),
        offset=_read_number(parameters, "offset", 0),
        facets=True,
        explain=True,
        **optional,
    )
    parse_request(request)  # a wrong field of the query is an error before anything is asked
    return request


def _read_number(parameters: Mapping[str, str], name: str, default: int) -> int:
    value = parameters.get(name, str(default)).strip()
    if not (value.isascii() and value.isdigit() and len(value) <= 9):
        raise ServingError(400, "bad_request", f"{name} {value[:40]!r}: must be a number")
    return int(value)
