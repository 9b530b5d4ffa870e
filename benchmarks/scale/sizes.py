"""Sizes of a home: disk by table, index and bucket, and memory by process."""

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg

from mail_assets.postgres.database import DAGSTER, embedded_dsn
from mail_assets.settings.settings import Settings

#: Seconds between two looks at the memory of PostgreSQL.
EVERY = 2.0

RELATIONS = """
select c.relname, case when c.relkind = 'i' then pg_relation_size(c.oid)
                       else pg_table_size(c.oid) end
  from pg_class c join pg_namespace n on n.oid = c.relnamespace
 where n.nspname not in ('pg_catalog', 'information_schema', 'pg_toast') and c.relkind in ('r', 'i')
 order by 2 desc
"""
#: Relations smaller than this many bytes are left out.
SMALL = 1_000_000


def measure_sizes(settings: Settings) -> dict[str, Any]:
    """Return bytes and files of the buckets, bytes of the databases' tables and indexes."""
    folders = {name: settings.home / name for name in ("store", "vectors", "words")}
    with psycopg.connect(embedded_dsn(settings.home, DAGSTER)) as connection:
        dagster = _relations(connection)
        row = connection.execute("select count(*) from event_logs").fetchone()
    with settings.database.connect("scale") as connection:
        mail = _relations(connection)
    return {
        "buckets": {name: sum(_files(folder)) for name, folder in folders.items()},
        "files": {name: len([*_files(folder)]) for name, folder in folders.items()},
        "mail": mail,
        "dagster": dagster,
        "event_rows": row[0] if row else 0,
    }


def _relations(connection: psycopg.Connection) -> dict[str, int]:
    sizes: dict[str, int] = dict(connection.execute(RELATIONS).fetchall())
    large = {name: size for name, size in sizes.items() if size >= SMALL}
    return {"all": sum(sizes.values()), **large}


def _files(folder: Path) -> Iterator[int]:
    for path in folder.rglob("*"):
        with contextlib.suppress(FileNotFoundError):  # compacted away meanwhile
            if path.is_file():
                yield path.stat().st_size


class MemoryWatch:
    """The most memory that PostgreSQL and all its processes had while the block ran, in MB.

    Memory that they share is counted once (Pss of proc(5)).
    """

    def __init__(self, postmaster: int) -> None:
        self.peak = 0.0
        self._postmaster = postmaster
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> "MemoryWatch":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(EVERY):
            self.peak = max(self.peak, sum(map(_pss, _tree(self._postmaster))) / 1024)


def _tree(postmaster: int) -> Iterator[int]:
    yield postmaster
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            if path.read_text().rpartition(")")[2].split()[1] == str(postmaster):
                yield int(path.parent.name)


def _pss(pid: int) -> int:
    """Return the KB of a process, 0 when it has ended."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError, PermissionError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1])
    return 0
