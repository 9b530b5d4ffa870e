"""The filters of a request, compiled for the two systems that check them.

The vector index filters by the metadata of each vector; Postgres filters by the message itself and
decides, because the metadata can be older than the message.
"""

import datetime as dt
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any, LiteralString

import psycopg

from mail_assets.month import month_number
from mail_assets.postgres.statements import statement
from mail_assets.search.query import LanguageQuery
from mail_assets.search.request import Request, RequestError, quote, strip_brackets
from mail_assets.steps.vector_index import MAX_ID, MAX_SENDER
from mail_assets.vectors.filters import Filter

#: Values of one field in a filter of the vector index: S3 Vectors takes 100.
MAX_VALUES = 50
#: Addresses that a sender filter may match; more says nothing about a person.
MAX_SENDERS = 2_000

#: The fields of a request that the vector index cannot check.
_POSTGRES_ONLY = ("receiver", "subject", "thread", "attachment", "has_attachment", "kinds")


@dataclass(frozen=True)
class MessageFilter:
    """Conditions of sql/filters.sql by name with their parameters, and the same for the index.

    `index_filters` is what the vector index can check of them; `index_checks_all` says that this
    is everything.
    """

    conditions: tuple[str, ...]
    parameters: dict[str, Any]
    index_filters: tuple[Filter, ...]
    index_checks_all: bool

    @property
    def lists(self) -> list[str]:
        """The lists that are searched."""
        return list(self.parameters["lists"])

    @property
    def index_filter(self) -> Filter | None:
        """The filter for the vector index, None where there is nothing to check."""
        if len(self.index_filters) > 1:
            return {"$and": [*self.index_filters]}
        return self.index_filters[0] if self.index_filters else None

    def statement(self, name: str) -> LiteralString:
        """Return a statement of sql/search.sql with these conditions in it."""
        passes = "\n   and ".join(_condition(one) for one in self.conditions)
        return statement("search", name).replace("{passes}", passes)

    def require_words(self, queries: Sequence[LanguageQuery]) -> "MessageFilter":
        """Return the filter with the phrases and exclusions of a query added."""
        required = [(name, one.required) for one in queries if one.required for name in one.lists]
        if not required:
            return self
        lists, texts = zip(*required, strict=True)
        return replace(
            self,
            conditions=(*self.conditions, "required"),
            parameters={**self.parameters, "required_lists": [*lists], "required": [*texts]},
            index_checks_all=False,
        )

    def limit_index_to(self, message_ids: Sequence[str]) -> "MessageFilter":
        """Return the filter with the vector index restricted to these messages."""
        only: Filter = {"message_id": {"$in": sorted({one[:MAX_ID] for one in message_ids})}}
        return replace(self, index_filters=(only,))


def compile_filters(
    connection: psycopg.Connection, request: Request, known_lists: Collection[str]
) -> MessageFilter | None:
    """Return the filters of a request, None where no message can pass them.

    Raises:
        RequestError: a list is unknown, or the sender matches too many addresses.
    """
    _check_lists(request, known_lists)
    parameters: dict[str, Any] = {"lists": sorted(set(request.lists or known_lists))}
    if request.months:
        parameters["months"] = sorted(set(request.months))
    if request.after:
        parameters["after"] = f"{request.after} UTC"
    if request.before:
        parameters["before"] = f"{request.before} UTC"
    if sender := request.sender.strip():
        parameters["senders"] = _find_senders(connection, sender)
        if not parameters["senders"]:
            return None
    if request.thread:
        parameters["thread"] = _find_thread(connection, request.thread)
        if parameters["thread"] is None:
            return None
    if request.without:
        parameters["without"] = sorted({strip_brackets(one) for one in request.without})
    for name in ("receiver", "subject", "attachment"):
        if getattr(request, name):
            parameters[name] = getattr(request, name)
    flags = [*dict.fromkeys(request.kinds)] + ["has_attachment"] * request.has_attachment
    return MessageFilter(
        conditions=(*parameters, *flags),
        parameters=parameters,
        index_filters=_index_filters(request, parameters),
        index_checks_all=not any(getattr(request, name) for name in _POSTGRES_ONLY)
        and all(len(parameters.get(name, ())) <= MAX_VALUES for name in ("senders", "without")),
    )


def _check_lists(request: Request, known_lists: Collection[str]) -> None:
    for name in request.lists:
        if name not in known_lists:
            known = ", ".join(sorted(known_lists))
            raise RequestError(f"list {quote(name)} is unknown; there are: {known}")


def _index_filters(request: Request, parameters: dict[str, Any]) -> tuple[Filter, ...]:
    """Return what the vector index can check of a request."""
    filters: list[Filter] = []
    if request.lists:
        filters.append({"list": {"$in": parameters["lists"]}})
    if request.months:
        filters.append({"month": {"$in": [month_number(one) for one in parameters["months"]]}})
    if request.after:
        filters.append({"sent_at": {"$gte": _epoch(request.after)}})
    if request.before:
        filters.append({"sent_at": {"$lt": _epoch(request.before)}})
    senders = sorted({address[:MAX_SENDER] for address in parameters.get("senders", ())})
    if 0 < len(senders) <= MAX_VALUES:
        filters.append({"sender": {"$in": senders}})
    without = sorted({one[:MAX_ID] for one in parameters.get("without", ())})
    if 0 < len(without) <= MAX_VALUES:
        filters.append({"message_id": {"$nin": without}})
    return tuple(filters)


def _condition(name: str) -> str:
    """Return a condition without the comment above it."""
    lines = statement("filters", name).split("\n")
    return "\n".join(line for line in lines if not line.startswith("--"))


def _find_senders(connection: psycopg.Connection, sender: str) -> list[str]:
    """Return the addresses that a sender filter matches."""
    pattern = sender.lower().replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    parameters = {"sender": sender, "pattern": f"%{pattern}%", "most": MAX_SENDERS + 1}
    rows = connection.execute(statement("search", "senders"), parameters).fetchall()
    if len(rows) > MAX_SENDERS:
        raise RequestError(
            f"sender {quote(sender)} matches more than {MAX_SENDERS} addresses: give more of it"
        )
    return sorted(address for (address,) in rows)


def _find_thread(connection: psycopg.Connection, message_id: str) -> str | None:
    parameters = {"message_id": strip_brackets(message_id)}
    row = connection.execute(statement("search", "thread"), parameters).fetchone()
    return row[0] if row else None


def _epoch(day: dt.date) -> int:
    """Return the first second of a day in UTC, since 1970."""
    return int(dt.datetime(day.year, day.month, day.day, tzinfo=dt.UTC).timestamp())
