"""Counts of served searches by hour and kind, without queries and clients.

Hits and milliseconds are rounded up, so that no row identifies a single search.
"""

import datetime as dt
from bisect import bisect_left
from collections.abc import Mapping
from typing import NamedTuple

import psycopg

from mail_assets.postgres.statements import read_as, read_value, statement

#: Values to which hits and milliseconds are rounded up; larger numbers become the last value.
HITS = (0, 1, 2, 5, 10, 20, 50, 100)
MILLISECONDS = tuple(
    round(10**power * digit) for power in range(5) for digit in (1, 1.5, 2, 3, 5, 7)
)


class SearchKind(NamedTuple):
    """The key by which searches are counted; `hits` and `ms` are rounded."""

    hour: dt.datetime
    surface: str
    mode: str
    fields: tuple[str, ...]
    lists: tuple[str, ...]
    hits: int
    ms: int
    status: int


class DayPart(NamedTuple):
    """Number of searches of a day with the same surface, hits, time and status."""

    day: dt.date
    surface: str
    hits: int
    ms: int
    status: int
    searches: int


def round_up(number: float, steps: tuple[int, ...]) -> int:
    """Return the smallest step that is at least a number, or the last step."""
    return steps[min(bisect_left(steps, number), len(steps) - 1)]


def add_searches(connection: psycopg.Connection, counts: Mapping[SearchKind, int]) -> None:
    """Add counts; the database role needs only INSERT on served_searches."""
    rows = [
        kind._asdict() | {"fields": [*kind.fields], "lists": [*kind.lists], "searches": number}
        for kind, number in counts.items()
    ]
    with connection.transaction(), connection.cursor() as cursor:
        cursor.executemany(statement("search_audit", "add"), rows)


def collect_searches(connection: psycopg.Connection) -> int:
    """Move the added counts into search_audit; return the number of changed rows."""
    return connection.execute(statement("search_audit", "collect")).rowcount


def read_days(connection: psycopg.Connection, since: dt.datetime) -> list[DayPart]:
    """Return the numbers of searches since a time, by day."""
    return read_as(connection, DayPart, statement("search_audit", "days"), {"since": since})


def drop_searches(
    connection: psycopg.Connection, before: dt.datetime, *, dry_run: bool = False
) -> int:
    """Drop the counts of hours before a time; return how many searches they counted."""
    values = {"before": before}
    count = read_value(connection, statement("search_audit", "count_before"), values)
    if not dry_run:
        connection.execute(statement("search_audit", "drop_before"), values)
        connection.execute(statement("search_audit", "drop_served_before"), values)
    return int(count or 0)
