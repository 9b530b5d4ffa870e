"""The fields of a query: the values that each takes, and their meaning.

`name:value` is a field if the value has the form that this field takes. Otherwise it is text:
`mode:0644`, `subject:/C=US/CN=x` and `file:main.c:12` come from error messages. A quoted value
always makes a field. A value of the right form that does not exist (`has:pach`, `limit:many`, an
unknown list) is an error: read as text, it would silently change the search.

Days and periods may be written as 2024, 2024-05, 2024-05-17, 20240517, yesterday, 2y, 10d,
2024-05..2024-06.
"""

import calendar
import datetime as dt
import re
from collections.abc import Callable
from typing import Any

from mail_assets.errors import name_nearest
from mail_assets.mail.message.decoding import compose
from mail_assets.search.language.expression import Field, Period
from mail_assets.search.language.request import (
    KINDS,
    MAX_NAME,
    MAX_QUERY,
    MAX_SHA,
    MIN_SHA,
    VERSIONS,
    EmptyPeriodError,
    RequestError,
    check_month,
    check_text,
    one_of,
    quote,
    strip_brackets,
)

_WRITTEN_DAY = re.compile(r"(\d{4})(?:[-/]?(\d\d))?(?:[-/]?(\d\d))?", re.ASCII)
#: A range of years; a year and month never look like this.
_YEARS = re.compile(r"(\d{4})-(\d{4})", re.ASCII)
_AGO = re.compile(r"(\d{1,5})([dwmy])", re.ASCII)
#: Months per unit.
_MONTHS = {"m": 1, "y": 12}
_DAYS = {"d": 1, "w": 7}
_DAY_NAMES = {"today": "0d", "yesterday": "1d"}


def parse_day(text: str, today: dt.date | None = None) -> dt.date:
    """Read a day: the first of "2024" or "2024-05", "2024-05-17", or an age ("10d", "2w", "2y").

    Slashes may replace dashes, and dashes may be missing; "yesterday" is "1d". `today` is the
    current day in UTC by default.
    """
    return _parse_period(text, today)[0]


def parse_period(text: str, today: dt.date | None = None) -> Period:
    """Read a day, month, year, "2022-2023", or "START..END", where one end may be missing."""
    first, dots, last = _YEARS.sub(r"\1..\2", text.strip()).partition("..")
    if not dots:
        return Period(*_parse_period(text, today))
    start = _parse_period(first, today)[0] if first.strip() else None
    end = _parse_period(last, today)[1] if last.strip() else None
    if start is None and end is None:
        raise RequestError(f"{quote(text)} is no period: write START..END")
    check_period(start, end)
    return Period(start, end)


def check_period(start: dt.date | None, end: dt.date | None) -> None:
    """Check that a period has at least one day.

    Raises:
        EmptyPeriodError: it has none.
    """
    if start and end and start >= end:
        raise EmptyPeriodError(f"nothing is after {start} and before {end}")


def _parse_period(text: str, today: dt.date | None) -> tuple[dt.date, dt.date | None]:
    """Return the first day and the day after the last; None where the calendar ends."""
    text = text.strip()
    text = _DAY_NAMES.get(text, text)
    try:
        if match := _WRITTEN_DAY.fullmatch(text):
            start = dt.date(int(match[1]), int(match[2] or 1), int(match[3] or 1))
            if match[3]:
                return start, _next_day(start)
            if start.year == dt.MAXYEAR and (start.month == 12 or not match[2]):
                return start, None
            return start, _shift_months(start, 1 if match[2] else 12)
        if match := _AGO.fullmatch(text):
            day = today or dt.datetime.now(dt.UTC).date()
            number, unit = int(match[1]), match[2]
            if unit in _MONTHS:
                start = _shift_months(day, -number * _MONTHS[unit])
            else:
                start = day - dt.timedelta(number * _DAYS[unit])
            return start, _next_day(start)
    except (ValueError, OverflowError):
        pass
    raise RequestError(
        f"{quote(text)} is no day: write YYYY, YYYY-MM, YYYY-MM-DD, or 10d, 2w, 3m, 2y ago; "
        "date: takes START..END too"
    )


def _next_day(day: dt.date) -> dt.date | None:
    return None if day == dt.date.max else day + dt.timedelta(1)


