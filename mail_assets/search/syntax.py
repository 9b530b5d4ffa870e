"""Filters inside a query, as notmuch, lei and Gmail have them, and a search as one string.

    from:tom to:pgsql-hackers list:pgsql-bugs subject:vacuum thread:ID month:2024-05
    after:2024-03 before:2024-06-15 has:patch has:attachment is:reply is:first file:fix.patch
    mode:semantic group:thread limit:20 offset:20 score:0.4

A value with spaces stands in quotes: from:"Ingrid S". Several lists, months and kinds may be
given; of any other field the last counts, and a field of the request gives way to the query's.
Everything else is the question. What is no such field, or stands after a backslash, is text.
What does not live here: "phrases", -words and OR (words.py).
"""

import datetime as dt
import re
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from typing import Any

from mail_assets.search.request import Request, RequestError, parse_day, quoted

_FIELD = re.compile(r"(?<!\S)([a-z]+):(\"[^\"]*\"|[^\s\"]\S*)")


def _kind(value: str) -> dict[str, Any]:
    if value in ("attachment", "attachments"):
        return {"has_attachment": True}
    return {"kinds": (value,)}


def _number(value: str, read: Callable[[str], Any], name: str) -> dict[str, Any]:
    try:
        return {name: read(value)}
    except ValueError:
        raise RequestError(f"{name} {quoted(value)}: must be a number") from None


_READERS: dict[str, Callable[[str], dict[str, Any]]] = {
    "from": lambda value: {"sender": value},
    "to": lambda value: {"receiver": value},
    "list": lambda value: {"lists": (value,)},
    "subject": lambda value: {"subject": value},
    "thread": lambda value: {"thread": value},
    "month": lambda value: {"months": (value,)},
    "after": lambda value: {"after": parse_day(value)},
    "before": lambda value: {"before": parse_day(value)},
    "has": _kind,
    "is": _kind,
    "file": lambda value: {"attachment": value},
    "mode": lambda value: {"mode": value},
    "group": lambda value: {"group": value},
    "limit": lambda value: _number(value, int, "limit"),
    "offset": lambda value: _number(value, int, "offset"),
    "score": lambda value: _number(value, float, "min_score"),
}
_SEVERAL = ("lists", "months", "kinds")


def read_request(request: Request) -> Request:
    """Return the request with the filters of its query as fields, and only the question left.

    Raises:
        RequestError: a filter has no such value.
    """
    if ":" not in request.query:
        return request
    given: dict[str, Any] = {}
    for name, value in _filters(request.query):
        for field, read in _READERS[name](value).items():
            given[field] = (*given.get(field, ()), *read) if field in _SEVERAL else read
    question = " ".join(_FIELD.sub(_rest, request.query).split()) if given else request.query
    return replace(request, **given, query=question.replace("\\:", ":"))


def permalink(request: Request) -> str:
    """Return a search as one string: a query that asks for the same again."""
    request = read_request(request)
    blank = {field.name: field.default for field in fields(Request)}
    parts = []
    for name, field in _WRITTEN:
        value = getattr(request, field)
        if value == blank[field]:
            continue
        values = value if isinstance(value, tuple) else (value,)
        parts += [f"{name}:{_written(one)}" for one in values]
    if request.has_attachment:
        parts.append("has:attachment")
    question = re.sub(r"(?<!\S)([a-z]+):(?=\S)", r"\1\\:", request.query)
    return " ".join([*parts, question]).strip()


_WRITTEN = (
    *(("from", "sender"), ("to", "receiver"), ("list", "lists"), ("subject", "subject")),
    *(("thread", "thread"), ("month", "months"), ("after", "after"), ("before", "before")),
    *(("has", "kinds"), ("file", "attachment"), ("mode", "mode"), ("group", "group")),
    *(("limit", "limit"), ("offset", "offset"), ("score", "min_score")),
)


def _written(value: object) -> str:
    text = value.isoformat() if isinstance(value, dt.date) else str(value)
    return f'"{text}"' if " " in text else text


def _filters(query: str) -> Iterator[tuple[str, str]]:
    for match in _FIELD.finditer(query):
        if match[1] in _READERS:
            yield match[1], match[2].strip('"')


def _rest(match: re.Match[str]) -> str:
    return " " if match[1] in _READERS else match[0]
