"""The questions that checks ask of Postgres, one function each."""

from typing import NamedTuple

import psycopg

from mail_assets.mail.message.forgotten import Forgotten
from mail_assets.month import ListMonth
from mail_assets.postgres.statements import statement


class MessageCounts(NamedTuple):
    """What became of the messages of an archive, counted from the tables."""

    found: int
    bytes: int
    archived: bool
    stored: int
    duplicates: int
    quarantined: int
    removed: int
    suspicious: int

    @property
    def balanced(self) -> bool:
        """Say whether every message found is stored, a duplicate, quarantined or removed."""
        return self.found == self.stored + self.duplicates + self.quarantined + self.removed

    @property
    def empty(self) -> bool:
        """Say whether an archive with bytes in it gave no message at all."""
        return self.archived and self.bytes > 0 and self.found == 0


class Tokens(NamedTuple):
    """Token statistics of a month's chunks."""

    least: int
    mean: float
    most: int
    chunks: int


def read_message_counts(connection: psycopg.Connection, month: ListMonth) -> MessageCounts:
    """Count the messages of a month; all zero where nothing was fetched."""
    row = _one(connection, "message_counts", month)
    return MessageCounts(*row) if row else MessageCounts(0, 0, False, 0, 0, 0, 0, 0)


def count_undated(connection: psycopg.Connection, month: ListMonth) -> tuple[int, int]:
    """Return the messages whose Date had to be replaced, and all messages."""
    undated, total = _one(connection, "undated", month) or (0, 0)
    return undated, total


def count_unthreaded(connection: psycopg.Connection) -> tuple[int, int, int]:
    """Return replies without a reference, messages unknown to threads, and all messages."""
    row = connection.execute(statement("checks", "unthreaded")).fetchone() or (0, 0, 0)
    return row[0], row[1], row[2]


def count_wrong_spans(connection: psycopg.Connection, month: ListMonth) -> int:
    """Return the chunks whose text is not exactly what their spans say."""
    row = _one(connection, "wrong_spans", month)
    return int(row[0]) if row else 0


def read_tokens(connection: psycopg.Connection, month: ListMonth) -> Tokens:
    """Return the token statistics of a month."""
    return Tokens(*(_one(connection, "tokens", month) or (0, 0.0, 0, 0)))


def chunk_keys(connection: psycopg.Connection, month: ListMonth) -> set[str]:
    """Return the keys of a month's chunks."""
    rows = connection.execute(statement("checks", "chunk_keys"), month.columns)
    return {key for (key,) in rows.fetchall()}


def count_rows_left(connection: psycopg.Connection, month: ListMonth, forgotten: Forgotten) -> int:
    """Return the rows of a month that hold what must stay out."""
    parameters = {**month.columns, **_digests(forgotten)}
    row = connection.execute(statement("checks", "rows_left"), parameters).fetchone()
    return int(row[0]) if row else 0


def count_threads_left(connection: psycopg.Connection, forgotten: Forgotten) -> int:
    """Return the rows of threads that hold an id that must stay out."""
    row = connection.execute(statement("checks", "threads_left"), _digests(forgotten)).fetchone()
    return int(row[0]) if row else 0


def read_key_prefixes(connection: psycopg.Connection, month: ListMonth) -> list[str]:
    """Return what the keys of a month's removed messages begin with."""
    parameters = month.columns
    rows = connection.execute(statement("checks", "key_prefixes"), parameters).fetchall()
    return [prefix for (prefix,) in rows]


def _digests(forgotten: Forgotten) -> dict[str, list[bytes]]:
    return {name: [*digests] for name, digests in forgotten._asdict().items()}


def _one(connection: psycopg.Connection, name: str, month: ListMonth) -> tuple | None:  # type: ignore[type-arg]
    return connection.execute(statement("checks", name), month.columns).fetchone()
