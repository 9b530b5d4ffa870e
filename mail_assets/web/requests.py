"""Read requests and write URLs: paths, parameters, and the address of a search.

Requests that mean the same share one address: `/search?q=QUERY`, all options written in the query
language with dates as days, and `offset` after the first page. The form shows the parts of a query
that its fields can hold, so a search looks the same however it was entered.
"""

import base64
import datetime as dt
import hashlib
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from starlette.requests import Request

from mail_assets.mail.message.ids import MAX_ID
from mail_assets.search.language.expression import And, Field, Node, Or, Period, held_phrases
from mail_assets.search.language.fields import EXCLUSIVE, parse_day
from mail_assets.search.language.permalink import build_permalink
from mail_assets.search.language.request import (
    GROUPS,
    MAX_LIMIT,
    MAX_NAME,
    MAX_OFFSET,
    MODES,
    NEWEST,
    SORTS,
    After,
    Group,
    Mode,
    RequestError,
    Sort,
    check_month,
    check_text,
)
from mail_assets.search.language.request import Request as SearchRequest
from mail_assets.search.language.syntax import ParsedRequest, loosen, parse_request
from mail_assets.web.responses import ServingError


def read_nothing(_: Request) -> tuple[()]:
    """Return no arguments, for pages without parameters."""
    return ()


def read_id(request: Request) -> tuple[str]:
    """Return the id from the path, or from `?id=`, which can hold any id.

    Raises:
        ServingError: there is no id, or more than one.
    """
    id = request.path_params.get("id") or _read_parameter(request, "id", "")
    if not id:
        raise ServingError(400, "bad_request", "give the id of a message")
    return (id,)


class Wanted(NamedTuple):
    """A text under an id: that of a list, or that of a number from 1; else the first.

    Several texts can claim one id: the first is the one that arrived first.
    """

    list_name: str = ""
    number: int = 0


def read_text(request: Request) -> tuple[str, Wanted]:
    """Return the id as `read_id`, and the text that `?list=` or `?text=` asks for.

    Raises:
        ServingError: there is no id, or more than one, or the number is wrong.
    """
    name, number = _read_parameter(request, "list", ""), _read_parameter(request, "text", "0")
    check_text("list", name, MAX_NAME)
    if not (number.isascii() and number.isdigit() and len(number) <= 9):
        raise ServingError(400, "bad_request", f"text {number[:40]!r}: must be a number")
    return (*read_id(request), Wanted(name, int(number)))


def read_query(request: Request) -> tuple[Mapping[str, str]]:
    """Return the parameters of the query string.

    Raises:
        ServingError: a parameter is given more than once.
    """
    return (require_once(request.query_params.multi_items()),)


def require_once(given: Sequence[tuple[str, str]]) -> Mapping[str, str]:
    """Return parameters by name.

    Raises:
        ServingError: a parameter is given more than once.
    """
    [(name, times), *_] = Counter(name for name, _ in given).most_common(1) or [("", 0)]
    if times > 1:
        raise ServingError(400, "bad_request", f"parameter {name[:40]!r} is given {times} times")
    return dict(given)


def read_attachment_number(request: Request) -> tuple[str, int, Wanted]:
    """Return the id of a message, the number of one of its attachments, and the text.

    Raises:
        ServingError: there is no id, or the number is wrong.
    """
    number = request.path_params["number"]
    if not (number.isascii() and number.isdigit() and len(number) <= 9):
        raise ServingError(404, "not_found", f"attachment {number[:40]!r}: must be a number")
    id, wanted = read_text(request)
    return id, int(number), wanted


def read_list(request: Request) -> tuple[str]:
    """Return the name of a list from the path."""
    name = request.path_params["list"]
    check_text("list", name, MAX_NAME)
    return (name,)


