"""Command line of the scale benchmark: measure a home, or print the report."""

import argparse
import gzip
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.pipeline import machine
from benchmarks.scale.fill import measure_sizes
from benchmarks.scale.report import read_results, tables
from benchmarks.scale.stages import measure_steps, month_spans, read_lines, step_starts, summarize
from mail_assets.settings.settings import Settings, load_settings

NEW_MESSAGE = b"""From mboxrd@z Thu Jan  1 00:00:00 1970
From: Ida Berg <ida@example.org>
Message-ID: <one-more@corpus.example>
Subject: one more message

It came after the month had been loaded.

"""
#: File in the home with the lines of its first backfill.
EVENTS = "fill.jsonl"
COUNTS = """
select (select count(*) from messages), (select count(*) from chunks),
       (select count(distinct (list, month)) from messages)
"""


def measure(corpus: Path, home: Path, jobs: int = 1) -> Iterator[dict[str, Any]]:
    """Fill a home with a corpus, and yield the figures of each part when it is done.

    Vectors are static, as `mail-assets backfill --fast` makes them. `jobs` processes fill ranges of
    months in parallel.

    If the first backfill of the home was stopped or killed, it continues; its figures up to the
    last written line count.

    Raises:
        FileExistsError: the home exists, and its first backfill is complete or unknown.
        SystemExit: a month failed.
    """
    events = home / EVENTS
    if home.exists() and not is_cut_off(events):
        raise FileExistsError(f"{home} is filled; name a new folder, or remove this one")
    home.mkdir(parents=True, exist_ok=True)
    environ = {
        "MAIL_HOME": str(home.resolve()),
        "MAIL_LISTS": str((corpus / "lists.toml").resolve()),
        "MAIL_PRECISION": "static",
    }
    settings = load_settings(environ)
    yield {"machine": machine(), "load_before": os.getloadavg()[1], "jobs": jobs}
    fill = _fill(settings, environ, events, jobs)
    yield {"fill": fill, "counts": _count(settings), "load_after": os.getloadavg()[1]}
    yield {"sizes": measure_sizes(settings)}
    yield {"queries": _ask(environ)}
    yield {"unchanged": _fill(settings, environ, home / "unchanged.jsonl")}
    with _one_more_message(corpus):
        yield {"one_month": _fill(settings, environ, home / "one_month.jsonl")}
    yield {"sizes_in_the_end": measure_sizes(settings)}


def is_cut_off(events: Path) -> bool:
    """Return True if a backfill wrote these lines and did not finish."""
    return events.exists() and all(line["what"] != "done" for line in read_lines(events))


def _fill(
    settings: Settings, environ: Mapping[str, str], events: Path, jobs: int = 1
) -> dict[str, Any]:
    """Run a backfill in its own process; return its figures.

    The processor time of each step is known only with one job.
    """
    command = [sys.executable, "-m", "benchmarks.scale.fill", str(events), str(jobs)]
    subprocess.run(command, env={**os.environ, **environ}, check=True)
    lines = read_lines(events)
    if failed := lines[-1].get("failed"):
        raise SystemExit(f"the backfill failed: {failed}")
    before_upkeep = [line["sizes"] for line in lines if line.get("name") == "indexes"]
    since = lines[0]["clock"]
    spans = month_spans(lines, step_starts(settings, since)) if jobs == 1 else []
    figures = summarize(lines, spans)
    if jobs > 1:  # the steps of parallel jobs cannot be separated
        del figures["between_steps"]
    return {
        **figures,
        "steps": measure_steps(settings, since),
        "months_done": lines[-1]["months"],
        "sizes_before_upkeep": before_upkeep[0] if before_upkeep else None,
    }


def _ask(environ: Mapping[str, str]) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.scale.fill"]
    asked = subprocess.run(command, env={**os.environ, **environ}, check=True, capture_output=True)
    figures: dict[str, Any] = json.loads(asked.stdout)
    return figures


def _count(settings: Settings) -> dict[str, int]:
    with settings.database.connect("scale") as connection:
        row = connection.execute(COUNTS).fetchone() or ()
    return dict(zip(("messages", "chunks", "months"), row, strict=True))


@contextmanager
def _one_more_message(corpus: Path) -> Iterator[None]:
    """Append a message to the middle archive of the first list, and remove it at the end."""
    archives = sorted(next(path for path in sorted(corpus.iterdir()) if path.is_dir()).iterdir())
    archive = archives[len(archives) // 2]
    size = archive.stat().st_size
    packed = gzip.compress(NEW_MESSAGE, mtime=0) if archive.suffix == ".gz" else NEW_MESSAGE
    with archive.open("ab") as file:
        file.write(packed)
    try:
        yield
    finally:
        os.truncate(archive, size)


def main() -> None:
    """Measure a corpus, or print the report."""
    parser = argparse.ArgumentParser(description="Measure the cost of a big backfill.")
    commands = parser.add_subparsers(dest="command", required=True)
    running = commands.add_parser("run", help="fill a new home, append its figures")
    running.add_argument("corpus", type=Path)
    running.add_argument("home", type=Path)
    running.add_argument("results", type=Path)
    running.add_argument("--jobs", type=int, default=1, help="parallel processes")
    reporting = commands.add_parser("report", help="print tables")
    reporting.add_argument("results", type=Path)
    arguments = parser.parse_args()
    if arguments.command == "run":
        run = {"corpus": arguments.corpus.name, "began": time.time()}
        for part in measure(arguments.corpus, arguments.home, arguments.jobs):
            with arguments.results.open("a") as file:
                print(json.dumps({**run, **part}), file=file)
    for table in tables(read_results(arguments.results)):
        print(table, end="\n\n")


if __name__ == "__main__":
    main()
