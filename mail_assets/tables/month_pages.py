"""Read messages by their titles: those of a month thread by thread, those that a page names."""

import datetime as dt
from collections.abc import Collection
from typing import NamedTuple

import psycopg

from mail_assets.month import ListMonth
from mail_assets.postgres.statements import statement


class Title(NamedTuple):
    """What a line about a message says."""

    message_id: str
    subject: str
    from_name: str
    from_email: str
    sent_at: dt.datetime


class MonthEntry(NamedTuple):
    """A message of a month, with its thread and its depth there."""

    title: Title
    thread_id: str
    depth: int


def read_titles(connection: psycopg.Connection, ids: Collection[str]) -> dict[str, Title]:
    """Return the titles of those of the ids that are of messages, by id."""
    rows = connection.execute(statement("month_pages", "titles"), {"ids": [*ids]}).fetchall()
    return {row[0]: Title(*row) for row in rows}


def read_month(
    connection: psycopg.Connection, month: ListMonth, first: int, most: int
) -> list[MonthEntry]:
    """Return the messages of a month from the place `first` on, `most` of them.

    They are in the order of the threads, a thread where its first message of the month is.
    """
    parameters = {**month.columns, "first": first, "most": most}
    rows = connection.execute(statement("month_pages", "month"), parameters).fetchall()
    return [MonthEntry(Title(*row[:5]), *row[5:]) for row in rows]
