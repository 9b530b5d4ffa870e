"""Run one backfill, and append its events with their times as JSON lines.

    python -m benchmarks.scale.fill EVENTS.jsonl JOBS

Each line has `clock` (seconds since 1970), `processor` (seconds so far of this process, its
children and the embedded PostgreSQL) and `what`:

start   the process has started
month   a month is done: asset, list, month and, for the asset `messages`, the number stored
range   a range of months of a list begins: peaks of memory so far
stage   a stage begins: name, sizes
done    the end, or "stopped" after Ctrl-C: failed months, number of months, peaks of memory

Counting processor seconds takes 10 ms. With several jobs, a month has those of the line before. A
backfill that was stopped or killed continues, and appends to its former lines.

Without arguments, the program measures searches in the filled home. It prints their latencies by
mode as JSON, for the first search of a query and for later ones.
"""

import contextlib
import json
import resource
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
import psycopg

from benchmarks.processor import postmaster_of, seconds_so_far
from mail_assets.defs.backfill.plan import BackfillRequest, backfill_lists
from mail_assets.defs.backfill.report import Event, RangeStarted, StageStarted
from mail_assets.defs.runs import MonthFinished
from mail_assets.postgres.database import DAGSTER, embedded_dsn
from mail_assets.search.language.request import MODES, Request
from mail_assets.search.open import open_searcher
from mail_assets.settings.settings import Settings, load_settings

#: Seconds between two samples of PostgreSQL's memory.
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
    """Return bytes and files of the buckets, and bytes of tables and database indexes."""
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
        with contextlib.suppress(FileNotFoundError):  # deleted by a compaction
            if path.is_file():
                yield path.stat().st_size


class MemoryWatch:
    """Peak memory of all PostgreSQL processes while the block runs, in MB.

    Shared memory is counted once (Pss of proc(5)).
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
    """Return the memory of a process in KB, 0 if it has ended."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError, PermissionError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1])
    return 0


#: Number of queries, which are subjects of messages chosen by a hash, and of warm rounds.
QUERIES, ROUNDS = 40, 3
SUBJECTS = """
select subject_base from messages where length(subject_base) between 15 and 80
 order by md5(message_id) limit %s
"""


def measure_queries(settings: Settings) -> dict[str, Any]:
    """Return p50 and p95 in milliseconds by mode, of first and of warm searches."""
    with settings.database.connect("scale") as connection:
        subjects = [text for (text,) in connection.execute(SUBJECTS, [QUERIES])]
    figures = {}
    with open_searcher(settings.search) as searcher:
        for mode in MODES:
            requests = [Request(text, mode=mode) for text in subjects]
            rounds = [[searcher.search(one).took_ms for one in requests] for _ in range(ROUNDS + 1)]
            figures[mode] = {
                "first": _percentiles(rounds[0]),
                "warm": _percentiles([took for one in rounds[1:] for took in one]),
            }
    return figures


def _percentiles(took: list[float]) -> dict[str, float]:
    return {f"p{of}": round(float(np.percentile(took, of)), 1) for of in (50, 95)}


#: Exit code of a backfill that was stopped: a shell's code for SIGINT.
STOPPED = 130


def main() -> None:
    """Fill the home of the environment; without arguments measure searches in it."""
    settings = load_settings()
    if not sys.argv[1:]:
        print(json.dumps(measure_queries(settings)))
        return
    with settings.database.connect("scale") as connection:
        server = postmaster_of(connection)
    jobs, processor = int(sys.argv[2]), 0.0
    with Path(sys.argv[1]).open("a") as file, MemoryWatch(server) as watch:

        def write(what: str, **fields: Any) -> None:
            nonlocal processor
            if jobs == 1 or what != "month":
                processor = seconds_so_far(server)
            write_line(file, what=what, processor=processor, **fields)

        def peaks() -> dict[str, float]:
            return {"run": most_memory() / 1024, "postgres": watch.peak}

        write("start")
        request = BackfillRequest([*settings.lists], jobs=jobs)
        report = backfill_lists(settings, request, follow(settings, write, peaks))
        end = "stopped" if report.interrupted else "done"
        write(end, failed=report.failed, months=len(report.done), peak_mb=peaks())
    sys.exit(STOPPED if report.interrupted else 0)


def most_memory() -> int:
    """Return the peak memory in KB of this process, or of its biggest ended child."""
    ran = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return max(resource.getrusage(who).ru_maxrss for who in ran)


def follow(
    settings: Settings, write: Callable[..., None], peaks: Callable[[], dict[str, float]]
) -> Callable[[Event], None]:
    """Return a listener that writes months, ranges and stages."""

    def listen(event: Event) -> None:
        if isinstance(event, MonthFinished):
            place = {"list": event.month.list_name, "month": event.month.month}
            write("month", asset=event.asset, stored=event.counts.get("stored"), **place)
        elif isinstance(event, StageStarted):
            write("stage", name=event.name, sizes=measure_sizes(settings))
        elif isinstance(event, RangeStarted):
            write("range", peak_mb=peaks())

    return listen


def write_line(file: IO[str], **fields: Any) -> None:
    """Write a line with the current time, and flush it."""
    print(json.dumps({"clock": time.time(), **fields}), file=file, flush=True)


if __name__ == "__main__":
    main()
