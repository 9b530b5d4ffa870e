"""Messages and their chunks as records, for `list`, `show` and the text around chunks."""

from collections.abc import Collection, Iterator
from typing import Any

import psycopg
from psycopg.rows import dict_row

from mail_assets.postgres.statements import statement
from mail_assets.tables.messages import utc


def list_messages(
    connection: psycopg.Connection, list_name: str, month: str | None, sort: str = "archive"
) -> Iterator[dict[str, Any]]:
    """Yield a record for each message of a list, in the order of its archives.

    With `sort` "oldest" or "newest" they are in the order of their dates.

    A server-side cursor: a list of 400,000 messages does not have to fit into memory.
    """
    with (
        connection.transaction(),
        connection.cursor("list_messages", row_factory=dict_row) as cursor,
    ):
        cursor.execute(
            statement("records", "list"), {"list": list_name, "month": month, "sort": sort}
        )
        for row in cursor:
            yield {**row, "sent_at": utc(row["sent_at"])}


def show_message(connection: psycopg.Connection, message_id: str) -> list[dict[str, Any]]:
    """Return every row with this id: one for each list, month and variant."""
    with connection.cursor(row_factory=dict_row) as cursor:
        return cursor.execute(statement("records", "show"), {"message_id": message_id}).fetchall()


def read_message_chunks(connection: psycopg.Connection, message_id: str) -> list[dict[str, Any]]:
    """Return the chunks of every copy of a message, spans as pairs."""
    with connection.cursor(row_factory=dict_row) as cursor:
        rows = cursor.execute(statement("records", "chunks"), {"message_id": message_id}).fetchall()
    for row in rows:
        row["spans"] = [*zip(row["spans"][::2], row["spans"][1::2], strict=True)]
    return rows


def read_around(
    connection: psycopg.Connection, keys: Collection[str], context: int
) -> dict[str, list[str]]:
    """Return the text of each span of some chunks, with `context` characters on both sides."""
    rows = connection.execute(statement("records", "around"), {"keys": [*keys], "context": context})
    return dict(rows.fetchall())
