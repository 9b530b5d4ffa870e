"""Reads lists, months and neighbours of messages for display, figures, and table columns."""

import datetime as dt
import json
from collections.abc import Collection, Iterable, Iterator
from itertools import takewhile
from typing import Any, NamedTuple

import psycopg
from psycopg.rows import dict_row

from mail_assets.month import ListMonth, utc
from mail_assets.postgres.statements import SQL, read_as, read_column, read_value, statement
from mail_assets.reading.conversations import count_threads

#: Fewest common first characters of similar ids; for long ids it is two thirds of them.
MIN_SHARED = 8


class Neighbours(NamedTuple):
    """The ids of the previous and the next message in a thread or list, None at its ends."""

    previous: str | None = None
    next: str | None = None


def count_months(connection: psycopg.Connection) -> dict[ListMonth, int]:
    """Return the number of messages of each month that has any."""
    rows = connection.execute(statement("browsing", "months")).fetchall()
    return {ListMonth(name, month): messages for name, month, messages in rows}


def find_newest_month(connection: psycopg.Connection) -> str | None:
    """Return the newest month with a message, None if there is none."""
    row = connection.execute(statement("browsing", "newest_month")).fetchone()
    return row[0] if row else None


def find_newest_id(connection: psycopg.Connection) -> str | None:
    """Return the id of the newest message, None if there is none."""
    row = connection.execute(statement("browsing", "newest_id")).fetchone()
    return row[0] if row else None