def _shift_months(day: dt.date, months: int) -> dt.date:
    """Return the same day of another month, or its last day if that month is shorter.

    Raises:
        ValueError: it is before year 1 or after 9999.
    """
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    if not dt.MINYEAR <= year <= dt.MAXYEAR:
        raise ValueError(year)
    return dt.date(year, month + 1, min(day.day, calendar.monthrange(year, month + 1)[1]))


_WORD = re.compile(r"\A[a-z]+")
_NUMBER = re.compile(r"\A(?:[a-z]+|[-+]?(?:\d++(?:\.\d*+)?|\.\d++)(?:e[-+]?\d+)?)", re.ASCII)
_END = r"(?:\d+[dwmy]|today|yesterday|[\d/-]*)"
_DAY_WORD = re.compile(rf"\A(?:{_END}\.\.{_END}|[a-z]+(?:[-_][a-z]+)*+|[\d/.-]+[a-z]?)", re.ASCII)
_SHA = re.compile(rf"[0-9a-f]{{{MIN_SHA},{MAX_SHA}}}")
_SHA_LIKE = re.compile(r"\A[A-Za-z0-9]+", re.ASCII)
_LIST = re.compile(r"\A\w[\w.+-]*")
#: Not a place in a file (main.c:12), a network address (::1:80), or the rest of a link (//x).
_ANY_BUT_PLACE = re.compile(r"\A(?!//)(?!\S*:\d+(?::\d+)?:?\Z)\S+")
_ANY = re.compile(r"\A\S+")
_ID = re.compile(r"\A<?[^\s<>\"@]+@[^\s<>\"]+>?")

#: The fields, each with the form of its values without quotes.
VALUE_FORMS: dict[str, re.Pattern[str]] = {
    **dict.fromkeys(("from", "subject", "id"), _ANY),
    **dict.fromkeys(("to", "file"), _ANY_BUT_PLACE),
    "list": _LIST,
    "thread": _ID,
    **dict.fromkeys(("has", "is", "kind", "version"), _WORD),
    "commit": _SHA_LIKE,
    **dict.fromkeys(("after", "before", "date", "month"), _DAY_WORD),
    **dict.fromkeys(("mode", "group", "sort"), _WORD),
    "near": _ID,
    **dict.fromkeys(("limit", "offset", "score"), _NUMBER),
}
#: Fields that match a part of a text; a star at either end changes nothing.
_PARTS = frozenset({"from", "to", "subject", "file"})
#: A value that needs no quotes in any field.
_SAFE = re.compile(r"\A[\w@.+/][\w@.+/~%:=-]*\Z")
#: Characters without width or shape, which come with pasted text.
_INVISIBLE = "[\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff]+"
_INVISIBLE_OUTSIDE = re.compile(rf'("[^"]*")|{_INVISIBLE}')
_INVISIBLE_ANYWHERE = re.compile(_INVISIBLE)


def clean_query(query: str) -> str:
    """Return a query in composed form, as mail is stored, without invisible characters.

    Invisible characters in quotes stay: a value of nothing else must not become empty.
    """
    return compose(_INVISIBLE_OUTSIDE.sub(lambda found: found[1] or "", query))


def clean_value(text: str) -> str:
    """Return a phrase or value in composed form; invisible characters go if others remain."""
    visible = _INVISIBLE_ANYWHERE.sub("", text)
    return compose(visible if visible.strip() else text)


#: Synonyms of kinds.
_KINDS = {"attachments": "attachment", "patches": "patch", "replies": "reply"}

#: Fields that set an option of the request: the option's name, and the parser of its value.
OPTIONS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "mode": ("mode", str),
    "group": ("group", str),
    "sort": ("sort", str),
    "near": ("near", strip_brackets),
    "limit": ("limit", int),
    "offset": ("offset", int),
    "score": ("min_score", float),
}
#: Fields of which a message has one value only: several values in a query are alternatives.
EXCLUSIVE = frozenset({"from", "list", "month", "thread", "id", "date"})


def is_name(name: str) -> bool:
    """Return whether a field has this name."""
    return name in VALUE_FORMS


