"""The table of an index, by its name: opened, listed, written to, kept up and dropped.

Any number of processes may do so at once. On S3-like storage the commits need conditional writes
(If-None-Match); AWS, MinIO and R2 have them.

[estimates] Estimates about an open table: how many rows match a condition, and which values a column has.

[handle] The table of an index, opened once for many reads.

[columns] What LanceDB is told of a column, in the metadata of its Arrow field.

[groups] Count the rows of a table by the values of some columns, which is one scan of those columns.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from lancedb.background_loop import LOOP
from lancedb.table import AsyncTable, Table

from mail_assets.errors import MailAssetsError
from mail_assets.lance.connection import LanceConnection, lance_errors
from mail_assets.lance.upkeep import TableUpkeep


@dataclass(frozen=True)
class LanceTable:
    """One table of a place, as an index needs it, which `label` names in errors.

    They are of the kind `failed`, where there is no table of its kind `missing`.
    """

    connection: LanceConnection
    name: str
    label: str
    failed: type[MailAssetsError]
    missing: type[MailAssetsError]
    plan_upkeep: Callable[[Table, str], TableUpkeep]

    def errors(self) -> AbstractContextManager[None]:
        """Turn LanceDB's errors into those of the index."""
        return lance_errors(self.label, self.failed)

    def open(self) -> Table:
        """Open it for blocking calls, each of which sees what others have committed.

        Upkeep needs that: on a snapshot it would starve beside writers.
        """
        with self._naming_missing():
            return self.connection.blocking.open_table(self.name)

    def open_snapshot(self) -> Table:
        """Open it as it is now, for one blocking call."""
        with self._naming_missing():
            return self.connection.open_snapshot(self.name)

    async def open_async(self) -> AsyncTable:
        """Open it for coroutines."""
        with self._naming_missing():
            return await self.connection.open_table(self.name)

    def open_or_create(
        self, schema: pa.Schema, before: Callable[[], object] = lambda: None
    ) -> Table:
        """Open it; where there is none, call `before` and create it."""
        with suppress(self.missing):
            return self.open()
        before()
        with self.errors():
            return self.connection.blocking.create_table(self.name, schema=schema, exist_ok=True)

    def list_keys(self, where: str | None = None) -> Iterator[str]:
        """Iterate over the keys, of the rows that a condition matches, in no order."""
        return (key for key, _ in self.list_values("key", where))

    def list_values(self, column: str, where: str | None = None) -> Iterator[tuple[str, Any]]:
        """Iterate over the keys, each with its value in a column, as list_keys does."""
        with self.errors():
            search = self.open_snapshot().search().select([*{"key", column}]).limit(None)
            for batch in (search if where is None else search.where(where)).to_batches():
                yield from zip(
                    batch.column("key").to_pylist(), batch.column(column).to_pylist(), strict=True
                )

    def merge(self, rows: pa.Table) -> None:
        """Insert or overwrite rows by key."""

        def write(table: Table) -> None:
            merge = table.merge_insert("key").when_matched_update_all()
            merge.when_not_matched_insert_all().use_index(False).execute(rows)

        self._write(write)

    def delete(self, where: str) -> None:
        """Delete the rows that a condition matches."""
        self._write(lambda table: table.delete(where))

    def catch_up(self) -> None:
        """Do what upkeep is due while the table is being filled; see TableUpkeep.catch_up."""
        table = self.open()
        with self.errors():
            self.plan_upkeep(table, self.label).catch_up()

    def maintain(self, *, erase: bool = False) -> None:
        """Index what is new, compact, delete old versions; see TableUpkeep.maintain."""
        self.plan_upkeep(self.open(), self.label).maintain(erase=erase)

    def needs_upkeep(self) -> bool:
        """Tell whether much was written since the last upkeep, or in many commits."""
        table = self.open_snapshot()
        with self.errors():
            return self.plan_upkeep(table, self.label).find_due() is not None

    def drop(self) -> None:
        """Delete it; nothing happens where there is none."""
        with suppress(self.missing):
            self.open()
            with self.errors():
                self.connection.blocking.drop_table(self.name)

    def _write(self, write: Callable[[Table], object]) -> None:
        """Write, once more where an upkeep that erases deleted the version that was read.

        `write` does by key what may be done twice.
        """
        try:
            with self.errors():
                write(self.open())
            return
        except self.failed as error:
            if "Not found" not in str(error):
                raise
        with self.errors():
            write(self.open())

    @contextmanager
    def _naming_missing(self) -> Iterator[None]:
        try:
            with self.errors():
                yield
        except self.failed as error:
            if "was not found" in str(error):
                raise self.missing(
                    f"{self.label}: does not exist; `mail-assets backfill` creates it, or "
                    "correct the URL"
                ) from error
            raise


