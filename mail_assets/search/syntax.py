"""Filters written in a query, as in notmuch, lei and Gmail; and a whole request as one query.

    from:tom to:pgsql-hackers list:pgsql-bugs subject:vacuum thread:ID month:2024-05
    after:2024-03 before:2024-06-15 has:patch has:attachment is:reply is:first file:fix.patch
    without:ID mode:semantic group:thread limit:20 offset:20 score:0.4

A value with spaces is written in quotes: from:"Ingrid S". Several lists, months, kinds and
messages to leave out may be given; of any other filter the last one counts, and it replaces the
field of the request. Everything else is the query: "phrases", -words and OR are read by query.py.
What is no such filter, or has a backslash before its colon, is text.
"""

import datetime as dt
import re
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from typing import Any

from mail_assets.search.request import Request, RequestError, parse_day, quote

_FILTER = re.compile(r"(?<!\S)([a-z]+):(\"[^\"]*\"|[^\s\"]\S*)")


def _kind(value: str) -> dict[str, Any]:
    if value in ("attachment", "attachments"):
        return {"has_attachment": True}
    return {"kinds": (value,)}


def _number(value: str, parse: Callable[[str], Any], name: str) -> dict[str, Any]:
    try:
        return {name: parse(value)}
    except ValueError:
        raise RequestError(f"{name} {quote(value)}: must be a number") from None


#: What each filter means: its value -> fields of the request.
_PARSERS: dict[str, Callable[[str], dict[str, Any]]] = {
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
    "without": lambda value: {"without": (value,)},
    "mode": lambda value: {"mode": value},
    "group": lambda value: {"group": value},
    "limit": lambda value: _number(value, int, "limit"),
    "offset": lambda value: _number(value, int, "offset"),
    "score": lambda value: _number(value, float, "min_score"),
}
#: The fields that take several values.
_REPEATABLE = ("lists", "months", "kinds", "without")


def apply_query_filters(request: Request) -> Request:
    """Return the request with the filters of its query as fields, and the rest as its query.

    Raises:
        RequestError: the value of a filter is not allowed.
    """
    if ":" not in request.query:
        return request
    given: dict[str, Any] = {}
    for name, value in _filters(request.query):
        for field, parsed in _PARSERS[name](value).items():
            given[field] = (*given.get(field, ()), *parsed) if field in _REPEATABLE else parsed
    query = " ".join(_FILTER.sub(_keep_text, request.query).split()) if given else request.query
    return replace(request, **given, query=query.replace("\\:", ":"))


def build_permalink(request: Request) -> str:
    """Return a request as one string: a query that asks for the same again."""
    request = apply_query_filters(request)
    defaults = {field.name: field.default for field in fields(Request)}
    parts = []
    for name, field in _NAMES:
        value = getattr(request, field)
        if value == defaults[field]:
            continue
        values = value if isinstance(value, tuple) else (value,)
        parts += [f"{name}:{_quote_spaces(one)}" for one in values]
    if request.has_attachment:
        parts.append("has:attachment")
    query = re.sub(r"(?<!\S)([a-z]+):(?=\S)", r"\1\\:", request.query)
    return " ".join([*parts, query]).strip()


#: The names of the filters and the fields that they set, in the order of a permalink.
_NAMES = (
    *(("from", "sender"), ("to", "receiver"), ("list", "lists"), ("subject", "subject")),
    *(("thread", "thread"), ("month", "months"), ("after", "after"), ("before", "before")),
    *(("has", "kinds"), ("file", "attachment"), ("without", "without"), ("mode", "mode")),
    *(("group", "group"), ("limit", "limit"), ("offset", "offset"), ("score", "min_score")),
)


def _quote_spaces(value: object) -> str:
    text = value.isoformat() if isinstance(value, dt.date) else str(value)
    return f'"{text}"' if " " in text else text


def _filters(query: str) -> Iterator[tuple[str, str]]:
    for match in _FILTER.finditer(query):
        if match[1] in _PARSERS:
            yield match[1], match[2].strip('"')


def _keep_text(match: re.Match[str]) -> str:
    """Return what is left of a match: nothing of a filter, everything of other text."""
    return " " if match[1] in _PARSERS else match[0]