def read_list_place(request: Request) -> tuple[str, str, str]:
    """Return the name of a list, a month or "", and the cursor of a feed."""
    month = request.path_params.get("month", "")
    if month:
        check_month(month)
    return (*read_list(request), month, _read_parameter(request, "cursor", ""))


def read_id_place(request: Request) -> tuple[str, str]:
    """Return the id as `read_id`, and the cursor of a feed."""
    return (*read_id(request), _read_parameter(request, "cursor", ""))


def read_month(request: Request) -> tuple[str, str, int]:
    """Return the name of a list, a month, and the number of the first message, from 0.

    Raises:
        ServingError, RequestError: one of them is wrong.
    """
    month = request.path_params["month"]
    check_month(month)
    return (*read_list(request), month, *read_first(request))


def read_first(request: Request) -> tuple[int]:
    """Return the number of the first row, from 0.

    Raises:
        ServingError: it is wrong.
    """
    first = _read_parameter(request, "first", "0")
    if not (first.isascii() and first.isdigit() and len(first) <= 7):
        raise ServingError(400, "bad_request", f"first {first[:40]!r}: must be a number")
    return (int(first),)


#: Digits of a commit's id that may name it. Fewer would name many.
_SHA = re.compile(r"[0-9a-f]{4,64}")


def read_commit(request: Request) -> tuple[str]:
    """Return the digits of a commit's id, in lower case.

    Raises:
        ServingError: they are none, or too few.
    """
    sha = request.path_params["sha"].lower()
    if not _SHA.fullmatch(sha):
        message = f"{sha[:80]!r} is no id of a commit; write 4 to 64 hexadecimal digits"
        raise ServingError(404, "not_found", message)
    return (sha,)


class Compared(NamedTuple):
    """Two postings of a series, by their numbers from 0, that are to be compared."""

    old: int
    new: int


def read_series_id(request: Request) -> tuple[str, Compared | None]:
    """Return the id as `read_id`, and the postings of `?old=` and `?new=`.

    Raises:
        ServingError: there is no id, or more than one, or a number is wrong.
    """
    [given] = read_query(request)
    numbers = [given[name] for name in ("old", "new") if given.get(name)]
    if any(not (one.isascii() and one.isdigit() and len(one) <= 5) for one in numbers):
        raise ServingError(400, "bad_request", "old and new: must be numbers of versions, from 0")
    if len(numbers) == 1:
        raise ServingError(400, "bad_request", "give both old and new, or neither")
    return (*read_id(request), Compared(*map(int, numbers)) if numbers else None)


def read_patches_place(request: Request) -> tuple[str, str]:
    """Return the name of a list, and the cursor of a page of its patches."""
    return (*read_list(request), _read_parameter(request, "cursor", ""))


def _read_parameter(request: Request, name: str, default: str) -> str:
    [given] = read_query(request)
    return given.get(name, default)


#: Default number of rows on a page.
PAGE = 10
#: A day as the API promises to read it; `parse_day` reads more. Months of 31 and 30 days, February.
_MONTH_AND_DAY = (
    r"(0[13578]|1[02])(-(0[1-9]|[12]\d|3[01]))?|(0[469]|11)(-(0[1-9]|[12]\d|30))?"
    r"|02(-(0[1-9]|1\d|2[0-8]))?"
)
_LEAP_YEAR = r"(19(0[48]|[2468][048]|[13579][26])|20(0[048]|[2468][048]|[13579][26]))"
_DAY = rf"^(\d{{1,3}}[dwmy]|(19|20)\d\d(-({_MONTH_AND_DAY}))?|{_LEAP_YEAR}-02-29)?$"
#: Parameters that select messages; the others are options.
ASKS = frozenset({"q", "list", "after", "before", "sender"})
#: A year before any mail.
EVER = "1970"
#: Rows before a page that a cursor may name.
MAX_ROWS = 10**9


class Parameter(NamedTuple):
    """A parameter of a search: a description, and its choices, its bounds as a number, or a text.

    `pattern` is a regular expression (ECMA 262).
    """

    description: str
    choices: tuple[str, ...] = ()
    bounds: tuple[int, int] | None = None
    pattern: str = ""


