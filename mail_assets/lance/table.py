"""The table of an index: opened, read, written to, maintained and dropped by its name.

Any number of processes may do so at once. On S3-like storage the commits need conditional writes
(If-None-Match); AWS, MinIO and R2 have them.
"""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from lancedb.background_loop import LOOP
from lancedb.table import AsyncTable, Table

from mail_assets.errors import MailAssetsError
from mail_assets.files import digest_file, write_private
from mail_assets.lance.connection import LanceConnection, lance_errors, name_remedy
from mail_assets.lance.upkeep import TableUpkeep
from mail_assets.processes.machine import read_memory

# Metadata of Arrow fields.
# Lance merges concurrent upserts of one key into one row only if the key column has this metadata
# and no index, and the merge uses no index. Otherwise it duplicates rows without an error.
PRIMARY_KEY = {b"lance-schema:unenforced-primary-key": b"true"}
# Stores each text separately, not in blocks: reading 150 scattered texts takes a quarter less
# processor time, and the column has the same size.
READ_SINGLY = {b"lance-encoding:structural-encoding": b"fullzip"}

# Seconds until a table is opened again, which takes a millisecond. Its number of rows, which
# decides how much of an index is read, may have changed by then.
KEEP = 60.0
# Seconds for one read. A search takes 0.1; counting all entries of an index on S3 takes 15.
DEADLINE = 60.0
# Seconds between two checks of time and memory, and bytes that the process may grow by. The largest
# searches need a tenth of this memory.
LOOK, MAX_GROWTH = 0.25, 4 << 30
# Rows of a sample, evenly spaced: a share is known to 0.03.
SAMPLE = 1_000
# Growth of the table after which the sample is read again.
GROWTH = 0.1
# Conditions whose counts are kept; a condition can name hundreds of senders.
MAX_COUNTED = 100

T = TypeVar("T")


