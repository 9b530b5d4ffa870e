"""The records of indexes: their manifests, the indexes of each bucket, and the live ones.

Not every index can list or delete by filter, so the manifest records the keys that a partition
wrote. A row is written before its vector or document, and deleted after it. So every key in an
index is in its manifest, and the next run finishes the work of a killed one. indexes/live.py
decides which index may be live.
"""

import datetime as dt
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import psycopg
from psycopg import sql
from psycopg.types.json import Jsonb

from mail_assets.month import ListMonth
from mail_assets.postgres.statements import Pending, read_as, read_value, statement


class Entry(NamedTuple):
    """A key of a manifest; `written` says that the index has it."""

    digest: bytes
    written: bool


class Manifest(NamedTuple):
    """The manifest of an index: its table, `vectors` or `words`, and the name of the index there.

    `index_name` includes the URL of the bucket: two buckets may have indexes of the same name.
    """

    table: str
    index_name: str

    def statement(self, name: str) -> sql.Composed:
        """Return a statement of sql/indexes.sql for this manifest."""
        return sql.SQL(statement("indexes", name)).format(
            manifest=sql.Identifier(self.table), asset=sql.Literal(self.table)
        )


class IndexMonth(NamedTuple):
    """One month of an index."""

    manifest: Manifest
    month: ListMonth

    @property
    def columns(self) -> dict[str, str]:
        """The key columns of its rows, as parameters of a statement."""
        return {"index_name": self.manifest.index_name, **self.month.columns}


def read_manifest(connection: psycopg.Connection, part: IndexMonth) -> dict[str, Entry]:
    """Return the keys of a partition."""
    rows = connection.execute(part.manifest.statement("read_keys"), part.columns).fetchall()
    return {key: Entry(digest, written) for key, digest, written in rows}


def count_by_month(
    connection: psycopg.Connection, manifest: Manifest, lists: Collection[str]
) -> dict[ListMonth, tuple[int, int]]:
    """Return the number of keys and of written keys of each month of some lists."""
    values = {"index_name": manifest.index_name, "lists": [*lists]}
    rows = connection.execute(manifest.statement("count_by_month"), values).fetchall()
    return {ListMonth(name, month): (keys, written) for name, month, keys, written in rows}


def mark_intended(
    connection: psycopg.Connection, part: IndexMonth, digests: Mapping[str, bytes]
) -> None:
    """Record keys that are about to be written."""
    parameters = {**part.columns, "keys": [*digests], "digests": [*digests.values()]}
    connection.execute(part.manifest.statement("mark_intended"), parameters)


def mark_written(connection: psycopg.Connection, part: IndexMonth) -> None:
    """Record that the index has every key of a partition."""
    connection.execute(part.manifest.statement("mark_written"), part.columns)


def mark_lost(connection: psycopg.Connection, manifest: Manifest) -> None:
    """Record that an index has none of its keys, so that the next run of each month writes them.

    Call it before the index is created: an earlier index of the same name may have been lost.
    """
    connection.execute(manifest.statement("mark_lost"), {"index_name": manifest.index_name})


def drop_keys(connection: psycopg.Connection, manifest: Manifest, keys: Collection[str]) -> None:
    """Delete from a manifest keys that the index no longer has."""
    parameters = {"index_name": manifest.index_name, "keys": [*keys]}
    connection.execute(manifest.statement("drop_keys"), parameters)


class NewIndex(NamedTuple):
    """An index to record, and the encoder of its vectors."""

    name: str
    encoder: str
    precision: str
    fingerprint: str


class IndexRecord(NamedTuple):
    """A recorded index: the encoder of its vectors, its creation, and whether it is live."""

    name: str
    encoder: str
    precision: str
    fingerprint: str
    made_at: str
    live: bool


def record_index(connection: psycopg.Connection, bucket: str, index: NewIndex) -> None:
    """Record an index before its first vector is written; do nothing if it is recorded."""
    connection.execute(statement("indexes", "record"), {"bucket": bucket, **index._asdict()})


def make_first_live(connection: psycopg.Connection, bucket: str, name: str) -> None:
    """Make an index live if the bucket has no live one."""
    connection.execute(statement("indexes", "first_live"), {"bucket": bucket, "name": name})


def live_index(connection: psycopg.Connection, bucket: str) -> IndexRecord | None:
    """Return the index that search uses, None if no index was filled yet."""
    return ask_live_index(connection, bucket).read()


def ask_live_index(connection: psycopg.Connection, bucket: str) -> Pending[IndexRecord | None]:
    """Send the query for the live index, which `live_index` returns."""
    cursor = connection.execute(statement("indexes", "live"), {"bucket": bucket})
    return Pending(cursor.fetchone).then(lambda row: IndexRecord(*row) if row else None)


def list_indexes(connection: psycopg.Connection, bucket: str) -> list[IndexRecord]:
    """Return the indexes of a bucket, oldest first."""
    return read_as(connection, IndexRecord, statement("indexes", "all"), {"bucket": bucket})


def list_word_indexes(connection: psycopg.Connection) -> list[tuple[str, str]]:
    """Return the URL and the name of each recorded word index."""
    return connection.execute(statement("indexes", "of_words")).fetchall()


def count_written(connection: psycopg.Connection, manifest: Manifest) -> int:
    """Return the number of vectors or documents of an index, by its manifest."""
    parameters = {"index_name": manifest.index_name}
    return int(read_value(connection, manifest.statement("count_keys"), parameters) or 0)


def is_complete(connection: psycopg.Connection, manifest: Manifest) -> bool:
    """Return whether an index has every chunk or every message, by its manifest."""
    query = manifest.statement(f"complete_{manifest.table}")
    return bool(read_value(connection, query, {"index_name": manifest.index_name}))


class PromotionRecord(NamedTuple):
    """The live index: its name, the time of its promotion, and the figures measured then."""

    name: str
    since: dt.datetime
    report: Mapping[str, Any]


def read_promotion(connection: psycopg.Connection, bucket: str) -> PromotionRecord | None:
    """Return the promotion of the live index; an empty report if it was the first to be filled."""
    row = connection.execute(statement("indexes", "promotion"), {"bucket": bucket}).fetchone()
    return PromotionRecord(*row) if row else None


def switch_live(
    connection: psycopg.Connection,
    bucket: str,
    name: str,
    forced: bool,
    report: Mapping[str, Any],
) -> str | None:
    """Make an index live and record the promotion; return the name of the replaced index."""
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
    """Delete the records of an index and of its keys.

    Raises:
        psycopg.errors.ForeignKeyViolation: the index is live.
    """
    with connection.transaction():
        connection.execute(statement("indexes", "lock"), {"bucket": bucket})
        connection.execute(statement("indexes", "remove"), {"bucket": bucket, "name": name})
        parameters = {"index_name": manifest.index_name}
        connection.execute(manifest.statement("remove_keys"), parameters)
        made = {"asset": manifest.table, **parameters}
        connection.execute(statement("partitions", "forget_index"), made)