SEARCH_PARAMETERS: Mapping[str, Parameter] = {
    "q": Parameter("the query: words, and fields such as from: or after:"),
    "list": Parameter("only this list"),
    "after": Parameter(
        "from this day on: YYYY, YYYY-MM, YYYY-MM-DD, or 2y for two years", pattern=_DAY
    ),
    "before": Parameter("before this day", pattern=_DAY),
    "sender": Parameter("a part of the sender's name"),
    "mode": Parameter("how messages are found", MODES),
    "group": Parameter("rows: conversations with their best messages, or messages", GROUPS),
    "sort": Parameter(
        "the order of the hits: the best first, or by date those that have every word",
        (*SORTS, NEWEST),
    ),
    "near": Parameter(
        "the id of the message or thread at hand: its subject joins the question, it is left out"
    ),
    "limit": Parameter(f"rows of a page, 1 to {MAX_LIMIT}", bounds=(1, MAX_LIMIT)),
    "offset": Parameter(
        f"rows to skip, 0 to {MAX_OFFSET}; `next` leads further", bounds=(0, MAX_OFFSET)
    ),
    "cursor": Parameter(
        "the place where a page begins, from `next` of the page before; `offset` then says nothing",
        pattern=r"^[A-Za-z0-9_-]*$",
    ),
}
#: The parameters of a question: an answer has no pages.
QUESTION_PARAMETERS = {
    name: SEARCH_PARAMETERS[name] for name in ("q", "list", "after", "before", "sender", "mode")
}


def read_parameters(
    given: Mapping[str, str], known: Mapping[str, Parameter] = SEARCH_PARAMETERS
) -> dict[str, str]:
    """Return the parameters of a search, or of a question, that are not empty.

    Raises:
        ServingError: a parameter is unknown.
    """
    if unknown := sorted(given.keys() - known.keys()):
        allowed = [*known]
        message = f"parameter {unknown[0][:40]!r} is unknown; there are: {', '.join(allowed)}"
        raise ServingError(400, "bad_request", message, allowed=allowed)
    return {name: value for name, value in given.items() if value.strip()}


def make_request(parameters: Mapping[str, str]) -> SearchRequest:
    """Return the request of parameters; without any it asks for the newest messages.

    Raises:
        RequestError, ServingError: a parameter is wrong.
    """
    given = parameters if ASKS & parameters.keys() else {**parameters, "after": EVER}
    optional: dict[str, Any] = {
        name: parameters[name]
        for name in ("mode", "group", "sort", "sender", "near")
        if name in parameters
    }
    request = SearchRequest(
        query=parameters.get("q", ""),
        lists=(parameters["list"],) if "list" in parameters else (),
        after=parse_day(given["after"]) if "after" in given else None,
        before=parse_day(parameters["before"]) if "before" in parameters else None,
        limit=_read_number(parameters, "limit", PAGE),
        offset=_read_number(parameters, "offset", 0),
        after_row=read_cursor(parameters["cursor"]) if "cursor" in parameters else None,
        facets=True,
        explain=True,
        **optional,
    )
    parse_request(request)  # a wrong field of the query is an error before the search
    return request


def write_cursor(after: After) -> str:
    """Return a row as a value of a URL, which `read_cursor` reads back."""
    moment = after.sent_at.astimezone(dt.UTC).isoformat() if after.sent_at else None
    text = json.dumps([after.rows, after.message_id, moment], ensure_ascii=False)
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def read_cursor(cursor: str) -> After:
    """Return the row that a cursor names.

    Raises:
        ServingError: no page has given this cursor.
    """
    try:
        data = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        match json.loads(data):
            case [int(rows), str(id), None | str() as moment] if 0 <= rows <= MAX_ROWS:
                check_text("cursor", id, MAX_ID)
                sent_at = dt.datetime.fromisoformat(moment) if moment else None
                if sent_at is None or sent_at.tzinfo:
                    return After(rows, id, sent_at)
    except (ValueError, RecursionError, RequestError):
        pass
    raise ServingError(404, "not_found", "this cursor leads nowhere: take one from `next`")


