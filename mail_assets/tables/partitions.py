"""The state of each partition of each asset, the locks of partitions, and results of checks.

If the inputs are equal to the recorded ones, a run has nothing to do. A state is written in the
transaction that makes it true, or after the last write.
"""

import contextlib
import datetime as dt
import hashlib
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

import psycopg
from psycopg.types.json import Jsonb

from mail_assets.month import ListMonth, columns_of
from mail_assets.postgres.statements import read_value, statement

Counts = dict[str, int | float]

#: Asset -> assets that are made from its rows of the same month. When damaged rows are repaired,
#: these are made again, and so are the links of commits, which are made from all three.
MADE_FROM_ROWS: Mapping[str, Sequence[str]] = {
    "messages": ("words", "patches", "chunks", "vectors"),
    "patches": (),
    "commits": (),
}


class Partition(NamedTuple):
    """One month of an asset; `month` is None for an asset without partitions."""

    asset: str
    month: ListMonth | None

    @property
    def columns(self) -> dict[str, str | None]:
        """The key columns of its row, as parameters of a statement."""
        place = self.month.columns if self.month else {"list": None, "month": None}
        return {"asset": self.asset, **place}


class RowChanges(NamedTuple):
    """Numbers of rows written and deleted in a partition, and a digest over all its rows after."""

    written: int
    deleted: int
    digest: str


class State(NamedTuple):
    """The inputs of a partition, the digest of its content, and its figures."""

    inputs: str
    digest: str
    counts: Counts


@contextlib.contextmanager
def locked(
    connection: psycopg.Connection,
    partition: Partition,
    report_wait: Callable[[], None] | None = None,
) -> Iterator[None]:
    """Lock a partition while the block runs; call `report_wait` if another run holds the lock."""
    if not read_value(connection, statement("partitions", "try_lock"), partition.columns):
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

    Without the lock, LanceDB may replace a table that another process has just created and filled.
    """
    return locked(connection, Partition(f"index of {asset}", None))


@contextlib.contextmanager
def locked_if_free(connection: psycopg.Connection, partition: Partition) -> Iterator[bool]:
    """Lock a partition while the block runs; yield False if another run holds the lock."""
    free = bool(read_value(connection, statement("partitions", "try_lock"), partition.columns))
    try:
        yield free
    finally:
        if free and not connection.closed:
            connection.execute(statement("partitions", "unlock"), partition.columns)


def read_state(connection: psycopg.Connection, partition: Partition) -> State | None:
    """Return the state of a partition, None if it was never made."""
    whole = partition.month is None
    query = statement("partitions", "read_whole") if whole else statement("partitions", "read")
    row = connection.execute(query, partition.columns).fetchone()
    return State(*row) if row else None


def read_states(
    connection: psycopg.Connection, lists: Collection[str]
) -> dict[ListMonth, dict[str, State]]:
    """Return the states of all months of some lists, by asset."""
    rows = connection.execute(statement("partitions", "of_lists"), {"lists": [*lists]})
    states: dict[ListMonth, dict[str, State]] = defaultdict(dict)
    for list_name, month, asset, *state in rows:
        states[ListMonth(list_name, month)][asset] = State(*state)
    return states


def write_state(
    connection: psycopg.Connection, partition: Partition, state: State, rewritten: bool = False
) -> None:
    """Write the state of a partition.

    `rewritten`: something was written although the state is the same, such as a vector that the
    index had lost. Then the checks of the partition run again, and assets made from its rows are
    made again, because they may come from damaged rows.
    """
    values = {**partition.columns, **state._asdict(), "counts": Jsonb(state.counts)}
    connection.execute(statement("partitions", "write"), {**values, "rewritten": rewritten})
    if rewritten and partition.asset in MADE_FROM_ROWS:
        made = {**partition.columns, "made": [*MADE_FROM_ROWS[partition.asset]]}
        connection.execute(statement("partitions", "outdate"), made)


def look_up_by_index(connection: psycopg.Connection) -> None:
    """Make the planner use indexes for the rest of a transaction, even without statistics."""
    connection.execute(statement("partitions", "by_index"))


def digest_of(*parts: object) -> str:
    """Return a SHA-256 over the parts and their lengths."""
    digest = hashlib.sha256()
    for part in parts:
        data = part if isinstance(part, bytes) else str(part).encode()
        digest.update(len(data).to_bytes(8, "big"))
        digest.update(data)
    return digest.hexdigest()


#: The time of the last change of each month.
Versions = dict[ListMonth, dt.datetime]


class MonthCheck(NamedTuple):
    """A check of an asset; `months_of` is the asset whose months it reads, mostly the same."""

    asset: str
    name: str
    months_of: str


def find_unchecked(connection: psycopg.Connection, check: MonthCheck) -> Versions:
    """Return the months that have changed since the check passed on them, or never passed it."""
    rows = connection.execute(statement("partitions", "unchecked"), check._asdict()).fetchall()
    return {ListMonth(list_name, month): version for list_name, month, version in rows}


def read_versions(
    connection: psycopg.Connection, check: MonthCheck, months: Sequence[ListMonth] | None = None
) -> Versions:
    """Return the time of the last change of some or all months that a check reads."""
    some = {"lists": None, "months": None} if months is None else columns_of(months)
    values = {"months_of": check.months_of, **some}
    rows = connection.execute(statement("partitions", "versions"), values)
    return {ListMonth(list_name, month): version for list_name, month, version in rows}


def record_checked(
    connection: psycopg.Connection,
    check: MonthCheck,
    versions: Versions,
    passed: Mapping[ListMonth, bool],
) -> None:
    """Record the months on which a check has passed or failed, with the versions it has read."""
    values = {
        **check._asdict(),
        **columns_of(passed),
        "versions": [versions[month] for month in passed],
        "passed": [*passed.values()],
    }
    connection.execute(statement("partitions", "record_checked"), values)


#: (asset, name of a check) -> True if the check has passed on a month.
Checked = Mapping[tuple[str, str], bool]


def read_checked(
    connection: psycopg.Connection, lists: Collection[str]
) -> Mapping[ListMonth, Checked]:
    """Return the results of checks on the current versions of the months of some lists."""
    rows = connection.execute(statement("partitions", "checked"), {"lists": [*lists]})
    checked: dict[ListMonth, dict[tuple[str, str], bool]] = defaultdict(dict)
    for list_name, month, asset, name, passed in rows:
        checked[ListMonth(list_name, month)][asset, name] = passed
    return checked
