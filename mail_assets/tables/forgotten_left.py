"""What rows still hold of what was forgotten: of a month and the threads of its messages, or all.

Ids and addresses are read and compared here, because the key of their digests never goes to the
database.
"""

from collections.abc import Iterable, Iterator
from typing import Any, LiteralString, NamedTuple

import psycopg

from mail_assets.mail.message.forgotten import Forgotten
from mail_assets.month import ListMonth
from mail_assets.postgres.statements import statement
from mail_assets.tables.hidden_people import names_forgotten, parse_mailbox

#: Rows that are read at once of the whole corpus.
ROWS = 10_000


class ForgottenNames(NamedTuple):
    """What rows name of the forgotten: messages, senders, and ids of the mail of senders."""

    message_ids: frozenset[str]
    senders: frozenset[str]
    hidden: frozenset[str]


def find_names(connection: psycopg.Connection, forgotten: Forgotten) -> ForgottenNames:
    """Return the forgotten ids and addresses that any row names, which digests do not tell."""
    message_ids, senders, hidden = set[str](), set[str](), set[str]()
    for (message_id,) in _stream(connection, statement("forgotten_left", "all_ids")):
        if forgotten.removal_of_id(message_id) is not None:
            message_ids.add(message_id)
        elif forgotten.hides_id(message_id):
            hidden.add(message_id)
    for author in _stream(connection, statement("forgotten_left", "all_authors")):
        senders.update(address for address, _ in forgotten.find_senders(*author))
    for (entry,) in _stream(connection, statement("forgotten_left", "all_entries")):
        found = forgotten.find_senders(*parse_mailbox(entry))
        senders.update(address for address, _ in found)
    return ForgottenNames(frozenset(message_ids), frozenset(senders), frozenset(hidden))


def _stream(connection: psycopg.Connection, query: LiteralString) -> Iterator[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        yield from cursor.stream(query, size=ROWS)


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