def _read_number(parameters: Mapping[str, str], name: str, default: int) -> int:
    value = parameters.get(name, str(default)).strip()
    if not (value.isascii() and value.isdigit() and len(value) <= 9):
        raise ServingError(400, "bad_request", f"{name} {value[:40]!r}: must be a number")
    return int(value)


#: Fields of the query that have a form field, with its name.
_CONTROLS = {"list": "list", "after": "after", "before": "before", "from": "sender"}
#: Options of the form with their defaults.
OPTIONS = {
    "mode": Mode.hybrid.value,
    "group": Group.conversation.value,
    "sort": Sort.relevance.value,
    "near": "",
}
HOME = "/"
#: The parameters of the address of a search.
ADDRESS = frozenset({"q", "offset", "cursor"})


def find_address(parsed: ParsedRequest, **options: Any) -> str:
    """Return the address of a search, with some of its options replaced."""
    return _write_url(address_parameters(parsed, **options))


def find_other_address(given: Mapping[str, str]) -> str | None:
    """Return the address of the search of parameters, None if they are those of the address.

    Raises:
        RequestError, ServingError: a parameter is wrong.
    """
    parameters = read_parameters(given)
    if not parameters:
        return HOME
    wanted = address_parameters(parse_request(make_request(parameters)))
    return None if wanted == {**given} else _write_url(wanted)


def refine(parsed: ParsedRequest, condition: Field, **options: Any) -> str:
    """Return the address of a search with one more condition, and some of its options replaced.

    It replaces those of its field if a message can meet only one of them, as with months.
    """
    kept = [part for part in parsed.node.parts if not _is_replaced(part, condition)]
    return _change_parts(parsed, [condition, *kept], **options)


def drop_filters(parsed: ParsedRequest) -> str | None:
    """Return the address without the form's filters, None if there are none or nothing else."""
    filled, rest = _split(parsed)
    return _change_parts(parsed, rest) if filled and rest else None


def drop_quotes(parsed: ParsedRequest) -> str | None:
    """Return the address with phrases split into words, None if there is no phrase."""
    if not held_phrases(parsed.node):
        return None
    return _change_parts(parsed, loosen(parsed).node.parts)


def fill_form(parsed: ParsedRequest) -> dict[str, str]:
    """Return the values of the form fields for a search; the form then repeats the search."""
    filled, rest = _split(parsed)
    options = {name: str(getattr(parsed.request, name)) for name in OPTIONS}
    plain: dict[str, Any] = {"offset": 0, **OPTIONS}
    node, request = And((*rest,)), replace(parsed.request, **plain)
    box = build_permalink(replace(parsed, node=node, request=request))
    return {"q": box, **filled, **options}


def _split(parsed: ParsedRequest) -> tuple[dict[str, str], list[Node]]:
    """Return the values of the form fields, and the parts of the query for the search box."""
    parts = parsed.node.parts
    times = Counter(part.name for part in parts if isinstance(part, Field))
    filled: dict[str, str] = {}
    rest: list[Node] = []
    for part in parts:
        if isinstance(part, Field) and part.name in _CONTROLS and times[part.name] == 1:
            value = part.value
            day = (value.start or value.end) if isinstance(value, Period) else None
            filled[_CONTROLS[part.name]] = str(day or value)
        else:
            rest.append(part)
    return filled, rest


