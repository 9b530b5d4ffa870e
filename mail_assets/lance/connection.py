"""Connections to LanceDB in a folder or on S3-like storage, and its errors."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import lancedb
from lancedb import AsyncConnection, DBConnection, Session
from lancedb.table import AsyncTable, Table

from mail_assets.errors import MailAssetsError
from mail_assets.files import make_private_folder

# An open table sees the commits of other processes.
_AT_ONCE = dt.timedelta(0)


class LanceConnection:
    """The tables of one place, for blocking calls and for coroutines, which share a cache.

    Searches are coroutines: a blocking search reads the table's schema twice more, changes threads
    five times, and takes 2 ms more of the processor.
    """

    def __init__(self, uri: str, storage_options: Mapping[str, str] | None = None) -> None:
        self._uri = uri
        self._options = dict(storage_options or {})
        self._session = Session()
        self._opened: AsyncConnection | None = None
        if "://" not in uri:
            make_private_folder(Path(uri))  # Lance's own files have the modes of the umask
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
        takes 1 ms for 1,200 versions and doubles the time of short calls.
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


@contextmanager
def lance_errors(label: str, kind: type[MailAssetsError]) -> Iterator[None]:
    """Turn LanceDB's errors, which are built-in exceptions, into `kind` about `label`."""
    try:
        yield
    except kind:
        raise
    except (RuntimeError, OSError, ValueError) as error:
        raise kind(
            f"{label}: {error}; check the path, its disk space and, on S3, the AWS_ variables; "
            "if the service was down or overloaded, run it again later"
        ) from error