@dataclass(frozen=True)
class LanceTable:
    """One table of a place; `label` names its index in errors.

    Errors are of the type `failed`; of its subtype `missing` if there is no table.
    """

    connection: LanceConnection
    name: str
    label: str
    failed: type[MailAssetsError]
    missing: type[MailAssetsError]
    plan_upkeep: Callable[[Table, str], TableUpkeep]

    def errors(self) -> AbstractContextManager[None]:
        """Turn LanceDB's errors into errors of the index."""
        return lance_errors(self.label, self.failed)

    def open(self) -> Table:
        """Open it for blocking calls. Each call sees the commits of other processes.

        Upkeep needs this: on a snapshot it would always conflict with writers.
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
        """Open it; if there is none, call `before` and create it."""
        with suppress(self.missing):
            return self.open()
        before()
        with self.errors():
            self.connection.make_folder()
            return self.connection.blocking.create_table(self.name, schema=schema, exist_ok=True)

    def list_values(self, column: str, where: str | None = None) -> Iterator[tuple[str, Any]]:
        """Iterate over rows that match a condition, in no order: the key, the value of a column."""
        with self.errors():
            search = self.open_snapshot().search().select([*{"key", column}]).limit(None)
            for batch in (search if where is None else search.where(where)).to_batches():
                yield from zip(
                    batch.column("key").to_pylist(), batch.column(column).to_pylist(), strict=True
                )

    def read_rows(self, where: str) -> dict[str, dict[str, Any]]:
        """Return the rows that a condition matches, by key."""
        with self.errors():
            rows = self.open_snapshot().search().where(where).limit(None).to_arrow().to_pylist()
        return {row["key"]: row for row in rows}

    def merge(self, rows: pa.Table) -> None:
        """Insert or overwrite rows by key."""

        def write(table: Table) -> None:
            merge = table.merge_insert("key").when_matched_update_all()
            merge.when_not_matched_insert_all().use_index(False).execute(rows)

        self._write(write)

    def delete(self, where: str) -> None:
        """Delete the rows that a condition matches."""
        self._write(lambda table: table.delete(where))

    def check_files(self, *, digests: bool = False) -> None:
        """Check that the files in a folder are whole; with `digests` those of indexes are read.

        Raises:
            MailAssetsError: of the type `failed`; it names a damaged file and the remedy.
        """
        folder = _table_folder(self.connection.uri, self.name)
        if folder is None:
            return
        try:
            damaged = find_unfinished(folder) or (find_altered(folder) if digests else [])
        except FileNotFoundError:  # upkeep has deleted old files, or the table was dropped
            return
        if damaged:
            raise self.failed(f"{self.label}: {damaged[0]} is damaged; {name_remedy(self.label)}")

    def check_indexes(self) -> None:
        """Check that the table has the indexes of its columns.

        Raises:
            MailAssetsError: of the type `failed`; it names the columns and the remedy.
        """
        table = self.open_snapshot()
        with self.errors():
            lost = self.plan_upkeep(table, self.label).find_lost_indexes()
        if lost:
            raise self.failed(
                f"{self.label}: no index of {', '.join(lost)}; {name_remedy(self.label)}"
            )

    def seal(self) -> None:
        """Keep the digests of the files of new indexes in a folder."""
        if folder := _table_folder(self.connection.uri, self.name):
            with suppress(FileNotFoundError):  # another upkeep has replaced them
                seal_indexes(folder)

    def catch_up(self) -> None:
        """Do the due upkeep of a table that is being filled; see TableUpkeep.catch_up."""
        table = self.open()
        with self.errors():
            self.plan_upkeep(table, self.label).catch_up()
        self.seal()

    def maintain(self, *, erase: bool = False) -> None:
        """Index new rows, compact, delete old versions; see TableUpkeep.maintain."""
        self.plan_upkeep(self.open(), self.label).maintain(erase=erase)
        self.seal()

    def needs_upkeep(self) -> bool:
        """Return whether much was written since the last upkeep, or in many commits."""
        table = self.open_snapshot()
        with self.errors():
            return self.plan_upkeep(table, self.label).find_due() is not None

    def drop(self) -> None:
        """Delete it, if it exists."""
        # not opened: its files may be damaged
        with suppress(self.missing), self._naming_missing():
            self.connection.blocking.drop_table(self.name)

    def _write(self, write: Callable[[Table], object]) -> None:
        # Upkeep that erases may delete the version that was read. Writes are by key, so a second
        # attempt is safe.
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


class OpenTable(NamedTuple):
    """A table, the time when it was opened, its rows then, and estimates about them."""

    table: AsyncTable
    opened: float
    rows: int
    estimates: Estimates


class TableIndex:
    """Methods of an index that concern only its table."""

    _table: LanceTable

    def keys(self) -> Iterator[str]:
        """Iterate over all keys, in no order."""
        return (key for key, _ in self._table.list_values("key"))

    def drop(self) -> None:
        """Delete the table, if it exists."""
        self._table.drop()

    def maintain(self, *, erase: bool = False) -> None:
        """Compact, delete old versions, and index a table that is large enough."""
        self._table.maintain(erase=erase)

    def catch_up(self) -> None:
        """Index new rows in little time; see TableUpkeep.catch_up."""
        self._table.catch_up()

    def needs_upkeep(self) -> bool:
        """Return whether many rows were written since the last upkeep, or in many commits."""
        return self._table.needs_upkeep()


class TableHandle:
    """Keeps a table open for many reads in any thread; each read sees other processes' commits."""

    def __init__(self, table: LanceTable, check: Callable[[AsyncTable], Awaitable[None]]) -> None:
        """`check` raises an error of the index if the index cannot read the table."""
        self._table = table
        self._check = check
        self._kept: OpenTable | None = None

    def read(self, read: Callable[[OpenTable], Awaitable[T]]) -> T:
        """Run `read` on the table, for at most DEADLINE.

        It runs again, once, if upkeep deleted the version that it was reading, or if the table was
        dropped and created again.

        Raises:
            MailAssetsError: of the index, if LanceDB fails or takes too long, or the table is gone.
        """
        result: T = LOOP.run(self._read_in_time(read))  # type: ignore[no-untyped-call]
        return result

    async def _read_in_time(self, read: Callable[[OpenTable], Awaitable[T]]) -> T:
        began, memory = time.monotonic(), read_memory()
        task = asyncio.ensure_future(self._read(read))
        try:
            while not (await asyncio.wait({task}, timeout=LOOK))[0]:
                if time.monotonic() - began > DEADLINE:
                    raise self._stop(f"no answer within {DEADLINE:.0f} s")
                if read_memory() - memory > MAX_GROWTH:
                    raise self._stop(f"it took more than {MAX_GROWTH >> 30} GB of memory")
            return task.result()
        finally:
            task.cancel()  # LanceDB ends at its next step

    def _stop(self, reason: str) -> MailAssetsError:
        return self._table.failed(
            f"{self._table.label}: {reason}; if the machine and its storage are not overloaded, "
            f"{name_remedy(self._table.label)}"
        )

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
        self._table.check_files()
        table = await self._table.open_async()
        await self._check(table)
        rows = await table.count_rows()
        estimates = Estimates(table, rows, self._kept.estimates if self._kept else None)
        self._kept = OpenTable(table, time.monotonic(), rows, estimates)
        return self._kept


