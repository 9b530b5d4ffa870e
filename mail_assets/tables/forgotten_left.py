"""What the rows of a month, and the threads of its messages, still hold of what was forgotten.

Only what a month touches is read: ids and addresses, which are compared here because the key of
their digests never goes to the database.
"""

from collections.abc import Iterable

import psycopg

from mail_assets.mail.message.forgotten import Forgotten
from mail_assets.month import ListMonth
from mail_assets.postgres.statements import statement
from mail_assets.tables.hidden_people import names_forgotten


def count_rows_left(connection: psycopg.Connection, month: ListMonth, forgotten: Forgotten) -> int:
    """Count the messages and chunks of a month that hold what must stay out."""
    left = 0
    query = statement("forgotten_left", "messages")
    for message_id, name, email, ids, entries in connection.execute(query, month.columns):
        left += (
            forgotten.removal_of_id(message_id) is not None
            or forgotten.removal_of_author(name, email) is not None
            or any(map(forgotten.hides_id, ids))
            or any(names_forgotten(entry, forgotten) for entry in entries)
        )
    query = statement("forgotten_left", "chunks")
    for message_id, removed in connection.execute(query, month.columns):
        left += removed or forgotten.removal_of_id(message_id) is not None
    return left


def count_threads_left(
    connection: psycopg.Connection, month: ListMonth, forgotten: Forgotten
) -> int:
    """Count the rows that hold an id that must stay out, in the threads of a month's messages."""
    threads = connection.execute(statement("forgotten_left", "threads"), month.columns)
    aliases = connection.execute(statement("forgotten_left", "aliases"), month.columns)
    return _count_hidden(threads, forgotten) + _count_hidden(aliases, forgotten)


def _count_hidden(rows: Iterable[tuple[str | None, ...]], forgotten: Forgotten) -> int:
    return sum(any(x is not None and forgotten.hides_id(x) for x in {*row}) for row in rows)


def read_key_prefixes(connection: psycopg.Connection, month: ListMonth) -> list[str]:
    """Return what the keys of a month's removed messages begin with."""
    rows = connection.execute(statement("forgotten_left", "key_prefixes"), month.columns)
    return [prefix for (prefix,) in rows.fetchall()]