#: Fields of public-inbox and Gmail that never occur in text; each is read as the field here.
SAME_FIELDS = {
    **{"dfn": "file", "tc": "to", "rt": "date", "dt": "date", "mid": "id", "msgid": "id"},
    **{"newer_than": "after", "older_than": "before"},
}
#: Field names of other programs that also occur in text.
_ELSEWHERE = {
    **dict.fromkeys(("author", "sender", "f"), "from"),
    **dict.fromkeys(("cc", "bcc", "recipient", "t"), "to"),
    **dict.fromkeys(("attachment", "filename"), "file"),
    **dict.fromkeys(("title", "intitle", "s"), "subject"),
    **dict.fromkeys(("since", "newer"), "after"),
    **dict.fromkeys(("until", "older"), "before"),
    **dict.fromkeys(("d", "year"), "date"),
    **{"m": "id", "l": "list", "sha": "commit", "order": "sort", "type": "is"},
}
#: Fields of other programs without an equivalent here, and what to write instead.
_INSTEAD = {
    **dict.fromkeys(("nq", "bs", "body", "intext"), "write the words alone"),
    **dict.fromkeys(("in", "label", "category", "site"), "for one list, write list:NAME"),
    **dict.fromkeys(("filetype", "ext"), "for files, write file:.c"),
    **dict.fromkeys(
        ("dfhh", "dfctx", "dfa", "dfb", "dfpre", "dfpost", "dfblob"),
        "write a function or file that is changed, alone or in file:",
    ),
}


def find_like(name: str) -> str:
    """Suggest what to write for an unknown field name; "" if it resembles none."""
    known = (_ELSEWHERE | SAME_FIELDS).get(name.lower())
    if known and (len(name) > 1 or name.islower()):  # C:\x and D:\x are files
        return f"did you mean {known}:? "
    if instead := _INSTEAD.get(name.lower()):
        return f"{instead}."
    if len(name) < 3 or name.lower() in VALUE_FORMS:
        return ""
    return name_nearest(f"{name}:", [f"{one}:" for one in VALUE_FORMS if len(one) > 3], 0.75)


def is_field(name: str, value: str, *, quoted: bool) -> bool:
    """Return whether `name:value` is meant as a field."""
    form = VALUE_FORMS.get(name)
    if form is None:
        return False
    return bool(value.strip()) if quoted else bool(form.fullmatch(value))


def strip_stars(name: str, value: str) -> str:
    """Remove stars around an unquoted value of a field that matches parts: `file:*.c`."""
    return (value.strip("*") or value) if name in _PARTS else value


def read_field(name: str, value: str, today: dt.date | None) -> Field:
    """Return a field that `is_field` accepts, its value checked.

    Raises:
        RequestError: the field has no such value.
    """
    check_text(name, value, MAX_NAME if name == "list" else MAX_QUERY)
    value = clean_value(value)
    match name:
        case "has" | "is" | "kind":
            kind = _KINDS.get(value, value)
            one_of("kind", kind, KINDS)
            return Field("kind", kind)
        case "version":
            one_of("version", value, VERSIONS)
        case "commit":
            return Field("commit", _read_sha(value))
        case "month":
            check_month(value)
        case "after":
            return Field("after", Period(parse_day(value, today), None))
        case "before":
            return Field("before", Period(None, parse_day(value, today)))
        case "date":
            return Field("date", parse_period(value, today))
        case "thread" | "id" | "from":
            return Field(name, strip_brackets(value) or value)
        case "to":  # the receivers, or files, of a message are lines of one text
            return Field(name, (strip_brackets(value) or value).replace("\n", " "))
        case "file":
            return Field(name, value.replace("\n", " "))
    return Field(name, value)


def _read_sha(value: str) -> str:
    sha = value.strip().lower()
    if not _SHA.fullmatch(sha):
        raise RequestError(
            f"commit {quote(value)}: write {MIN_SHA} or more digits (0-9, a-f) of its SHA"
        )
    return sha


def read_option(name: str, value: str) -> tuple[str, Any]:
    """Return the option of a request that a field sets, and its value."""
    option, read = OPTIONS[name]
    try:
        return option, read(value)
    except ValueError:
        raise RequestError(f"{name} {quote(value)}: must be a number") from None


def write_field(name: str, value: object) -> str:
    """Return the text of a field, which `read_field` reads as the same field."""
    if isinstance(value, Period):
        value = _write_period(name, value)
    text = str(value)
    if is_field(name, text, quoted=False) and _SAFE.match(text):
        return f"{name}:{text}"
    doubled = text.replace('"', '""')
    return f'{name}:"{doubled}"'


def _write_period(name: str, period: Period) -> str:
    if name in ("after", "before"):
        return str(period.start or period.end)
    start, end = period
    last = "" if end is None else (end - dt.timedelta(1)).isoformat()
    return f"{start or ''}..{last}"
