"""The fields of a query: which values each takes, and what they mean.

`name:value` is a field where the value has the form of that field's values, and text otherwise:
`mode:0644`, `subject:/C=US/CN=x` and `file:main.c:12` come out of error messages. A value in quotes
is always meant as the field's. A value of the right form that does not exist (`has:pach`,
`limit:many`, a list that there is not) is an error and never text: it would silently search
something else.
"""

import datetime as dt
import re
from collections.abc import Callable
from typing import Any

from mail_assets.mail.message.normal_form import compose
from mail_assets.search.dates import parse_day, parse_period
from mail_assets.search.expression import Field, Period
from mail_assets.search.request import (
    KINDS,
    MAX_NAME,
    MAX_QUERY,
    RequestError,
    check_month,
    check_text,
    one_of,
    quote,
    strip_brackets,
)

_WORD = re.compile(r"\A[a-z]+")
_NUMBER = re.compile(r"\A(?:[a-z]+|[-+]?(?:\d++(?:\.\d*+)?|\.\d++)(?:e[-+]?\d+)?)", re.ASCII)
_DAY = re.compile(r"\A(?:[a-z]+(?:[-_][a-z]+)*+|[\d/.-]+[a-z]?)", re.ASCII)
_LIST = re.compile(r"\A\w[\w.+-]*")
_PERSON = re.compile(r"\A(?:<?\w[^\s/:;,=()\[\]{}|<>\"]*>?)")
_SUBJECT = re.compile(r"\A[\w\[][^\s=\"]*")
_FILE = re.compile(r"\A[\w.][^\s/\\:=\"]*")
_ID = re.compile(r"\A<?[^\s<>\"@]+@[^\s<>\"]+>?")

#: What a value must look like where it is not in quotes.
_FORMS: dict[str, re.Pattern[str]] = {
    "from": _PERSON,
    "to": _PERSON,
    "list": _LIST,
    "subject": _SUBJECT,
    "thread": _ID,
    "id": _ID,
    "file": _FILE,
    **dict.fromkeys(("has", "is", "kind"), _WORD),
    **dict.fromkeys(("after", "before", "date", "month"), _DAY),
    **dict.fromkeys(("mode", "group", "sort"), _WORD),
    **dict.fromkeys(("limit", "offset", "score"), _NUMBER),
}
#: Other words for a kind.
_KINDS = {"attachments": "attachment", "patches": "patch", "replies": "reply"}

#: What sets an option of the request: name of the field, of the option, and what reads a value.
OPTIONS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "mode": ("mode", str),
    "group": ("group", str),
    "sort": ("sort", str),
    "limit": ("limit", int),
    "offset": ("offset", int),
    "score": ("min_score", float),
}
#: Fields of which a message has one value: several side by side are alternatives.
EXCLUSIVE = frozenset({"from", "list", "month", "thread", "id", "date"})


def is_field(name: str, value: str, *, quoted: bool) -> bool:
    """Say whether `name:value` is meant as a field."""
    form = _FORMS.get(name)
    if form is None:
        return False
    return bool(value.strip()) if quoted else bool(form.fullmatch(value))


def read_field(name: str, value: str, today: dt.date | None) -> Field:
    """Return a field that is_field knows, its value checked.

    Raises:
        RequestError: the field does not take the value.
    """
    check_text(name, value, MAX_NAME if name == "list" else MAX_QUERY)
    value = compose(value)  # as names and subjects are stored
    match name:
        case "has" | "is" | "kind":
            kind = _KINDS.get(value, value)
            one_of("kind", kind, KINDS)
            return Field("kind", kind)
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
        case "to":  # as for files, all of a message are compared as lines of one text
            return Field(name, (strip_brackets(value) or value).replace("\n", " "))
        case "file":
            return Field(name, value.replace("\n", " "))
    return Field(name, value)


def read_option(name: str, value: str) -> tuple[str, Any]:
    """Return the option of a request that a field sets, and its value.

    Raises:
        RequestError: the value is no number where one is needed.
    """
    option, read = OPTIONS[name]
    try:
        return option, read(value)
    except ValueError:
        raise RequestError(f"{name} {quote(value)}: must be a number") from None


def write_field(name: str, value: object) -> str:
    """Return a field as it is typed, so that it is read as the same."""
    if isinstance(value, Period):
        value = _write_period(name, value)
    text = str(value)
    if is_field(name, text, quoted=False) and not text.startswith("<"):
        return f"{name}:{text}"
    doubled = text.replace('"', '""')
    return f'{name}:"{doubled}"'


def _write_period(name: str, period: Period) -> str:
    if name in ("after", "before"):
        return str(period.start or period.end)
    start, end = period
    last = "" if end is None else (end - dt.timedelta(1)).isoformat()
    return f"{start or ''}..{last}"
