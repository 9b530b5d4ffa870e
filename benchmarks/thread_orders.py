"""Threads of real archives, loaded month by month from the first to the last, and in reverse.

    python -m benchmarks.thread_orders ARCHIVES[:DIALECT] ...

Each ARCHIVES is a folder of monthly mbox files; threads are built after every month. Prints what
came of each folder, and ends with 1 where the two orders do not agree in every row.
What does not live here: the speed of threads at a million messages (threads.py).
"""

import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from benchmarks.pipeline import LIST, machine, settings_for
from mail_assets.postgres.database import Database, embedded
from mail_assets.settings.settings import Settings
from mail_assets.sources.open import open_source
from mail_assets.sources.source import HttpOptions
from mail_assets.steps.build_threads import build_threads
from mail_assets.steps.fetch_archive import FetchOptions, fetch_archive
from mail_assets.steps.load_messages import load_messages
from mail_assets.store.open import open_store
from mail_assets.workspace import Workspace

ROWS = "select * from threads order by message_id"
FIGURES = """
select count(*) filter (where not is_ghost), count(distinct thread_id),
       count(*) filter (where is_ghost),
       (select max(size) from (select count(*) as size from threads
                                where not is_ghost group by thread_id) as sizes)
  from threads
"""


class Loaded(NamedTuple):
    """The threads of a folder."""

    messages: int
    threads: int
    ghosts: int
    largest: int
    rows: list[tuple[object, ...]]


def main() -> None:
    """Load every folder twice and compare."""
    print(f"machine: {machine()}\n")
    print("| archives | months | messages | threads | largest | ghosts | in reverse |")
    print("|---|---|---|---|---|---|---|")
    differ = False
    for argument in sys.argv[1:]:
        folder, _, dialect = argument.partition(":")
        months, forward = load(Path(folder), dialect or "plain", backwards=False)
        _, reverse = load(Path(folder), dialect or "plain", backwards=True)
        same = forward.rows == reverse.rows
        differ = differ or not same
        print(
            f"| {Path(folder).name} | {months} | {forward.messages} | {forward.threads} "
            f"| {forward.largest} | {forward.ghosts} | {'the same' if same else 'DIFFERENT'} |",
            flush=True,
        )
    sys.exit(differ)


def load(archives: Path, dialect: str, *, backwards: bool) -> tuple[int, Loaded]:
    """Load a folder into a throwaway server; how many months it has, and its threads."""
    with tempfile.TemporaryDirectory() as folder:
        settings = settings_for(Path(folder), archives, dialect)
        try:
            return _load(settings, backwards)
        finally:
            embedded(settings.home).remove()


def _load(settings: Settings, backwards: bool) -> tuple[int, Loaded]:
    mail_list = settings.lists[LIST]
    source = open_source(
        LIST,
        mail_list.source,
        start=mail_list.start,
        options=HttpOptions(),
        cache=settings.source_cache,
    )
    months = sorted(source.versions(), reverse=backwards)
    with Database(settings.home).connect("bench") as connection:
        workspace = Workspace(connection, open_store(settings.store), lambda line: None)
        for month in months:
            fetch_archive(workspace, month, source, FetchOptions(mail_list.dialect))
            load_messages(workspace, month, mail_list.language)
            build_threads(connection, workspace.log)
        [(messages, threads, ghosts, largest)] = connection.execute(FIGURES).fetchall()
        rows = connection.execute(ROWS).fetchall()
        return len(months), Loaded(messages, threads, ghosts, largest, rows)


if __name__ == "__main__":
    main()
