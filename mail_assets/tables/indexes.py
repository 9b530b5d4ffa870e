"""The indexes of a bucket, what made their vectors, and which of them search asks.

What does not live here: whether an index is fit to be live (steps/index_lifecycle.py), and its keys
(manifest.py).
"""

import datetime as dt
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import psycopg
from psycopg.types.json import Jsonb

from mail_assets.postgres.statements import statement
from mail_assets.tables.manifest import Manifest


class NewIndex(NamedTuple):
    """An index before its first vector is written, and the encoder that makes its vectors."""

    name: str
    encoder: str
    precision: str
    fingerprint: str


class IndexRecord(NamedTuple):
    """An index as recorded: the encoder that makes its vectors, when it was made, if it is live."""

    name: str
    encoder: str
    precision: str
    fingerprint: str
    made_at: str
    live: bool


def record_index(connection: psycopg.Connection, bucket: str, index: NewIndex) -> None:
    """Record an index before its first vector is written; nothing where it is known."""
    connection.execute(statement("indexes", "record"), {"bucket": bucket, **index._asdict()})


def make_first_live(connection: psycopg.Connection, bucket: str, name: str) -> None:
    """Make an index live where the bucket has no live one yet."""
    connection.execute(statement("indexes", "first_live"), {"bucket": bucket, "name": name})


def live_index(connection: psycopg.Connection, bucket: str) -> IndexRecord | None:
    """Return the index that search asks, None where nothing was filled yet."""
    return ask_live_index(connection, bucket)()


def ask_live_index(connection: psycopg.Connection, bucket: str) -> Callable[[], IndexRecord | None]:
    """Send the look-up of the live index; return what reads the answer, as live_index returns it.

    In a pipeline it travels with other statements.
    """
    cursor = connection.execute(statement("indexes", "live"), {"bucket": bucket})

    def answer() -> IndexRecord | None:
        row = cursor.fetchone()
        return IndexRecord(*row) if row else None

    return answer


def list_indexes(connection: psycopg.Connection, bucket: str) -> list[IndexRecord]:
    """Return the indexes of a bucket, oldest first."""
    rows = connection.execute(statement("indexes", "all"), {"bucket": bucket}).fetchall()
    return [IndexRecord(*row) for row in rows]


def list_word_indexes(connection: psycopg.Connection) -> list[tuple[str, str]]:
    """Return URL and name of each index of words that was ever filled, wherever it is."""
    return connection.execute(statement("indexes", "of_words")).fetchall()


def count_written(connection: psycopg.Connection, manifest: Manifest) -> int:
    """Return how many vectors or documents an index has, as its manifest counts them."""
    parameters = {"index_name": manifest.index_name}
    row = connection.execute(statement(manifest.table, "count"), parameters).fetchone()
    return int(row[0]) if row else 0


def is_complete(connection: psycopg.Connection, manifest: Manifest) -> bool:
    """Return whether an index has every chunk or every message, as was recorded of it."""
    parameters = {"index_name": manifest.index_name}
    row = connection.execute(statement(manifest.table, "complete"), parameters).fetchone()
    return bool(row and row[0])


class PromotionRecord(NamedTuple):
    """The live index: its name, since when it is live, what was known of it when it became it."""

    name: str
    since: dt.datetime
    report: Mapping[str, Any]


def read_promotion(connection: psycopg.Connection, bucket: str) -> PromotionRecord | None:
    """Return how the live index became it; an empty report where it was the first to be filled."""
    row = connection.execute(statement("indexes", "promotion"), {"bucket": bucket}).fetchone()
    return PromotionRecord(*row) if row else None


def switch_live(
    connection: psycopg.Connection,
    bucket: str,
    name: str,
    forced: bool,
    report: Mapping[str, Any],
) -> str | None:
    """Make an index live, record it with what was known of it; return the name it replaced."""
    with connection.transaction():
        connection.execute(statement("indexes", "lock"), {"bucket": bucket})
        before = live_index(connection, bucket)
        replaced = before.name if before else None
        parameters = {"bucket": bucket, "name": name, "replaced": replaced, "forced": forced}
        connection.execute(statement("indexes", "switch"), parameters)
        connection.execute(
            statement("indexes", "promoted"), {**parameters, "report": Jsonb(dict(report))}
        )
    return replaced


def remove_index(
    connection: psycopg.Connection, bucket: str, name: str, manifest: Manifest
) -> None:
    """Forget an index and its keys.

    Raises:
        psycopg.errors.ForeignKeyViolation: it is live.
    """
    with connection.transaction():
        connection.execute(statement("indexes", "lock"), {"bucket": bucket})
        connection.execute(statement("indexes", "remove"), {"bucket": bucket, "name": name})
        parameters = {"index_name": manifest.index_name}
        connection.execute(statement(manifest.table, "remove"), parameters)
        made = {"asset": manifest.table, **parameters}
        connection.execute(statement("partitions", "forget_index"), made)
