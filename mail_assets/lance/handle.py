"""The table of an index, opened once for many reads."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import NamedTuple, TypeVar

from lancedb.background_loop import LOOP
from lancedb.table import AsyncTable

from mail_assets.lance.estimates import Estimates
from mail_assets.lance.table import LanceTable

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