# Rows, evenly spaced, whose values stand for all: a share is known to 0.03.
SAMPLE = 1_000
# They are read again when the table has grown by so much.
GROWTH = 0.1
# Conditions whose matches are kept counted; one can name hundreds of senders.
MAX_COUNTED = 100


class Estimates:
    """What is kept of a table of so many rows while it is open."""

    def __init__(self, table: AsyncTable, rows: int, former: Estimates | None = None) -> None:
        self.rows = rows
        self._table = table
        self._matching: dict[str, int] = {}
        self._samples: dict[str, npt.NDArray[np.float64]] = {}
        self._rows_of_samples = rows
        if former and abs(rows - former._rows_of_samples) <= GROWTH * rows:
            self._samples = former._samples
            self._rows_of_samples = former._rows_of_samples

    async def count(self, where: str) -> int:
        """Return how many rows match a condition, or did since the table was opened."""
        if where not in self._matching:
            if len(self._matching) >= MAX_COUNTED:
                self._matching.clear()
            self._matching[where] = await self._table.count_rows(where)
        return self._matching[where]

    async def read_sample(self, column: str) -> npt.NDArray[np.float64]:
        """Return values that stand for all of a column: NaN, which meets nothing, for a null."""
        if column not in self._samples:
            places = np.linspace(0, self.rows - 1, min(SAMPLE, self.rows)).astype(int)
            taken = await self._table.take_offsets(places.tolist()).select([column]).to_arrow()
            self._samples[column] = np.asarray(taken.column(column).to_numpy(), np.float64)
        return self._samples[column]


T = TypeVar("T")

# Seconds after which the table is opened again, which takes a millisecond: by then it may have more
# rows, which decide how much of its index is read.
KEEP = 60.0


class OpenTable(NamedTuple):
    """A table, when it was opened, the rows that it had, and what is estimated about them."""

    table: AsyncTable
    opened: float
    rows: int
    estimates: Estimates


class TableHandle:
    """Keeps a table open; threads may share it.

    Every read sees what other processes have committed: the connection checks the version.
    """

    def __init__(self, table: LanceTable, check: Callable[[AsyncTable], Awaitable[None]]) -> None:
        """`check` raises an error of the index where it cannot read the table."""
        self._table = table
        self._check = check
        self._kept: OpenTable | None = None

    def read(self, read: Callable[[OpenTable], Awaitable[T]]) -> T:
        """Run `read` on the table.

        It is run again where upkeep deleted the version that it was reading, or where the table
        was dropped and made again.

        Raises:
            RuntimeError: of the index, where LanceDB fails, or there is no table any more.
        """
        result: T = LOOP.run(self._read(read))  # type: ignore[no-untyped-call]
        return result

    async def _read(self, read: Callable[[OpenTable], Awaitable[T]]) -> T:
        try:
            with self._table.errors():
                return await read(self._kept_table() or await self._open())
        except self._table.failed as error:
            if "Not found" not in str(error):
                raise
        with self._table.errors():
            return await read(await self._open())

    def _kept_table(self) -> OpenTable | None:
        kept = self._kept
        return kept if kept and time.monotonic() - kept.opened < KEEP else None

    async def _open(self) -> OpenTable:
        table = await self._table.open_async()
        await self._check(table)
        rows = await table.count_rows()
        estimates = Estimates(table, rows, self._kept.estimates if self._kept else None)
        self._kept = OpenTable(table, time.monotonic(), rows, estimates)
        return self._kept


# Lance merges concurrent upserts of the same key into one row only where the key column carries
# this, no index is on it, and the merge does not ask for one; otherwise it duplicates silently.
PRIMARY_KEY = {b"lance-schema:unenforced-primary-key": b"true"}
# Each text apart instead of in blocks: to read 150 of them here and there takes 4.0 ms of the
# processor instead of 5.4, and the column is as large.
READ_SINGLY = {b"lance-encoding:structural-encoding": b"fullzip"}


async def count_groups(table: AsyncTable, columns: Sequence[str]) -> Counter[tuple[object, ...]]:
    """Return how many rows have each combination of values."""
    counts: Counter[tuple[object, ...]] = Counter()
    async for batch in await table.query().select([*columns]).to_batches():
        groups = pa.Table.from_batches([batch]).group_by([*columns])
        for row in groups.aggregate([([], "count_all")]).to_pylist():
            counts[tuple(row[column] for column in columns)] += row["count_all"]
    return counts
