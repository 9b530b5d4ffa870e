"""The filters of a request, in the two languages that it is answered in.

The vector index filters by what it carries beside each vector; Postgres filters by the message
itself and has the last word.
"""

import datetime as dt
from collections.abc import Collection, Sequence
from typing import NamedTuple

import psycopg

from mail_assets.search.request import Request, RequestError
from mail_assets.steps.vectors import MAX_SENDER
from mail_assets.store.statements import statement
from mail_assets.vectors.filters import Filter

#: Addresses that a sender filter may stand for; more says nothing about a person, and S3
#: Vectors takes 100 values in a whole filter.
MAX_SENDERS = 50


class Limits(NamedTuple):
    """What a message must be. `senders` None: anyone; `lists` are all lists where none is asked."""

    lists: list[str]
    only_lists: bool
    after: dt.date | None
    before: dt.date | None
    senders: list[str] | None


def read_limits(connection: psycopg.Connection, request: Request, known: Collection[str]) -> Limits:
    """Return what a request's filters stand for.

    Raises:
        RequestError: a list is unknown, or the sender stands for too many addresses.
    """
    for name in request.lists:
        if name not in known:
            raise RequestError(f"list {name!r} is unknown; there are: {', '.join(sorted(known))}")
    return Limits(
        lists=sorted(set(request.lists or known)),
        only_lists=bool(request.lists),
        after=request.after,
        before=request.before,
        senders=_senders(connection, request.sender.strip()),
    )


def vector_filter(limits: Limits) -> Filter | None:
    """Return the limits in the language of the vector index, None where there are none."""
    parts: list[Filter] = []
    if limits.only_lists:
        parts.append({"list": {"$in": limits.lists}})
    if limits.after:
        parts.append({"sent_at": {"$gte": _epoch(limits.after)}})
    if limits.before:
        parts.append({"sent_at": {"$lt": _epoch(limits.before)}})
    if limits.senders is not None:
        parts.append({"sender": {"$in": sorted({s[:MAX_SENDER] for s in limits.senders})}})
    if len(parts) > 1:
        return {"$and": parts}
    return parts[0] if parts else None


def sql_parameters(limits: Limits, lists: Sequence[str]) -> dict[str, object]:
    """Return the limits as the statements of sql/search.sql name them."""
    return {
        "lists": [*lists],
        "after": f"{limits.after} UTC" if limits.after else "-infinity",
        "before": f"{limits.before} UTC" if limits.before else "infinity",
        "senders": limits.senders,
    }


def _senders(connection: psycopg.Connection, sender: str) -> list[str] | None:
    if not sender:
        return None
    parameters = {"sender": sender, "most": MAX_SENDERS + 1}
    rows = connection.execute(statement("search", "senders"), parameters).fetchall()
    if len(rows) > MAX_SENDERS:
        raise RequestError(
            f"sender {sender!r} matches more than {MAX_SENDERS} addresses: give more of it"
        )
    return sorted(address for (address,) in rows)


def _epoch(day: dt.date) -> int:
    """Return the first second of a day in UTC, since 1970."""
    return int(dt.datetime(day.year, day.month, day.day, tzinfo=dt.UTC).timestamp())
