"""Loading months with 1, 2, 4 ... processes that parse: processor time and time by the clock.

    python -m benchmarks.parallel_load ARCHIVES [--dialect plain]

ARCHIVES is a folder of monthly mbox files. Each number of processes loads all months into empty
tables; the rows are compared with those of the first.
"""

import argparse
import tempfile
from pathlib import Path

import psycopg

from benchmarks.pipeline import LIST, machine, settings_for
from benchmarks.processor import postmaster_of, timed
from mail_assets.encoding.local_encoder import count_physical_cores
from mail_assets.postgres.database import Database, embedded
from mail_assets.processes.workers import WorkerPool
from mail_assets.settings.settings import Settings
from mail_assets.sources.open import open_source
from mail_assets.sources.source import HttpOptions
from mail_assets.steps.fetch_archive import FetchOptions, fetch_archive
from mail_assets.steps.load_messages import load_messages
from mail_assets.steps.outcome import Outcome
from mail_assets.store.open import open_store
from mail_assets.workspace import Workspace


def main() -> None:
    """Measure, and print a table in Markdown."""
    parser = argparse.ArgumentParser(description="Measure loads on several cores.")
    parser.add_argument("archives", type=Path, help="a folder of monthly mbox files")
    parser.add_argument("--dialect", default="plain")
    arguments = parser.parse_args()
    print(f"machine: {machine()}\n")
    with tempfile.TemporaryDirectory() as folder:
        settings = settings_for(Path(folder), arguments.archives, arguments.dialect)
        try:
            with Database(settings.home).connect("bench") as connection:
                measure(settings, connection)
        finally:
            embedded(settings.home).remove()


def measure(settings: Settings, connection: psycopg.Connection) -> None:
    """Load with each number of processes."""
    mail_list, store = settings.lists[LIST], open_store(settings.store)
    source = open_source(
        LIST,
        mail_list.source,
        start=mail_list.start,
        options=HttpOptions(),
        cache=settings.source_cache,
    )
    months = sorted(source.versions())
    for month in months:
        workspace = Workspace(connection, store, print)
        fetch_archive(workspace, month, source, FetchOptions(mail_list.dialect))
    print("| processes | messages | processor seconds | seconds | messages/s |")
    print("|---|---|---|---|---|")
    server = postmaster_of(connection)
    jobs, expected = 1, ""

    def load() -> list[Outcome]:
        with WorkerPool(jobs) as workers:
            workspace = Workspace(connection, store, print, workers=workers)
            return [load_messages(workspace, month, mail_list.language) for month in months]

    while jobs <= max(2, count_physical_cores()):
        connection.execute("truncate messages, archive_entries, quarantine, thread_changes")
        connection.execute("delete from partitions where asset = 'messages'")
        outcomes, spent = timed(load, server)
        found = sum(outcome.counts["found"] for outcome in outcomes)
        print(
            f"| {jobs} | {found} | {spent.processor:.2f} | {spent.clock:.2f} "
            f"| {found / spent.clock:,.0f} |",
            flush=True,
        )
        digests = " ".join(outcome.digest for outcome in outcomes)
        if expected and digests != expected:
            raise SystemExit("the rows are not those of one process")
        expected, jobs = digests, 2 * jobs


if __name__ == "__main__":
    main()
