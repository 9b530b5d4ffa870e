"""The indexes of a bucket, what made their vectors, and which of them search asks.

What does not live here: whether an index is fit to be live (steps/index_lifecycle.py), and its keys
(manifest.py).

[manifest] The manifests of the indexes: the keys that each partition means to have in one.

Indexes cannot all list or delete by filter, so what a partition wrote must be known here. A row
is written before its vector or document and deleted after it: whatever is in the index is in the
manifest, and a killed run's work is finished by the next.
"""

import datetime as dt
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import psycopg
from psycopg.types.json import Jsonb

from mail_assets.month import ListMonth
from mail_assets.postgres.pending import Pending
from mail_assets.postgres.statements import statement


class Entry(NamedTuple):
    """A key as intended; `written` says that the index has it."""

    digest: bytes
    written: bool


class Manifest(NamedTuple):
    """The manifest of an index: its table, `vectors` or `words`, and what that calls the index.

    `index_name` names the bucket too: the name of an index alone may stand in two.
    """

    table: str
    index_name: str


class IndexMonth(NamedTuple):
    """One month's part of an index."""

    manifest: Manifest
    month: ListMonth

    @property
    def columns(self) -> dict[str, str]:
        """The columns of its rows, as parameters of a statement."""
        return {"index_name": self.manifest.index_name, **self.month.columns}


def read_manifest(connection: psycopg.Connection, part: IndexMonth) -> dict[str, Entry]:
    """Return the keys of a partition."""
    query = statement(part.manifest.table, "read")
    rows = connection.execute(query, part.columns).fetchall()
    return {key: Entry(digest, written) for key, digest, written in rows}


def count_by_month(
    connection: psycopg.Connection, manifest: Manifest, lists: Collection[str]
) -> dict[ListMonth, tuple[int, int]]:
    """Return how many keys each month of some lists has, and how many of them are written."""
    values = {"index_name": manifest.index_name, "lists": [*lists]}
    rows = connection.execute(statement(manifest.table, "count_by_month"), values).fetchall()
    return {ListMonth(name, month): (keys, written) for name, month, keys, written in rows}


def mark_intended(
    connection: psycopg.Connection, part: IndexMonth, digests: Mapping[str, bytes]
) -> None:
    """Record keys that are about to be written."""
    parameters = {
        **part.columns,
        "keys": [*digests],
        "digests": [*digests.values()],
    }
    connection.execute(statement(part.manifest.table, "mark_intended"), parameters)


def mark_written(connection: psycopg.Connection, part: IndexMonth) -> None:
    """Record that the index has every key of a partition."""
    connection.execute(statement(part.manifest.table, "mark_written"), part.columns)


def mark_lost(connection: psycopg.Connection, manifest: Manifest) -> None:
    """Record that an index has none of its keys: the next run of each month writes them.

    Call it before the index is created: one of its name may have been deleted, or its folder lost.
    """
    connection.execute(statement(manifest.table, "mark_lost"), {"index_name": manifest.index_name})


def drop_keys(connection: psycopg.Connection, manifest: Manifest, keys: Collection[str]) -> None:
    """Take keys out of a manifest that the index no longer has."""
    parameters = {"index_name": manifest.index_name, "keys": [*keys]}
    connection.execute(statement(manifest.table, "drop_keys"), parameters)


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
    return ask_live_index(connection, bucket).read()


def ask_live_index(connection: psycopg.Connection, bucket: str) -> Pending[IndexRecord | None]:
    """Send the look-up of the live index, which `live_index` returns."""
    cursor = connection.execute(statement("indexes", "live"), {"bucket": bucket})
    return Pending(cursor.fetchone).then(lambda row: IndexRecord(*row) if row else None)


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
