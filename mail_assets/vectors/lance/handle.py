"""The table of an index, opened once for many reads."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import NamedTuple, TypeVar

from lancedb.background_loop import LOOP
from lancedb.table import AsyncTable

from mail_assets.vectors.errors import VectorError
from mail_assets.vectors.lance.errors import lance_errors
from mail_assets.vectors.lance.estimates import Estimates

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

    def __init__(
        self,
        open_table: Callable[[], Awaitable[AsyncTable]],
        label: str,
        errors: type[RuntimeError] = VectorError,
    ) -> None:
        """`label` names the index in error messages; LanceDB's errors become `errors`."""
        self._open_table = open_table
        self._label = label
        self._errors = errors
        self._kept: OpenTable | None = None

    def read(self, read: Callable[[OpenTable], Awaitable[T]]) -> T:
        """Run `read` on the table.

        It is run again where upkeep deleted the version that it was reading, or where the table
        was dropped and made again.

        Raises:
            VectorError, or `errors`: where LanceDB fails, or there is no table any more.
        """
        result: T = LOOP.run(self._read(read))  # type: ignore[no-untyped-call]
        return result

    async def _read(self, read: Callable[[OpenTable], Awaitable[T]]) -> T:
        try:
            with lance_errors(self._label, self._errors):
                return await read(self._kept_table() or await self._open())
        except self._errors as error:
            if "Not found" not in str(error):
                raise
        with lance_errors(self._label, self._errors):
            return await read(await self._open())

    def _kept_table(self) -> OpenTable | None:
        kept = self._kept
        return kept if kept and time.monotonic() - kept.opened < KEEP else None

    async def _open(self) -> OpenTable:
        table = await self._open_table()
        rows = await table.count_rows()
        estimates = Estimates(table, rows, self._kept.estimates if self._kept else None)
        self._kept = OpenTable(table, time.monotonic(), rows, estimates)
        return self._kept
