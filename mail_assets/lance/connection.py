"""Connect to LanceDB in a folder or on S3-like storage.

[url] The part of a `lance:` URL behind the scheme: a folder, or s3://BUCKET/PREFIX.

[errors] LanceDB's errors as those of the index whose table it is.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from mail_assets.errors import MailAssetsError

if TYPE_CHECKING:  # settings check URLs at every start, and LanceDB takes a second to import
    from lancedb import AsyncConnection, DBConnection
    from lancedb.table import AsyncTable, Table

# A table that stays open sees what other processes have committed.
_AT_ONCE = dt.timedelta(0)


class LanceConnection:
    """Tables of one place, for blocking calls and for coroutines, which share what they cache.

    Searches are coroutines: a blocking search reads the table's schema twice more, changes threads
    five times, and takes 2 ms more of the processor.
    """

    def __init__(self, uri: str, storage_options: Mapping[str, str] | None = None) -> None:
        import lancedb

        self._uri = uri
        self._options = dict(storage_options or {})
        self._session = lancedb.Session()
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
            import lancedb

            self._opened = await lancedb.connect_async(
                self._uri,
                read_consistency_interval=_AT_ONCE,
                storage_options=self._options,
                session=self._session,
            )
        return await self._opened.open_table(name)


def check_lance_path(path: str) -> None:
    """Check the path of a `lance:` URL, without opening anything.

    Raises:
        ValueError: with a short reason that never quotes a credential.
    """
    if path.startswith("s3://"):
        parts = urlsplit(path)
        if "@" in parts.netloc:
            raise ValueError("a lance: URL holds no credentials: set them in the environment")
        if not parts.netloc or parts.query:
            raise ValueError("use lance:s3://BUCKET/PREFIX, without options")
    elif not path or "://" in path or path.startswith("//"):
        raise ValueError("use lance:PATH (no slashes belong to the scheme) or lance:s3://...")


def lance_location(path: str, environ: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """Return what LanceDB opens: its URI, and options of the storage from the AWS_ variables."""
    if not path.startswith("s3://"):
        return str(Path(path).expanduser()), {}
    options = {name.lower(): text for name, text in environ.items() if name.startswith("AWS_")}
    endpoint = options.get("aws_endpoint_url_s3") or options.get("aws_endpoint_url", "")
    if endpoint:
        options["aws_endpoint"] = endpoint
        options["allow_http"] = str(endpoint.startswith("http://")).lower()
    return path, options


@contextmanager
def lance_errors(label: str, kind: type[MailAssetsError]) -> Iterator[None]:
    """Turn LanceDB's errors, which are Python's own kinds, into `kind` about `label`."""
    try:
        yield
    except kind:
        raise
    except (RuntimeError, OSError, ValueError) as error:
        raise kind(
            f"{label}: {error}; check the path, its disk space and, on S3, the AWS_ variables; "
            "where the service was down or overloaded, run it again later"
        ) from error
