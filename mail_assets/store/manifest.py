"""The manifest of an index: the keys that each partition means to have in it.

Buckets cannot list or delete by filter, so what a partition wrote must be known here. A row
is written before its vector and deleted after it: whatever is in the bucket is in the
manifest, and a killed run's work is finished by the next.
"""

from collections.abc import Collection, Mapping
from typing import NamedTuple

import psycopg

from mail_assets.store.statements import statement


class Entry(NamedTuple):
    """A vector as intended; `written` says that the bucket has it."""

    digest: bytes
    written: bool


class Shelf(NamedTuple):
    """One partition's part of an index. `index_name` names the bucket too."""

    index_name: str
    list: str
    month: str


def read_manifest(connection: psycopg.Connection, shelf: Shelf) -> dict[str, Entry]:
    """Return the keys of a partition."""
    rows = connection.execute(statement("vectors", "read"), shelf._asdict()).fetchall()
    return {key: Entry(digest, written) for key, digest, written in rows}


def intend(connection: psycopg.Connection, shelf: Shelf, digests: Mapping[str, bytes]) -> None:
    """Record keys that are about to be written."""
    parameters = {
        **shelf._asdict(),
        "keys": [*digests],
        "digests": [*digests.values()],
    }
    connection.execute(statement("vectors", "intend"), parameters)


def mark_written(connection: psycopg.Connection, shelf: Shelf) -> None:
    """Record that the bucket has every key of a partition."""
    connection.execute(statement("vectors", "written"), shelf._asdict())


def forget(connection: psycopg.Connection, shelf: Shelf, keys: Collection[str]) -> None:
    """Drop keys that the bucket no longer has."""
    parameters = {"index_name": shelf.index_name, "keys": [*keys]}
    connection.execute(statement("vectors", "forget"), parameters)
