"""Requests read, and URLs written: paths, parameters, and the address of a search.

Equivalent requests share one address: `/search?q=QUERY`. In it all options are written in the query
language, dates are days, and pages after the first have an `offset`. The form shows the parts of a
query that fit into its fields, so a search looks the same however it was entered.

Documents are made with URLs of pages. In JSON each link to a page becomes a link to its JSON, and
`html_url` is the page. Attachments, mailboxes and feeds have one URL each.
"""

import base64
import datetime as dt
import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from starlette.requests import Request

from mail_assets.mail.message.ids import MAX_ID
from mail_assets.search.language.expression import And, Field, Node, Or, Period, held_phrases
from mail_assets.search.language.fields import EXCLUSIVE, parse_day
from mail_assets.search.language.permalink import build_permalink
from mail_assets.search.language.request import (
    MAX_QUERY,
    After,
    Group,
    Mode,
    RequestError,
    Sort,
    check_text,
)
from mail_assets.search.language.request import Request as SearchRequest
from mail_assets.search.language.syntax import ParsedRequest, loosen, parse_request
from mail_assets.text.untrusted import strip_invisible
from mail_assets.web.parameters import (
    ASKED_PARAMETERS,
    ATTACHMENT,
    COMMIT,
    CURSOR,
    FIRST,
    ID,
    LIST,
    MONTH_OF_LIST,
    QUESTION_PARAMETERS,
    SEARCH_PARAMETERS,
    SERIES,
    TEXT_OF_ID,
    Table,
    refuse_unknown,
    require_once,
)
from mail_assets.web.responses import ServingError


class Wanted(NamedTuple):
    """The requested text of an id: that of a list, that of a number from 1, or the first.

    Several texts can claim one id; the first is the one that arrived first.
    """

    list_name: str = ""
    number: int = 0


class Compared(NamedTuple):
    """Two postings of a series to compare, by their numbers from 0."""

    old: int
    new: int


class Reading(NamedTuple):
    """Parameters of a path, and the arguments that a document is made with.

    Without `take` these are the values in the order of the table: numbers, 0 if not given, and
    texts, empty if not given. `is_closed`: parameters that the table lacks are refused.
    """

    table: Table
    take: Callable[[Mapping[str, str]], tuple[Any, ...]] | None = None
    is_closed: bool = False

    def read(self, request: Request) -> tuple[Any, ...]:
        """Return the arguments from the path and the query string of a request."""
        if not self.table:
            return ()
        path = {name: value for name, value in request.path_params.items() if value}
        return self.read_values({**require_once(request.query_params.multi_items()), **path})

    def read_values(self, raw: Mapping[str, str]) -> tuple[Any, ...]:
        """Return the arguments from parameters, which are checked by the table."""
        if self.is_closed:
            refuse_unknown(raw, self.table)
        for name, one in self.table.items():
            if one.least or name in raw:
                one.check(name, raw.get(name, ""))
        given = strip_words(raw)
        if self.take:
            return self.take(given)
        return tuple(
            int(given.get(name, "0")) if one.bounds else given.get(name, "")
            for name, one in self.table.items()
        )


def _take_text(given: Mapping[str, str]) -> tuple[str, Wanted]:
    return given["id"], Wanted(given.get("list", ""), int(given.get("text", "0")))


def _take_file(given: Mapping[str, str]) -> tuple[str, int, Wanted]:
    id, wanted = _take_text(given)
    return id, int(given["number"]), wanted


def _take_series(given: Mapping[str, str]) -> tuple[str, Compared | None]:
    """Return the id, and the postings `?old=` and `?new=`; one implies the other."""
    if "old" not in given and "new" not in given:
        return given["id"], None
    old = int(given.get("old", max(int(given.get("new", 0)) - 1, 0)))
    return given["id"], Compared(old, int(given.get("new", old + 1)))


