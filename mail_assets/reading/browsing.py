"""Read what leads from message to message: months of lists, neighbours in a thread, known ids.

[month_pages] Read messages by their titles: those of a month thread by thread, those that a page names.

[stats] What is stored, per list: the figures of `mail-assets stats`.

[catalog] Describe the tables for people: full name, columns with their descriptions, number of rows.
"""

import datetime as dt
import json
from collections.abc import Collection, Iterable
from itertools import takewhile
from typing import Any, NamedTuple

import psycopg
from psycopg.rows import dict_row

from mail_assets.month import ListMonth
from mail_assets.postgres.statements import SQL, statement
from mail_assets.reading.conversations import count_threads
from mail_assets.text.letters import pair_letters

#: Characters that ids must begin with alike to be near; more are two thirds of a long one.
MIN_SHARED = 8


class Neighbours(NamedTuple):
    """The ids of the messages before and after one in its thread or list, None at the ends."""

    previous: str | None = None
    next: str | None = None


def count_months(connection: psycopg.Connection) -> dict[ListMonth, int]:
    """Return how many messages each month has that has any, by list and month."""
    rows = connection.execute(statement("browsing", "months")).fetchall()
    return {ListMonth(name, month): messages for name, month, messages in rows}


def find_newest_month(connection: psycopg.Connection) -> str | None:
    """Return the newest month that has a message, None where there is none."""
    row = connection.execute(statement("browsing", "newest_month")).fetchone()
    return row[0] if row else None


def find_newest_id(connection: psycopg.Connection) -> str | None:
    """Return the id of the newest message, None where there is none."""
    row = connection.execute(statement("browsing", "newest_id")).fetchone()
    return row[0] if row else None


def find_near_ids(connection: psycopg.Connection, message_id: str, most: int) -> list[str]:
    """Return ids of messages that begin like one that is in no archive, the most alike first."""
    parameters = {"id": message_id, "near": most}
    rows = connection.execute(statement("browsing", "near_ids"), parameters).fetchall()
    shared = {id: _count_shared(id, message_id) for (id,) in rows}
    least = max(MIN_SHARED, 2 * len(message_id) // 3)
    near = [id for id in shared if shared[id] >= min(least, len(message_id))]
    return sorted(near, key=lambda id: (-shared[id], id))[:most]


def find_known_ids(connection: psycopg.Connection, ids: Collection[str]) -> set[str]:
    """Return those that are ids of archived messages, and not the address of a sender as well."""
    if not ids:
        return set()
    rows = connection.execute(statement("browsing", "known_ids"), {"ids": [*ids]}).fetchall()
    return {message_id for (message_id,) in rows}


def find_archived_ids(connection: psycopg.Connection, ids: Collection[str]) -> set[str]:
    """Return those that are ids of archived messages."""
    rows = connection.execute(statement("browsing", "archived_ids"), {"ids": [*ids]}).fetchall()
    return {message_id for (message_id,) in rows}


def find_unknown_words(
    connection: psycopg.Connection, words: Collection[str], languages: Collection[str]
) -> list[str]:
    """Return those of the words that no message has; languages are those of PostgreSQL."""
    written = {pair_letters(word): word for word in words}
    parameters = {"words": [*written], "languages": [*languages]}
    rows = connection.execute(statement("browsing", "unknown_words"), parameters).fetchall()
    return [written[word] for (word,) in rows]


def read_neighbours(connection: psycopg.Connection, message_id: str) -> Neighbours:
    """Return the neighbours of a message in its thread; none where no thread was built yet."""
    parameters = {"message_id": message_id}
    row = connection.execute(statement("browsing", "neighbours"), parameters).fetchone()
    return Neighbours(*row) if row else Neighbours()


def read_list_neighbours(connection: psycopg.Connection, message_id: str) -> dict[str, Neighbours]:
    """Return the neighbours of a message by date, in each list that carries it."""
    parameters = {"message_id": message_id}
    rows = connection.execute(statement("browsing", "list_neighbours"), parameters).fetchall()
    return {name: Neighbours(*ids) for name, *ids in rows}


def _count_shared(one: str, other: str) -> int:
    """Return how many characters two texts begin with alike."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


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


def read_stats(
    connection: psycopg.Connection, lists: Iterable[str], vectors: str, words: str
) -> dict[str, Any]:
    """Return {"lists": {LIST: figures}, "threads": number}; both indexes as in the manifest."""
    with connection.cursor(row_factory=dict_row) as cursor:
        parameters = {"lists": [*lists], "vectors_name": vectors, "words_name": words}
        rows = cursor.execute(statement("stats", "lists"), parameters).fetchall()
    return {"lists": {row.pop("list"): row for row in rows}, "threads": count_threads(connection)}


#: The figure of a month that counts its rows, by table.
ROW_FIGURES = {"messages": "stored", "chunks": "chunks", "vectors": "chunks", "words": "documents"}


class Column(NamedTuple):
    """A column of a table; `description` is its comment in the database (sql/007_comments.sql)."""

    name: str
    type: str
    nullable: bool
    description: str | None


#: Every table that is an asset, with its columns; `declared_columns` reads it.
DECLARED = SQL / "columns.json"


def declared_columns(table: str) -> list[Column]:
    """Return the columns of a table in order, as they are declared without a database."""
    return [Column(*column) for column in json.loads(DECLARED.read_text())[table]]


def columns(connection: psycopg.Connection, table: str) -> list[Column]:
    """Return the columns of a table in order."""
    rows = connection.execute(statement("catalog", "columns"), {"table": table}).fetchall()
    return [Column(*row) for row in rows]


def full_name(connection: psycopg.Connection, table: str) -> str:
    """Return "database.schema.table"."""
    row = connection.execute(statement("catalog", "name"), {"table": table}).fetchone()
    return str(row[0]) if row else table


def row_count(connection: psycopg.Connection, table: str) -> int:
    """Return the number of rows of an asset's table, as its months recorded it.

    Of `vectors` and `words` those of the index that each month was last written to.
    """
    if table in ROW_FIGURES:
        query, asked = "rows_recorded", {"table": table, "figure": ROW_FIGURES[table]}
    else:
        query, asked = f"rows_{table}", {}
    row = connection.execute(statement("catalog", query), asked).fetchone()
    return int(row[0]) if row else 0
