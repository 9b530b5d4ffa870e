"""The lexemes of messages, from which the documents of the word index are made."""

from collections.abc import Collection, Iterator
from itertools import islice
from typing import NamedTuple

import psycopg

from mail_assets.month import ListMonth
from mail_assets.postgres.statements import statement
from mail_assets.tables.removed_messages import key_prefix

#: Messages whose lexemes are fetched at once; most have 200.
MESSAGES_AT_A_TIME = 1_000


class MessageWords(NamedTuple):
    """The content of a document; lexemes are in the order of their positions.

    `further` are those that no phrase runs over: forms of words, parts of addresses, and names.
    `written` are words as they are written. `sent_at` is in seconds since 1970.
    """

    message_id: str
    variant: int
    sent_at: int
    sender: str
    flags: list[str]
    subject: list[str]
    text: list[str]
    further: list[str]
    written: list[str]


class _Row(NamedTuple):
    """A row of messages and its hash."""

    message_id: str
    variant: int
    row_hash: bytes


def read_digests(connection: psycopg.Connection, month: ListMonth) -> dict[str, bytes]:
    """Return the keys of a month's documents, sorted, each with the hash of its row."""
    return {key: row.row_hash for key, row in sorted(_read_rows(connection, month).items())}


def read_words(
    connection: psycopg.Connection, month: ListMonth, keys: Collection[str]
) -> Iterator[tuple[str, MessageWords]]:
    """Yield some of a month's documents with their keys, without those of vanished messages."""
    rows = _read_rows(connection, month)
    wanted = iter([(key, rows[key]) for key in keys if key in rows])
    while some := [*islice(wanted, MESSAGES_AT_A_TIME)]:
        places = {(row.message_id, row.variant): key for key, row in some}
        parameters = {
            **month.columns,
            "message_ids": [message_id for message_id, _ in places],
            "variants": [variant for _, variant in places],
        }
        for found in connection.execute(statement("words", "documents"), parameters):
            words = MessageWords(*found)
            yield places[words.message_id, words.variant], words


def _read_rows(connection: psycopg.Connection, month: ListMonth) -> dict[str, _Row]:
    """Return the rows of a month by the keys of their documents."""
    rows = connection.execute(statement("words", "messages"), month.columns).fetchall()
    return {
        key_prefix(month, message_id, content_hash if variant else ""): _Row(
            message_id, variant, row_hash
        )
        for message_id, variant, content_hash, row_hash in rows
    }