NOTHING = Reading({})
BY_ID, BY_ID_FROM = Reading(ID), Reading(ID | CURSOR)
TEXT = Reading(TEXT_OF_ID, _take_text)
FILE = Reading(ATTACHMENT, _take_file)
OF_LIST, OF_LIST_FROM = Reading(LIST), Reading(LIST | CURSOR)
OF_MONTH, OF_MONTH_FROM = Reading(MONTH_OF_LIST), Reading(MONTH_OF_LIST | CURSOR)
OF_MONTH_FIRST, FROM_FIRST = Reading(MONTH_OF_LIST | FIRST), Reading(FIRST)
#: All parameters are one argument.
SEARCH, QUESTION, ASKED = (
    Reading(table, lambda given: (given,), is_closed=True)
    for table in (SEARCH_PARAMETERS, QUESTION_PARAMETERS, ASKED_PARAMETERS)
)
OF_COMMIT = Reading(COMMIT, lambda given: (given["sha"].lower(),))
OF_SERIES = Reading(SERIES, _take_series)


def strip_words(given: Mapping[str, str]) -> Mapping[str, str]:
    """Remove invisible characters from the parameters that a page repeats."""
    words = {name: strip_invisible(given[name]) for name in ("q", "sender") if name in given}
    return {**given, **words}


#: Default number of rows on a page.
PAGE = 10
#: Parameters that select messages; the others are options.
ASKS = frozenset({"q", "list", "after", "before", "sender"})
#: A year before any mail.
EVER = "1970"
#: The time of a feed without entries.
NEVER = f"{EVER}-01-01T00:00:00Z"
#: Most rows before a page in a cursor.
MAX_ROWS = 10**9


def drop_empty(given: Mapping[str, str]) -> dict[str, str]:
    """Drop empty parameters, which a form sends too."""
    return {name: value for name, value in given.items() if value.strip()}


def make_request(parameters: Mapping[str, str]) -> SearchRequest:
    """Make a search request from parameters; without any it lists the newest messages."""
    parameters = strip_words(parameters)
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
        limit=int(parameters.get("limit", PAGE)),
        offset=int(parameters.get("offset", 0)),
        after_row=read_cursor(parameters["cursor"]) if "cursor" in parameters else None,
        facets=True,
        explain=True,
        **optional,
    )
    parse_request(request)  # a wrong field of the query is an error before the search
    return request


def write_cursor(after: After) -> str:
    """Write a row as the cursor of a URL, which `read_cursor` reads."""
    moment = after.sent_at.astimezone(dt.UTC).isoformat() if after.sent_at else None
    values = [after.rows, after.message_id, moment, *([True] if after.is_end else [])]
    text = json.dumps(values, ensure_ascii=False)
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def add_cursor(url: str, cursor: str) -> str:
    """Return the URL of the page at a cursor; without a cursor, of the first page."""
    return f"{url}{'&' if '?' in url else '?'}cursor={cursor}" if cursor else url


def read_cursor(cursor: str) -> After:
    """Return the row that a cursor names."""
    try:
        data = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        match json.loads(data):
            case [int(rows), str(id), None | str() as moment, *rest] if (
                0 <= rows <= MAX_ROWS and rest in ([], [True])
            ):
                check_text("cursor", id, MAX_ID)
                sent_at = dt.datetime.fromisoformat(moment) if moment else None
                if sent_at is None or sent_at.tzinfo:
                    return After(rows, id, sent_at, bool(rest))
    except (ValueError, RecursionError, RequestError):
        pass
    raise ServingError(404, "not_found", "this cursor leads nowhere: take one from `next`")


#: Fields of the query that have a form field, and the name of that.
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
    """Return the address of a search, with some options replaced."""
    return _write_url(address_parameters(parsed, **options))


def find_other_address(given: Mapping[str, str]) -> str | None:
    """Return the address of a search; None if the parameters already have its form."""
    parameters = drop_empty(given)
    if not parameters:
        return HOME
    wanted = address_parameters(parse_request(make_request(parameters)))
    return None if wanted == {**given} else _write_url(wanted)


def refine(parsed: ParsedRequest, condition: Field, **options: Any) -> str:
    """Return the address of a search with one more condition, and some options replaced.

    The condition replaces others of its field if a message has only one value, such as a month.
    """
    kept = [part for part in parsed.node.parts if not _is_replaced(part, condition)]
    return _change_parts(parsed, [condition, *kept], **options)


