"""What each partition of each asset was made from, and what came out.

Equal inputs mean that there is nothing to do: this is how a re-run costs seconds. The row
is written in the transaction, or after the last write, that makes it true.

[passed_checks] Which checks have passed on what the months hold now.
"""

import contextlib
import datetime as dt
import hashlib
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

import psycopg
from psycopg.types.json import Jsonb

from mail_assets.month import ListMonth
from mail_assets.postgres.statements import statement

Counts = dict[str, int | float]


class Partition(NamedTuple):
    """One month of an asset; all of it, for an asset without partitions, where `month` is None."""

    asset: str
    month: ListMonth | None

    @property
    def columns(self) -> dict[str, str | None]:
        """The columns of its row, as parameters of a statement."""
        place = self.month.columns if self.month else {"list": None, "month": None}
        return {"asset": self.asset, **place}


class RowChanges(NamedTuple):
    """Rows of a partition written and deleted, and a digest over all rows after it."""

    written: int
    deleted: int
    digest: str


class State(NamedTuple):
    """What a partition was made from, a digest of what came out, and its figures."""

    inputs: str
    digest: str
    counts: Counts


@contextlib.contextmanager
def locked(
    connection: psycopg.Connection,
    partition: Partition,
    report_wait: Callable[[], None] | None = None,
) -> Iterator[None]:
    """Keep other runs of the same partition out while the block runs.

    `report_wait` is called where another run has it now.
    """
    row = connection.execute(statement("partitions", "try_lock"), partition.columns).fetchone()
    if not row or not row[0]:
        if report_wait:
            report_wait()
        connection.execute(statement("partitions", "lock"), partition.columns)
    try:
        yield
    finally:
        if not connection.closed:
            connection.execute(statement("partitions", "unlock"), partition.columns)


def locked_index(
    connection: psycopg.Connection, asset: str
) -> contextlib.AbstractContextManager[None]:
    """Keep other runs from creating the index of an asset while the block runs.

    LanceDB may create a table anew over one that another process has just created and filled.
    """
    return locked(connection, Partition(f"index of {asset}", None))


@contextlib.contextmanager
def locked_if_free(connection: psycopg.Connection, partition: Partition) -> Iterator[bool]:
    """Keep other runs out while the block runs, unless one has it now; say which."""
    row = connection.execute(statement("partitions", "try_lock"), partition.columns).fetchone()
    free = bool(row and row[0])
    try:
        yield free
    finally:
        if free and not connection.closed:
            connection.execute(statement("partitions", "unlock"), partition.columns)


def read_state(connection: psycopg.Connection, partition: Partition) -> State | None:
    """Return what is known of a partition, None when it was never made."""
    whole = partition.month is None
    query = statement("partitions", "read_whole") if whole else statement("partitions", "read")
    row = connection.execute(query, partition.columns).fetchone()
    return State(*row) if row else None


def read_states(
    connection: psycopg.Connection, lists: Collection[str]
) -> dict[ListMonth, dict[str, State]]:
    """Return what is known of all months of some lists, by asset."""
    rows = connection.execute(statement("partitions", "of_lists"), {"lists": [*lists]})
    states: dict[ListMonth, dict[str, State]] = defaultdict(dict)
    for list_name, month, asset, *state in rows:
        states[ListMonth(list_name, month)][asset] = State(*state)
    return states


def write_state(
    connection: psycopg.Connection, partition: Partition, state: State, rewritten: bool = False
) -> None:
    """Record what a partition was made from.

    `rewritten` says that something was written though state and content are those of before, such
    as a vector that its bucket had lost: what was checked of it is to be checked again.
    """
    values = {**partition.columns, **state._asdict(), "counts": Jsonb(state.counts)}
    connection.execute(statement("partitions", "write"), {**values, "rewritten": rewritten})


def digest_of(*parts: object) -> str:
    """Return a sha256 over the parts; each ends where it ends, whatever it holds."""
    digest = hashlib.sha256()
    for part in parts:
        data = part if isinstance(part, bytes) else str(part).encode()
        digest.update(len(data).to_bytes(8, "big"))
        digest.update(data)
    return digest.hexdigest()


#: When months were last changed.
Versions = dict[ListMonth, dt.datetime]


class MonthCheck(NamedTuple):
    """A check of an asset; it looks at the months of `months_of`, mostly those of the asset."""

    asset: str
    name: str
    months_of: str


def find_unchecked(connection: psycopg.Connection, check: MonthCheck) -> Versions:
    """Return the months that have changed since the check passed on them.

    A month that was never made is left out.
    """
    rows = connection.execute(statement("passed_checks", "unchecked"), check._asdict()).fetchall()
    return {ListMonth(list_name, month): version for list_name, month, version in rows}


def read_versions(
    connection: psycopg.Connection, check: MonthCheck, months: Sequence[ListMonth] | None = None
) -> Versions:
    """Return when each month that a check looks at last changed, of some months or of all."""
    values = {"months_of": check.months_of, **_columns(months)}
    rows = connection.execute(statement("passed_checks", "versions"), values).fetchall()
    return {ListMonth(list_name, month): version for list_name, month, version in rows}


def record_passed(connection: psycopg.Connection, check: MonthCheck, passed: Versions) -> None:
    """Record that a check has passed on months as they were at a time of `Versions`."""
    values = {**check._asdict(), **_columns([*passed]), "versions": [*passed.values()]}
    connection.execute(statement("passed_checks", "record"), values)


def read_passed(
    connection: psycopg.Connection, lists: Collection[str]
) -> Mapping[ListMonth, set[tuple[str, str]]]:
    """Return (asset, check) of all checks that have passed on what months of lists hold now."""
    rows = connection.execute(statement("passed_checks", "passed"), {"lists": [*lists]})
    passed: dict[ListMonth, set[tuple[str, str]]] = defaultdict(set)
    for list_name, month, asset, name in rows:
        passed[ListMonth(list_name, month)].add((asset, name))
    return passed


def _columns(months: Sequence[ListMonth] | None) -> dict[str, list[str] | None]:
    if months is None:
        return {"lists": None, "months": None}
    return {"lists": [m.list_name for m in months], "months": [m.month for m in months]}
