"""Reads messages for mailboxes and feeds.

A mailbox of a thread or search has each message once, across lists and months. A mailbox of a list
or month has the rows of that list or month.
"""

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import psycopg
from psycopg.rows import dict_row

from mail_assets.month import ListMonth, utc
from mail_assets.postgres.statements import read_as, read_column, statement


class ExportedMessage(NamedTuple):
    """The copy of a message's text that arrived first, without fields that only this archive has.

    `text` is the number of the text if several texts claim the id, else None.
    """

    message_id: str
    lists: tuple[str, ...]
    sent_at: dt.datetime
    subject: str
    from_name: str
    from_email: str
    recipients: tuple[str, ...]
    cc: tuple[str, ...]
    in_reply_to: tuple[str, ...]
    references: tuple[str, ...]
    body_text: str
    attachments: tuple[Mapping[str, Any], ...]
    by_subject: bool  # only its subject joins it to its thread
    text: int | None

    def as_json(self) -> dict[str, Any]:
        """Return the message as plain values; "sent_at" is ISO 8601 in UTC."""
        attachments = [{name: one[name] for name in ("name", "type")} for one in self.attachments]
        times = {"sent_at": utc(self.sent_at), "contested": self.text is not None}
        return {**self._asdict(), **times, "attachments": attachments}


class TextOf(NamedTuple):
    """A Message-ID, and the number of one of the texts that claim it."""

    message_id: str
    text: int = 1


class Dated(NamedTuple):
    """A text of a message and the time when it was sent: a position in a list by date."""

    message_id: str
    text: int
    sent_at: dt.datetime


#: The position before the newest message.
NEWEST = Dated("", 1, dt.datetime(9999, 12, 31, tzinfo=dt.UTC))


class RowKey(NamedTuple):
    """The key of a row within its month."""

    message_id: str
    variant: int


def list_thread(connection: psycopg.Connection, thread_id: str) -> list[str]:
    """Return the ids of the archived messages of a thread, oldest first."""
    return read_column(connection, statement("exports", "thread"), {"thread_id": thread_id})


def list_newest(
    connection: psycopg.Connection, thread_id: str, before: Dated, most: int
) -> list[Dated]:
    """Return at most `most` messages of a thread that are older than `before`, newest first."""
    return _list_before(connection, "newest", before, most, thread_id=thread_id)


def list_newest_of(
    connection: psycopg.Connection, list_name: str, month: str | None, before: Dated, most: int
) -> list[Dated]:
    """Return messages of a list, or of one of its months, older than `before`, newest first.

    There may be a few more than `most`: messages with the same id and time are never separated.
    """
    if month:
        of_month = ListMonth(list_name, month).columns
        return _list_before(connection, "newest_of_month", before, most, **of_month)
    return _list_before(connection, "newest_of_list", before, most, list=list_name)


def _list_before(
    connection: psycopg.Connection, name: str, before: Dated, most: int, **of: str
) -> list[Dated]:
    parameters = {
        **of,
        "sent_at": before.sent_at,
        "message_id": before.message_id,
        "most": most,
    }
    rows = connection.execute(statement("exports", name), parameters).fetchall()
    return [*dict.fromkeys(Dated(*row) for row in rows)]


def list_month(connection: psycopg.Connection, month: ListMonth) -> list[RowKey]:
    """Return the keys of the rows of a month, the oldest first."""
    return read_as(connection, RowKey, statement("exports", "month"), month.columns)


def read_rows(
    connection: psycopg.Connection, month: ListMonth, keys: Sequence[RowKey]
) -> list[ExportedMessage]:
    """Return rows of a month in the order of `keys`, without those that were deleted."""
    parameters = {
        **month.columns,
        "ids": [one.message_id for one in keys],
        "variants": [one.variant for one in keys],
    }
    with connection.cursor(row_factory=dict_row) as cursor:
        rows = cursor.execute(statement("exports", "rows"), parameters).fetchall()
    return [ExportedMessage(**row) for row in rows]


def find_versions(
    connection: psycopg.Connection, list_name: str, month: str | None = None
) -> list[tuple[str, ...]]:
    """Return values that change whenever the rows of a list, or of one of its months, change."""
    parameters = {"list": list_name, "month": month}
    return connection.execute(statement("exports", "versions"), parameters).fetchall()


def read_messages(
    connection: psycopg.Connection, wanted: Sequence[TextOf]
) -> list[ExportedMessage]:
    """Return messages in the order of `wanted`, without those in no archive."""
    parameters = {"ids": [one.message_id for one in wanted], "texts": [one.text for one in wanted]}
    with connection.cursor(row_factory=dict_row) as cursor:
        rows = cursor.execute(statement("exports", "messages"), parameters).fetchall()
    return [ExportedMessage(**row) for row in rows]