def address_parameters(parsed: ParsedRequest, **options: Any) -> dict[str, str]:
    """Return the parameters of the address of a search, with some of its options replaced.

    A search with other options begins with its first page, unless `after_row` is one of them.
    """
    request = replace(parsed.request, **({"after_row": None, **options} if options else {}))
    query = build_permalink(replace(parsed, request=replace(request, offset=0)))
    if request.after_row:
        return {"q": query, "cursor": write_cursor(request.after_row)}
    return {"q": query} | ({"offset": str(request.offset)} if request.offset else {})


def _write_url(parameters: Mapping[str, str]) -> str:
    return f"/search?{urlencode(parameters)}"


def _change_parts(parsed: ParsedRequest, parts: Sequence[Node], **options: Any) -> str:
    return find_address(replace(parsed, node=And((*parts,))), offset=0, **options)


def _is_replaced(part: Node, condition: Field) -> bool:
    if condition.name not in EXCLUSIVE:
        return False
    leaves = part.parts if isinstance(part, Or | And) else (part,)
    return all(isinstance(leaf, Field) and leaf.name == condition.name for leaf in leaves)


#: Characters that paths have unencoded. Browsers treat "." and ".." as folders even if encoded.
SAFE = "@+-_~!$*,;=:"
#: The end of an id whose path would be that of an attachment of another message.
_LIKE_ATTACHMENT = re.compile(r"(?:^|/)attachment/[^/]*\Z")


def page_url(page: str, id: str) -> str:
    """Return the URL of a message, thread or other page of an id."""
    if {"", ".", ".."} & {*id.split("/")} or _LIKE_ATTACHMENT.search(id):
        return f"/{page}?{urlencode({'id': id})}"
    return f"/{page}/{quote(id, safe=SAFE)}"


def anchor(message_id: str) -> str:
    """Return the anchor of a post on the page of its thread: short, of plain letters."""
    return f"m{hashlib.sha256(message_id.encode()).hexdigest()[:16]}"


def place_url(message_id: str) -> str:
    """Return the URL of a message on the page of its thread."""
    return f"{page_url('thread', message_id)}#{anchor(message_id)}"


def text_url(message_id: str, text: int | None) -> str:
    """Return the URL of a message; of one of its texts if it is not the first."""
    url = page_url("message", message_id)
    return f"{url}{'&' if '?' in url else '?'}text={text}" if text and text > 1 else url


def attachment_url(message_id: str, number: int, text: int | None = None) -> str:
    """Return the URL of an attachment by its number, from 1."""
    path, mark, query = text_url(message_id, text).partition("?")
    return f"{path}/attachment/{number}{mark}{query}"


def list_url(name: str) -> str:
    """Return the URL of the months of a list."""
    return page_url("lists", name)


def month_url(name: str, month: str, first: int = 0) -> str:
    """Return the URL of the messages of a month, from the number `first` on."""
    return f"/lists/{quote(name, safe=SAFE)}/{month}{f'?first={first}' if first else ''}"


def series_url(message_id: str, compared: Compared | None = None) -> str:
    """Return the URL of the series of a mail, or of a comparison of two of its postings."""
    url = page_url("series", message_id)
    if compared is None:
        return url
    return f"{url}{'&' if '?' in url else '?'}{urlencode(compared._asdict())}"


def commit_url(sha: str) -> str:
    """Return the URL of a commit."""
    return f"/commits/{sha}"


def patches_url(name: str, kind: str) -> str:
    """Return the URL of the patches of a list: "open" or "applied"."""
    return f"/patches/{quote(name, safe=SAFE)}/{kind}"


def search_url(query: str, **parameters: object) -> str:
    """Return the URL of a search, without empty parameters."""
    given = {name: str(value) for name, value in parameters.items() if value}
    return f"/search?{urlencode({'q': query, **given})}"


def format_url(url: str, format: str) -> str:
    """Return the URL of a page in another format: "json", "atom", "mbox.gz"."""
    path, mark, query = url.partition("?")
    page, slash, rest = path.removeprefix("/").partition("/")
    return f"/{page}.{format}{slash}{rest}{mark}{query}"
