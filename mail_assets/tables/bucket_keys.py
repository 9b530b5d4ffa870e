"""Compare the keys of a whole index with its manifest and its chunks or messages, in PostgreSQL.

Both sides may hold millions of keys. They go into temporary tables of the connection; counts and
pages come back. indexes/reconcile.py says what a difference means and repairs it.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import psycopg

from mail_assets.month import ListMonth
from mail_assets.postgres.statements import statement
from mail_assets.tables.indexes import Manifest

#: Keys of one page, and of one delete in a bucket.
KEYS_PER_PAGE = 10_000


class KeyCounts(NamedTuple):
    """Numbers of keys: listed by the index, expected, and written as the manifest says."""

    bucket: int
    expected: int
    manifest: int


class Fault(NamedTuple):
    """Keys of one month that differ in one way; keys of no month are foreign."""

    fault: str
    month: ListMonth | None
    keys: int
    examples: Sequence[str]

    def as_json(self) -> dict[str, Any]:
        """Return the fault for json.dumps; list and month are empty for foreign keys."""
        place = self.month.columns if self.month else {"list": "", "month": ""}
        return {"fault": self.fault, **place, "keys": self.keys, "examples": self.examples}


def compare_keys(
    connection: psycopg.Connection, manifest: Manifest, keys: Iterable[str]
) -> KeyCounts:
    """Compare the keys of an index with its manifest and what it should have.

    The functions below are about the index that this connection compared last.
    """
    connection.execute(statement("bucket_keys", "clear"))
    connection.execute(statement("bucket_keys", f"expect_{manifest.table}"))
    connection.execute(statement("bucket_keys", f"intend_{manifest.table}"))
    connection.execute(statement("bucket_keys", "stage"))
    with connection.cursor() as cursor, cursor.copy(statement("bucket_keys", "copy")) as copy:
        for key in keys:
            copy.write_row((key,))
    parameters = {"index_name": manifest.index_name}
    connection.execute(statement("bucket_keys", "compare"), parameters)
    row = connection.execute(statement("bucket_keys", "figures"), parameters).fetchone()
    return KeyCounts(*(row or (0, 0, 0)))


def intended_months(connection: psycopg.Connection, manifest: Manifest) -> list[ListMonth]:
    """Return the months that have keys in an index."""
    rows = connection.execute(
        statement("bucket_keys", "months"), {"index_name": manifest.index_name}
    ).fetchall()
    return [ListMonth(*row) for row in rows]


def add_outdated(connection: psycopg.Connection, month: ListMonth, keys: Sequence[str]) -> None:
    """Add keys of vectors or documents that a run would write differently now."""
    parameters = {**month.columns, "keys": [*keys]}
    connection.execute(statement("bucket_keys", "outdated"), parameters)


def read_faults(connection: psycopg.Connection) -> list[Fault]:
    """Return the differences, counted by kind, list and month."""
    rows = connection.execute(statement("bucket_keys", "faults")).fetchall()
    return [
        Fault(fault, ListMonth(list_name, month) if list_name else None, keys, examples)
        for fault, list_name, month, keys, examples in rows
    ]


def fault_keys(connection: psycopg.Connection, fault: Fault) -> Iterator[list[str]]:
    """Yield the keys of a fault, a page at a time."""
    place = fault.month.columns if fault.month else {"list": None, "month": None}
    parameters = {**place, "fault": fault.fault, "most": KEYS_PER_PAGE}
    after = ""
    while True:
        rows = connection.execute(
            statement("bucket_keys", "page"), {**parameters, "after": after}
        ).fetchall()
        if not rows:
            return
        yield [key for (key,) in rows]
        after = rows[-1][0]


def mark_for_writing(connection: psycopg.Connection, manifest: Manifest) -> None:
    """Mark keys that are missing, doubled or outdated as not written."""
    connection.execute(statement("bucket_keys", "mark"), {"index_name": manifest.index_name})
