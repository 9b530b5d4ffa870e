"""The keys of a whole bucket beside the manifest and the chunks, compared inside Postgres.

Both sides may hold millions: the keys go into a temporary table as they are listed, and what
comes back is counts and pages. The tables belong to the connection.
What does not live here: what a difference means and what is done about it (steps/reconcile.py).
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import psycopg

from mail_assets.store.statements import statement

#: Keys of one page, and of one delete in a bucket.
PAGE = 10_000


class Figures(NamedTuple):
    """Keys that the bucket listed, chunks, and keys that the manifest says are written."""

    bucket: int
    chunks: int
    manifest: int


class Fault(NamedTuple):
    """Keys of one month that differ in one way; a foreign key belongs to no list and month."""

    fault: str
    list: str
    month: str
    keys: int
    examples: Sequence[str]


def compare(connection: psycopg.Connection, index_name: str, keys: Iterable[str]) -> Figures:
    """Compare the keys of a bucket with the manifest of an index and all chunks."""
    connection.execute(statement("reconcile", "clear"))
    connection.execute(statement("reconcile", "stage"))
    with connection.cursor() as cursor, cursor.copy(statement("reconcile", "copy")) as copy:
        for key in keys:
            copy.write_row((key,))
    parameters = {"index_name": index_name}
    connection.execute(statement("reconcile", "compare"), parameters)
    row = connection.execute(statement("reconcile", "figures"), parameters).fetchone()
    return Figures(*(row or (0, 0, 0)))


def intended_months(connection: psycopg.Connection, index_name: str) -> list[tuple[str, str]]:
    """Return the list and month of every partition that has keys in an index."""
    return connection.execute(
        statement("reconcile", "months"), {"index_name": index_name}
    ).fetchall()


def add_outdated(
    connection: psycopg.Connection, list: str, month: str, keys: Sequence[str]
) -> None:
    """Add keys whose vectors no longer are what their chunks would make."""
    parameters = {"list": list, "month": month, "keys": [*keys]}
    connection.execute(statement("reconcile", "outdated"), parameters)


def read_faults(connection: psycopg.Connection) -> list[Fault]:
    """Return the differences, counted by kind, list and month."""
    rows = connection.execute(statement("reconcile", "faults")).fetchall()
    return [Fault(*row) for row in rows]


def fault_keys(connection: psycopg.Connection, fault: Fault) -> Iterator[list[str]]:
    """Yield the keys of a fault, a page at a time."""
    parameters = {"fault": fault.fault, "list": fault.list, "month": fault.month, "most": PAGE}
    after = ""
    while True:
        rows = connection.execute(
            statement("reconcile", "page"), {**parameters, "after": after}
        ).fetchall()
        if not rows:
            return
        yield [key for (key,) in rows]
        after = rows[-1][0]


def mark_for_writing(connection: psycopg.Connection, index_name: str) -> None:
    """Mark what is missing, doubled or outdated as not written."""
    connection.execute(statement("reconcile", "mark"), {"index_name": index_name})
