"""Connections to LanceDB in a folder or on S3-like storage, and its errors."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path

import lancedb
from lancedb import AsyncConnection, DBConnection, Session
from lancedb.table import AsyncTable, Table

from mail_assets.errors import MailAssetsError
from mail_assets.files import make_private_folder

# An open table sees the commits of other processes.
_AT_ONCE = dt.timedelta(0)


class LanceConnection:
    """The tables of one folder or prefix; blocking calls and coroutines share a cache.

    Searches are coroutines. A blocking search reads the table's schema twice more, changes threads
    five times, and takes 2 ms more processor time.
    """

    def __init__(self, uri: str, storage_options: Mapping[str, str] | None = None) -> None:
        self.uri = uri
        self._options = dict(storage_options or {})
        self._session = Session()
        self._opened: AsyncConnection | None = None

    @cached_property
    def blocking(self) -> DBConnection:
        """The connection whose tables see the commits of other processes."""
        return self._connect(_AT_ONCE)

    @cached_property
    def _snapshots(self) -> DBConnection:
        return self._connect(None)

    def _connect(self, interval: dt.timedelta | None) -> DBConnection:
        self._check_folder()
        return lancedb.connect(
            self.uri,
            read_consistency_interval=interval,
            storage_options=self._options,
            session=self._session,
        )

    def make_folder(self) -> None:
        """Make the folder that the first table is written to."""
        if not self._is_remote:
            make_private_folder(Path(self.uri))  # Lance's own files have the modes of the umask

    def _check_folder(self) -> None:
        """Check that the folder exists. LanceDB would create it, even from a mistyped name.

        Raises:
            FileNotFoundError: there is no such folder.
        """
        if not self._is_remote and not Path(self.uri).is_dir():
            raise FileNotFoundError(f"the folder {self.uri} was not found")

    @property
    def _is_remote(self) -> bool:
        return "://" in self.uri

    def list_tables(self) -> list[str]:
        """Return the names of the tables, sorted; none where there is no folder."""
        if not self._is_remote and not Path(self.uri).exists():
            return []
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

        A table that follows the commits of other processes lists all versions before each step of a
        call. That takes 1 ms for 1,200 versions and doubles the time of short calls.
        """
        return self._snapshots.open_table(name)

    async def open_table(self, name: str) -> AsyncTable:
        """Open a table for coroutines."""
        if self._opened is None:
            self._check_folder()
            self._opened = await lancedb.connect_async(
                self.uri,
                read_consistency_interval=_AT_ONCE,
                storage_options=self._options,
                session=self._session,
            )
        return await self._opened.open_table(name)


#: Names of the exceptions of a panic in Rust.
PANICS = ("RustPanic", "PanicException")

#: Error messages of LanceDB about damaged files, and about missing files that a version names.
DAMAGE = (
    *("corrupt file", "does not appear to be a Lance", "panicked", "file size is too small"),
    *("Invalid range", "LanceError(Arrow)", "Protobuf", "protobuf"),
)


def name_remedy(label: str) -> str:
    """Return what to do about damaged files of the index that errors call `label`."""
    name, is_in, _ = label.removeprefix("index ").partition(" in ")
    if not is_in:
        return "its files are damaged: `mail-assets doctor --deep` names the command"
    return f"its files are damaged: make it again with `mail-assets index rebuild {name}`"


def _names_damage(error: BaseException) -> bool:
    return isinstance(error, (RuntimeError, OSError, ValueError)) and any(
        words in str(error) for words in DAMAGE
    )


@contextmanager
def lance_errors(label: str, kind: type[MailAssetsError]) -> Iterator[None]:
    """Turn LanceDB's errors, which are built-in exceptions, into `kind` about `label`.

    On damaged files LanceDB panics; its panics are not subclasses of Exception.
    """
    try:
        yield
    except kind:
        raise
    except BaseException as error:
        if type(error).__name__ in PANICS or _names_damage(error):
            raise kind(f"{label}: {error}; {name_remedy(label)}") from error
        if not isinstance(error, (RuntimeError, OSError, ValueError)):
            raise
        raise kind(
            f"{label}: {error}; check the path, its disk space and, on S3, the AWS_ variables; "
            "if the service was down or overloaded, run it again later"
        ) from error
