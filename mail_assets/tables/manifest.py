"""The manifest of an index: the keys that each partition means to have in it.

Buckets cannot list or delete by filter, so what a partition wrote must be known here. A row
is written before its vector and deleted after it: whatever is in the bucket is in the
manifest, and a killed run's work is finished by the next.
"""

from collections.abc import Collection, Mapping
from typing import NamedTuple

import psycopg

from mail_assets.month import ListMonth
from mail_assets.postgres.statements import statement


class Entry(NamedTuple):
    """A vector as intended; `written` says that the bucket has it."""

    digest: bytes
    written: bool


class IndexMonth(NamedTuple):
    """One month's part of an index. `index_name` names the bucket too."""

    index_name: str
    month: ListMonth

    @property
    def columns(self) -> dict[str, str]:
        """The columns of its rows, as parameters of a statement."""
        return {"index_name": self.index_name, **self.month.columns}


def read_manifest(connection: psycopg.Connection, part: IndexMonth) -> dict[str, Entry]:
    """Return the keys of a partition."""
    rows = connection.execute(statement("vectors", "read"), part.columns).fetchall()
    return {key: Entry(digest, written) for key, digest, written in rows}


def mark_intended(
    connection: psycopg.Connection, part: IndexMonth, digests: Mapping[str, bytes]
) -> None:
    """Record keys that are about to be written."""
    parameters = {
        **part.columns,
        "keys": [*digests],
        "digests": [*digests.values()],
    }
    connection.execute(statement("vectors", "mark_intended"), parameters)


def mark_written(connection: psycopg.Connection, part: IndexMonth) -> None:
    """Record that the bucket has every key of a partition."""
    connection.execute(statement("vectors", "mark_written"), part.columns)


def drop_keys(connection: psycopg.Connection, index_name: str, keys: Collection[str]) -> None:
    """Take keys out of the manifest that the bucket no longer has."""
    parameters = {"index_name": index_name, "keys": [*keys]}
    connection.execute(statement("vectors", "drop_keys"), parameters)