def find_near_ids(connection: psycopg.Connection, message_id: str, most: int) -> list[str]:
    """Return at most `most` ids of messages that begin like an unknown id, most similar first."""
    parameters = {"id": message_id, "near": most}
    rows = connection.execute(statement("browsing", "near_ids"), parameters).fetchall()
    shared = {id: _count_shared(id, message_id) for (id,) in rows}
    least = max(MIN_SHARED, 2 * len(message_id) // 3)
    near = [id for id in shared if shared[id] >= min(least, len(message_id))]
    return sorted(near, key=lambda id: (-shared[id], id))[:most]


def find_known_ids(connection: psycopg.Connection, ids: Collection[str]) -> set[str]:
    """Return the ids of archived messages that are not also the address of a sender."""
    if not ids:
        return set()
    return {*read_column(connection, statement("browsing", "known_ids"), {"ids": [*ids]})}


def read_neighbours(connection: psycopg.Connection, message_id: str) -> Neighbours:
    """Return the neighbours of a message in its thread; none if its thread is not built yet."""
    parameters = {"message_id": message_id}
    row = connection.execute(statement("browsing", "neighbours"), parameters).fetchone()
    return Neighbours(*row) if row else Neighbours()


def read_list_neighbours(connection: psycopg.Connection, message_id: str) -> dict[str, Neighbours]:
    """Return the neighbours of a message by date, in each list that carries it."""
    parameters = {"message_id": message_id}
    rows = connection.execute(statement("browsing", "list_neighbours"), parameters).fetchall()
    return {name: Neighbours(*ids) for name, *ids in rows}


def _count_shared(one: str, other: str) -> int:
    """Return the length of the common prefix of two texts."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


class MonthEntry(NamedTuple):
    """A message of a month, with its thread and its depth in the thread.

    `text` is the number of its text if several texts claim its id; only the first is in a thread.
    """

    message_id: str
    subject: str
    from_name: str
    from_email: str
    sent_at: dt.datetime
    text: int | None
    thread_id: str | None
    depth: int
    by_subject: bool


def read_month(
    connection: psycopg.Connection, month: ListMonth, first: int, most: int
) -> list[MonthEntry]:
    """Return at most `most` messages of a month, starting at index `first`.

    They are grouped by thread. Threads are ordered by their first message of the month.
    """
    parameters = {**month.columns, "first": first, "most": most}
    return read_as(connection, MonthEntry, statement("browsing", "month"), parameters)


class NewestThread(NamedTuple):
    """A thread in the requested lists: its first node `first_id`, and the author who began it."""

    first_id: str
    from_name: str
    from_email: str
    messages: int
    people: int
    lists: list[str]
    subject: str
    last_sent_at: dt.datetime


def read_newest_threads(
    connection: psycopg.Connection, lists: Collection[str], most: int, recent: int
) -> list[NewestThread]:
    """Return the threads of the `recent` newest messages of some lists, the newest first."""
    parameters = {"lists": [*lists], "most": most, "recent": recent}
    return read_as(connection, NewestThread, statement("browsing", "newest_threads"), parameters)


def has_attachments(connection: psycopg.Connection, lists: Collection[str]) -> bool:
    """Return whether a message of some lists has an attachment."""
    query = statement("browsing", "has_attachments")
    return bool(read_value(connection, query, {"lists": [*lists]}))


class PageAddress(NamedTuple):
    """A message that has a page; `thread` is set if the message begins its thread."""

    message_id: str
    sent_at: dt.datetime
    thread: str | None


def read_month_addresses(
    connection: psycopg.Connection, month: ListMonth, first: int, most: int
) -> list[PageAddress]:
    """Return the pages of a month's messages and of the threads that begin in it."""
    parameters = {**month.columns, "first": first, "most": most}
    return read_as(connection, PageAddress, statement("browsing", "month_addresses"), parameters)


def read_stats(
    connection: psycopg.Connection, lists: Iterable[str], vectors: str, words: str
) -> dict[str, Any]:
    """Return {"lists": {LIST: figures}, "threads": number}; the indexes are manifest names."""
    with connection.cursor(row_factory=dict_row) as cursor:
        parameters = {"lists": [*lists], "vectors_name": vectors, "words_name": words}
        rows = cursor.execute(statement("browsing", "list_stats"), parameters).fetchall()
    return {"lists": {row.pop("list"): row for row in rows}, "threads": count_threads(connection)}


class Freshness(NamedTuple):
    """Date of the newest message of a list, and the amounts of mail that search cannot find.

    words: messages that the word index lacks.
    vectors: passages that the vector index lacks.
    unreadable: messages in quarantine.
    """

    list_name: str
    newest: dt.datetime | None
    words: int
    vectors: int
    unreadable: int


def read_freshness(
    connection: psycopg.Connection, lists: Iterable[str], vectors: str, words: str
) -> list[Freshness]:
    """Return the freshness of lists, from the figures of their months."""
    parameters = {"lists": [*lists], "vectors_name": vectors, "words_name": words}
    dates = connection.execute(statement("browsing", "newest_dates"), parameters).fetchall()
    newest: dict[str, dt.datetime | None] = dict(dates)
    with connection.cursor(row_factory=dict_row) as cursor:
        rows = cursor.execute(statement("browsing", "list_stats"), parameters).fetchall()
    return [
        Freshness(
            row["list"],
            newest[row["list"]],
            max(0, row["messages"] - row["words"]),
            max(0, row["chunks"] - row["vectors"]),
            row["quarantined"],
        )
        for row in rows
    ]


#: Table -> the figure in a month's state that counts its rows.
ROW_FIGURES = {
    "messages": "stored",
    "patches": "rows",
    "commits": "commits",
    "chunks": "chunks",
    "vectors": "chunks",
    "words": "documents",
}


class Column(NamedTuple):
    """A column of a table; `description` is its comment in the database (sql/schema.sql)."""

    name: str
    type: str
    nullable: bool
    description: str | None


#: The columns of every table that is an asset. Dagster needs them before there is a database. A
#: test compares the file with the tables and can write it.
DECLARED = SQL / "columns.json"


def declared_columns(table: str) -> list[Column]:
    """Return the columns of a table in order, without a database."""
    return [Column(*column) for column in json.loads(DECLARED.read_text())[table]]


def columns(connection: psycopg.Connection, table: str) -> list[Column]:
    """Return the columns of a table in order."""
    return read_as(connection, Column, statement("browsing", "columns"), {"table": table})


def full_name(connection: psycopg.Connection, table: str) -> str:
    """Return "database.schema.table"."""
    row = connection.execute(statement("browsing", "full_name"), {"table": table}).fetchone()
    return str(row[0]) if row else table


def row_count(connection: psycopg.Connection, table: str) -> int:
    """Return the number of rows of an asset's table, from the figures of its months.

    For `vectors` and `words`, the index to which each month was last written counts.
    """
    if table in ROW_FIGURES:
        query, asked = "rows_recorded", {"table": table, "figure": ROW_FIGURES[table]}
    else:
        query, asked = f"rows_{table}", {}
    return int(read_value(connection, statement("browsing", query), asked) or 0)


def list_messages(
    connection: psycopg.Connection, list_name: str, month: str | None, sort: str = "archive"
) -> Iterator[dict[str, Any]]:
    """Yield a record for each message of a list, in the order of its archives.

    With `sort` "oldest" or "newest" they are in the order of their dates. The cursor is on the
    server, so that a list of 400,000 messages need not fit into memory.
    """
    with (
        connection.transaction(),
        connection.cursor("list_messages", row_factory=dict_row) as cursor,
    ):
        cursor.execute(
            statement("browsing", "list"), {"list": list_name, "month": month, "sort": sort}
        )
        for row in cursor:
            yield {**row, "sent_at": utc(row["sent_at"])}


def show_message(connection: psycopg.Connection, message_id: str) -> list[dict[str, Any]]:
    """Return every row with a Message-ID: one for each list, month and variant."""
    with connection.cursor(row_factory=dict_row) as cursor:
        return cursor.execute(statement("browsing", "show"), {"message_id": message_id}).fetchall()


def read_around(
    connection: psycopg.Connection, keys: Collection[str], context: int
) -> dict[str, list[str]]:
    """Return chunk key -> text of each of its spans, with `context` characters on both sides."""
    rows = connection.execute(
        statement("browsing", "around"), {"keys": [*keys], "context": context}
    )
    return dict(rows.fetchall())
