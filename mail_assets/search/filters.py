"""The filters of a request, in the two languages that it is answered in.

The vector index filters by what it carries beside each vector; Postgres filters by the message
itself and has the last word.
"""

import datetime as dt
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any, LiteralString

import psycopg

from mail_assets.month import month_number
from mail_assets.postgres.statements import statement
from mail_assets.search.query import Question
from mail_assets.search.request import Request, RequestError, bare_id, quoted
from mail_assets.steps.vector_index import MAX_ID, MAX_SENDER
from mail_assets.vectors.filters import Filter

#: Values of one field that are put to the vector index: S3 Vectors takes 100 in a filter.
MAX_VALUES = 50
#: Addresses that a sender filter may stand for; more says nothing about a person.
MAX_SENDERS = 2_000

#: The filters that the vector index does not know.
_BEHIND = ("receiver", "subject", "thread", "attachment", "has_attachment", "kinds")


@dataclass(frozen=True)
class Limits:
    """What a message must be: conditions of sql/filters.sql by name, and their parameters.

    `index` is what the vector index can check of it; `whole` says that this is all of it.
    """

    conditions: tuple[str, ...]
    parameters: dict[str, Any]
    index: tuple[Filter, ...]
    whole: bool

    @property
    def lists(self) -> list[str]:
        """Return the lists that are searched."""
        return list(self.parameters["lists"])

    def statement(self, name: str) -> LiteralString:
        """Return a statement of sql/search.sql with these conditions in it."""
        passes = "\n   and ".join(_condition(one) for one in self.conditions)
        return statement("search", name).replace("{passes}", passes)

    @property
    def filter(self) -> Filter | None:
        """Return the limits in the language of the vector index, None where there are none."""
        if len(self.index) > 1:
            return {"$and": [*self.index]}
        return self.index[0] if self.index else None

    def requiring(self, questions: Sequence[Question]) -> "Limits":
        """Return the limits with what the words themselves require of a message."""
        required = [(name, q.required) for q in questions if q.required for name in q.lists]
        if not required:
            return self
        lists, texts = zip(*required, strict=True)
        return replace(
            self,
            conditions=(*self.conditions, "required"),
            parameters={**self.parameters, "required_lists": [*lists], "required": [*texts]},
            whole=False,
        )

    def to_messages(self, message_ids: Sequence[str]) -> "Limits":
        """Return the limits with the index asked for these messages only."""
        only: Filter = {"message_id": {"$in": sorted({one[:MAX_ID] for one in message_ids})}}
        return replace(self, index=(only,))


def read_limits(
    connection: psycopg.Connection, request: Request, known: Collection[str]
) -> Limits | None:
    """Return what a request's filters stand for, None where nothing can pass them.

    Raises:
        RequestError: a list is unknown, or the sender stands for too many addresses.
    """
    for name in request.lists:
        if name not in known:
            there = ", ".join(sorted(known))
            raise RequestError(f"list {quoted(name)} is unknown; there are: {there}")
    given: dict[str, Any] = {"lists": sorted(set(request.lists or known))}
    index: list[Filter] = []
    if request.lists:
        index.append({"list": {"$in": given["lists"]}})
    if request.months:
        given["months"] = sorted(set(request.months))
        index.append({"month": {"$in": [month_number(month) for month in given["months"]]}})
    if request.after:
        given["after"] = f"{request.after} UTC"
        index.append({"sent_at": {"$gte": _epoch(request.after)}})
    if request.before:
        given["before"] = f"{request.before} UTC"
        index.append({"sent_at": {"$lt": _epoch(request.before)}})
    if sender := request.sender.strip():
        given["senders"] = _senders(connection, sender)
        values = sorted({address[:MAX_SENDER] for address in given["senders"]})
        if len(values) <= MAX_VALUES:
            index.append({"sender": {"$in": values}})
        if not values:
            return None
    if request.thread:
        given["thread"] = _thread(connection, request.thread)
        if given["thread"] is None:
            return None
    for name in ("receiver", "subject", "attachment"):
        if getattr(request, name):
            given[name] = getattr(request, name)
    flags = [*dict.fromkeys(request.kinds)] + ["has_attachment"] * request.has_attachment
    return Limits(
        conditions=(*given, *flags),
        parameters=given,
        index=tuple(index),
        whole=not any(getattr(request, name) for name in _BEHIND)
        and len(given.get("senders", ())) <= MAX_VALUES,
    )


def _condition(name: str) -> str:
    """Return a condition without the comment above it."""
    lines = statement("filters", name).split("\n")
    return "\n".join(line for line in lines if not line.startswith("--"))


def _senders(connection: psycopg.Connection, sender: str) -> list[str]:
    pattern = sender.lower().replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    parameters = {"sender": sender, "pattern": f"%{pattern}%", "most": MAX_SENDERS + 1}
    rows = connection.execute(statement("search", "senders"), parameters).fetchall()
    if len(rows) > MAX_SENDERS:
        raise RequestError(
            f"sender {quoted(sender)} matches more than {MAX_SENDERS} addresses: give more of it"
        )
    return sorted(address for (address,) in rows)


def _thread(connection: psycopg.Connection, message_id: str) -> str | None:
    bare = bare_id(message_id)
    row = connection.execute(statement("search", "thread"), {"message_id": bare}).fetchone()
    return row[0] if row else None


def _epoch(day: dt.date) -> int:
    """Return the first second of a day in UTC, since 1970."""
    return int(dt.datetime(day.year, day.month, day.day, tzinfo=dt.UTC).timestamp())