class Estimates:
    """Estimates about an open table: rows that match a condition, values of a column.

    Samples of `former` are kept while the table has grown little.
    """

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
        """Return how many rows match a condition, or matched earlier while the table was open."""
        if where not in self._matching:
            if len(self._matching) >= MAX_COUNTED:
                self._matching.clear()
            self._matching[where] = await self._table.count_rows(where)
        return self._matching[where]

    async def read_sample(self, column: str) -> npt.NDArray[np.float64]:
        """Return a sample of a column's values; NaN, which meets no condition, for null."""
        if column not in self._samples:
            places = np.linspace(0, self.rows - 1, min(SAMPLE, self.rows)).astype(int)
            taken = await self._table.take_offsets(places.tolist()).select([column]).to_arrow()
            self._samples[column] = np.asarray(taken.column(column).to_numpy(), np.float64)
        return self._samples[column]


async def count_groups(table: AsyncTable, columns: Sequence[str]) -> Counter[tuple[object, ...]]:
    """Count the rows by the values of some columns, in one scan of these columns."""
    counts: Counter[tuple[object, ...]] = Counter()
    async for batch in await table.query().select([*columns]).to_batches():
        groups = pa.Table.from_batches([batch]).group_by([*columns])
        for row in groups.aggregate([([], "count_all")]).to_pylist():
            counts[tuple(row[column] for column in columns)] += row["count_all"]
    return counts


#: The last bytes of each file of data, of an index and of a version.
MARK = b"LANC"
MARKED = (".lance", ".idx")

#: The digests of the files of an index, in the folder of the index.
SEAL = "digests.json"


def _table_folder(uri: str, name: str) -> Path | None:
    """Return the folder of a table, None where it is on storage like S3."""
    return None if "://" in uri else Path(uri) / f"{name}.lance"


def find_unfinished(folder: Path) -> list[Path]:
    """Return existing files that do not end as LanceDB ends them: cut, emptied or overwritten."""
    manifest = _newest_manifest(folder)
    if manifest is None:
        return []
    content = manifest.read_bytes()
    if not content.endswith(MARK):
        return [manifest]
    files = [path for path in (folder / "data").glob("*") if path.name.encode() in content]
    files += [file for index in find_indexes(folder) for file in index.iterdir()]
    return [path for path in sorted(files) if path.suffix in MARKED and not _is_finished(path)]


def _newest_manifest(folder: Path) -> Path | None:
    """Return the file of the newest version; names count down, or in older tables up."""
    found = sorted((folder / "_versions").glob("*.manifest"))
    counting_down = [path for path in found if len(path.stem) == 20]
    if counting_down:
        return counting_down[0]
    return max(found, key=lambda path: (len(path.stem), path.stem), default=None)


def find_indexes(folder: Path) -> Iterator[Path]:
    """Yield the folders of the indexes of the newest version."""
    newest = _newest_manifest(folder)
    manifest = newest.read_bytes() if newest else b""
    for index in sorted((folder / "_indices").glob("*")):
        with suppress(ValueError):
            if uuid.UUID(index.name).bytes in manifest:
                yield index


def _is_finished(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            end = file.seek(0, 2)
            file.seek(max(0, end - len(MARK)))
            return file.read() == MARK
    except FileNotFoundError:  # upkeep has deleted it
        return True


def seal_indexes(folder: Path) -> None:
    """Keep the digests of the files of each index of the newest version that has none yet."""
    for index in find_indexes(folder):
        if not (index / SEAL).exists():
            digests = {one.name: digest_file(one) for one in sorted(index.iterdir())}
            write_private(index / SEAL, json.dumps(digests, indent=0).encode())


def find_altered(folder: Path) -> list[Path]:
    """Return the files of indexes that are missing or differ from their seal."""
    altered: list[Path] = []
    for index in find_indexes(folder):
        try:
            digests: dict[str, str] = json.loads((index / SEAL).read_text())
        except OSError:  # not sealed, or by another account
            continue
        except ValueError:
            altered.append(index / SEAL)
            continue
        files = {index / name: digest for name, digest in digests.items()}
        altered += [
            path
            for path, digest in files.items()
            if not path.is_file() or digest_file(path) != digest
        ]
    return altered