def drop_filters(parsed: ParsedRequest) -> str | None:
    """Return the address without the form's filters; None if there are none or nothing else."""
    filled, rest = _split(parsed)
    return _change_parts(parsed, rest) if filled and rest else None


def drop_quotes(parsed: ParsedRequest) -> str | None:
    """Return the address with phrases split into words; None if there is no phrase."""
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
    """Return the parameters of a search's address, with some options replaced.

    The address leads to the first page, unless `after_row` is one of the options.
    """
    request = replace(parsed.request, **({"after_row": None, **options} if options else {}))
    whole = replace(parsed, request=replace(request, offset=0))
    place = next((one for one in _list_places(whole) if len(one["q"]) <= MAX_QUERY), {"q": ""})
    if request.after_row:
        return place | {"cursor": write_cursor(request.after_row)}
    return place | ({"offset": str(request.offset)} if request.offset else {})


def _list_places(parsed: ParsedRequest) -> Iterator[dict[str, str]]:
    """Yield three forms of a search's parameters: one query, the form's fields, the original.

    The first may be too long. The original fits, but its query may set an option to be replaced.
    """
    yield {"q": build_permalink(parsed)}
    request = parsed.request
    typed = {
        "q": request.query,
        "list": "".join(request.lists),
        "after": str(request.after or ""),
        "before": str(request.before or ""),
        "sender": request.sender,
        "limit": str(request.limit) if request.limit != PAGE else "",
        **{name: str(getattr(request, name)) for name in OPTIONS},
    }
    for filled in (fill_form(parsed), typed):
        short = {name: one for name, one in filled.items() if one and one != OPTIONS.get(name)}
        yield {"q": "", **short}


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
#: The end of an id whose path would look like that of an attachment of another message.
_LIKE_ATTACHMENT = re.compile(r"(?:^|/)attachment/[^/]*\Z")


def page_url(page: str, id: str) -> str:
    """Return the URL of a message, thread or other page of an id."""
    if {"", ".", ".."} & {*id.split("/")} or _LIKE_ATTACHMENT.search(id):
        return f"/{page}?{urlencode({'id': id})}"
    return f"/{page}/{quote(id, safe=SAFE)}"


def anchor(message_id: str) -> str:
    """Return the anchor of a post on its thread's page, short and in plain letters."""
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


#: Pages that have JSON too.
PAGES = frozenset(
    {"search", "message", "thread", "similar", "lists", "commits", "series", "patches"}
)
#: Keys of links besides `url`: single ones, and lists of them.
LINKS = frozenset(
    {
        *("next", "previous", "earlier_url", "later_url", "thread_url", "parent_url"),
        *("archive_url", "series_url", "list_url"),
    }
)
LISTS_OF_LINKS = frozenset({"pages"})
#: Keys whose values contain no links but may use the same names: the client's input, and counts.
_NO_DOCUMENTS = frozenset({"parameters", "facets", "months", "explain", "attachments"})

_PAGE = re.compile(r"/(\w+)(?![\w.])")
_FILE = re.compile(r"/message(?:/.+)?/attachment/[^/]+")


def is_page(url: str) -> bool:
    """Return whether a URL leads to a page that has JSON too."""
    found = _PAGE.match(url)
    return bool(found and found[1] in PAGES and not _FILE.fullmatch(url.partition("?")[0]))


def data_url(url: str) -> str:
    """Return the URL of a page's JSON; other URLs stay as they are."""
    return format_url(url, "json") if is_page(url) else url


def link_data(value: Any) -> Any:
    """Make the links of a document lead to JSON, and add links to the pages."""
    if isinstance(value, list | tuple):
        return [link_data(one) for one in value]
    if not isinstance(value, Mapping):
        return value
    linked: dict[str, Any] = {}
    for key, inner in value.items():
        if key in LINKS or key == "url":
            linked[key] = data_url(inner) if isinstance(inner, str) else inner
        elif key in LISTS_OF_LINKS:
            linked[key] = [data_url(one) for one in inner]
        else:
            linked[key] = inner if key in _NO_DOCUMENTS else link_data(inner)
        if key == "url" and (inner is None or is_page(inner)):
            linked["html_url"] = inner
    return linked


def write_json(document: Mapping[str, Any]) -> str:
    """Return a document as compact JSON."""
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"))
