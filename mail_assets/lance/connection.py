"""Connect to LanceDB in a folder or on S3-like storage."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping

import lancedb
from lancedb import AsyncConnection, DBConnection, Session
from lancedb.table import AsyncTable, Table

# A table that stays open sees what other processes have committed.
_AT_ONCE = dt.timedelta(0)


class LanceConnection:
    """Tables of one place, for blocking calls and for coroutines, which share what they cache.

    Searches are coroutines: a blocking search reads the table's schema twice more, changes threads
    five times, and takes 2 ms more of the processor.
    """

    def __init__(self, uri: str, storage_options: Mapping[str, str] | None = None) -> None:
        self._uri = uri
        self._options = dict(storage_options or {})
        self._session = Session()
        self._opened: AsyncConnection | None = None
        self.blocking: DBConnection = lancedb.connect(
            uri,
            read_consistency_interval=_AT_ONCE,
            storage_options=self._options,
            session=self._session,
        )
        self._snapshots = lancedb.connect(uri, storage_options=self._options, session=self._session)

    def list_tables(self) -> list[str]:
        """Return the names of the tables, sorted."""
        names: list[str] = []
        token = None
        while True:
            page = self.blocking.list_tables(page_token=token)
            names += page.tables
            token = page.page_token
            if not token:
                return sorted(names)

    def open_snapshot(self, name: str) -> Table:
        """Open a table as it is now, for one blocking call; writes go to the newest version.

        A table that follows others' commits lists all versions before each step of a call, which
        takes 1 ms where there are 1,200: to find out what upkeep is due took 11 ms in place of 4,
        and the keys of a month 6 in place of 3.
        """
        return self._snapshots.open_table(name)

    async def open_table(self, name: str) -> AsyncTable:
        """Open a table for coroutines."""
        if self._opened is None:
            self._opened = await lancedb.connect_async(
                self._uri,
                read_consistency_interval=_AT_ONCE,
                storage_options=self._options,
                session=self._session,
            )
        return await self._opened.open_table(name)
