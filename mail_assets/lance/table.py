"""The table of an index, by its name: opened, listed, written to, kept up and dropped.

Any number of processes may do so at once. On S3-like storage the commits need conditional writes
(If-None-Match); AWS, MinIO and R2 have them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from lancedb.table import AsyncTable, Table

from mail_assets.lance.connection import LanceConnection
from mail_assets.lance.errors import lance_errors
from mail_assets.lance.upkeep import TableUpkeep


@dataclass(frozen=True)
class LanceTable:
    """One table of a place, as an index needs it, which `label` names in errors.

    They are of the kind `failed`, where there is no table of its kind `missing`.
    """

    connection: LanceConnection
    name: str
    label: str
    failed: type[RuntimeError]
    missing: type[RuntimeError]
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
