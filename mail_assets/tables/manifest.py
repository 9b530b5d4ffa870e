"""The manifests of the indexes: the keys that each partition means to have in one.

Indexes cannot all list or delete by filter, so what a partition wrote must be known here. A row
is written before its vector or document and deleted after it: whatever is in the index is in the
manifest, and a killed run's work is finished by the next.
"""

from collections.abc import Collection, Mapping
from typing import NamedTuple

import psycopg

from mail_assets.month import ListMonth
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
