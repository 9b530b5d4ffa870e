"""The rows of removed_messages: what each month leaves out, and deleting the rows of such mail.

What does not live here: files and indexes (steps/forget_messages.py).
"""

from collections.abc import Collection
from typing import Any, LiteralString, NamedTuple

import psycopg

from mail_assets.month import ListMonth
from mail_assets.postgres.statements import statement
from mail_assets.tables.chunks import chunk_key
from mail_assets.tables.removals import LESS


class RemovedMessage(NamedTuple):
    """A message that an archive holds and its month leaves out, for a removal.

    `message_digest` is None where a stored message has the id too, which stays visible.
    """

    ordinal: int
    removal: bytes
    message_digest: bytes | None
    key_prefix: str


class Copy(NamedTuple):
    """A row of messages that is to be deleted."""

    month: ListMonth
    message_id: str
    variant: int
    content_hash: str
    ordinal: int
    from_name: str
    from_email: str

    @property
    def key_prefix(self) -> str:
        """What the keys of its chunks begin with."""
        variant_hash = self.content_hash if self.variant else ""
        return key_prefix(self.month, self.message_id, variant_hash)


def key_prefix(month: ListMonth, message_id: str, variant_hash: str) -> str:
    """Return what the keys of a message's chunks begin with, up to the "#"."""
    return chunk_key(month, message_id, variant_hash, 0).partition("#")[0]


def find_copies(
    connection: psycopg.Connection, message_ids: Collection[str], senders: Collection[str]
) -> list[Copy]:
    """Return the rows of some messages, and of mail that some senders may have written.

    Senders are in lower case. A name that holds an address is found too, and one that holds it as
    part of a longer address: the caller decides.
    """
    rows = connection.execute(
        statement("removed_messages", "find_copies"),
        {"message_ids": [*message_ids], "senders": [*senders]},
    ).fetchall()
    return [Copy(ListMonth(list_name, month), *rest) for list_name, month, *rest in rows]


def copy_columns(copies: Collection[Copy]) -> dict[str, list[Any]]:
    """Return the keys of rows, column by column, as parameters of a statement."""
    return {
        "lists": [copy.month.list_name for copy in copies],
        "months": [copy.month.month for copy in copies],
        "message_ids": [copy.message_id for copy in copies],
        "variants": [copy.variant for copy in copies],
    }


def delete_copies(connection: psycopg.Connection, copies: Collection[Copy]) -> int:
    """Delete rows of messages, and their chunks; return the number of chunks."""
    keys = copy_columns(copies)
    connection.execute(statement("removed_messages", "delete_messages"), keys)
    connection.execute(statement("removed_messages", "clear_entries"), keys)
    return connection.execute(
        statement("removed_messages", "delete_chunks"),
        {
            "key_prefixes": [copy.key_prefix for copy in copies],
            "message_ids": [copy.message_id for copy in copies],
        },
    ).rowcount


def record_removed(
    connection: psycopg.Connection, month: ListMonth, removed: Collection[RemovedMessage]
) -> None:
    """Add messages that a month leaves out and its archive holds, whatever another had lost."""
    if not removed:
        return
    prefixes = {**month.columns, "key_prefixes": [row.key_prefix for row in removed]}
    connection.execute(statement("removed_messages", "hold_again"), prefixes)
    with connection.cursor() as cursor:
        cursor.executemany(
            statement("removed_messages", "record"),
            [{**month.columns, **row._asdict()} for row in removed],
        )


def replace_removed(
    connection: psycopg.Connection, month: ListMonth, removed: Collection[RemovedMessage]
) -> None:
    """Make the rows of a month that is loaded again those of what it leaves out now.

    The ids of a forgotten sender's mail that the archive no longer has stay hidden.
    """
    prefixes = [row.key_prefix for row in removed]
    parameters = {**month.columns, "key_prefixes": prefixes}
    connection.execute(statement("removed_messages", "keep_gone"), parameters)
    connection.execute(statement("removed_messages", "clear"), month.columns)
    record_removed(connection, month, removed)


def update_counts(connection: psycopg.Connection, month: ListMonth) -> None:
    """Set the figures of a month to what it holds now, and mark it as changed."""
    parameters = {**month.columns, "less": LESS}
    connection.execute(statement("removed_messages", "update_counts"), parameters)


def refresh_statistics(connection: psycopg.Connection) -> None:
    """Let the planner's statistics, which hold values of columns, forget them too."""
    connection.execute(statement("removed_messages", "analyze"))


def removed_months(connection: psycopg.Connection) -> list[ListMonth]:
    """Return the months that leave something out."""
    rows = connection.execute(statement("removed_messages", "months")).fetchall()
    return [ListMonth(*row) for row in rows]


def unwanted_keys(
    connection: psycopg.Connection, month: ListMonth | None = None
) -> dict[str, list[str]]:
    """Return the keys of removed messages in the manifest of vectors, by its name for an index.

    Those of a month, or of all.
    """
    return _unwanted(connection, statement("removed_messages", "unwanted_keys"), month)


def unwanted_documents(
    connection: psycopg.Connection, month: ListMonth | None = None
) -> dict[str, list[str]]:
    """Return the keys of removed messages in the manifest of words, as `unwanted_keys` does."""
    return _unwanted(connection, statement("removed_messages", "unwanted_documents"), month)


def _unwanted(
    connection: psycopg.Connection, query: LiteralString, month: ListMonth | None
) -> dict[str, list[str]]:
    parameters = month.columns if month else {"list": None, "month": None}
    return dict(connection.execute(query, parameters).fetchall())


def stale_keys(connection: psycopg.Connection, month: ListMonth) -> dict[str, list[str]]:
    """Return the keys of a month in the manifest of vectors that no chunk has, by its indexes."""
    return _unwanted(connection, statement("removed_messages", "stale_keys"), month)


def stale_months(connection: psycopg.Connection) -> list[ListMonth]:
    """Return the months with keys in the manifest of vectors that no chunk has."""
    rows = connection.execute(statement("removed_messages", "stale_months")).fetchall()
    return [ListMonth(*row) for row in rows]


def stale_documents(connection: psycopg.Connection, month: ListMonth) -> dict[str, list[str]]:
    """Return the keys of a month in the manifest of words of mail that is gone, not forgotten."""
    return _unwanted(connection, statement("removed_messages", "stale_documents"), month)


def stale_word_months(connection: psycopg.Connection) -> list[ListMonth]:
    """Return the months of which a word index may have mail that is gone."""
    rows = connection.execute(statement("removed_messages", "stale_word_months")).fetchall()
    return [ListMonth(*row) for row in rows]


def read_text_hashes(connection: psycopg.Connection, month: ListMonth) -> set[bytes]:
    """Return the hashes of all texts of a month."""
    parameters = month.columns
    rows = connection.execute(statement("removed_messages", "text_hashes"), parameters).fetchall()
    return {text_hash for (text_hash,) in rows}
