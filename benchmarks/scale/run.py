"""A whole measurement at one size: fill, ask, fill unchanged, fill with one changed month."""

import gzip
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.loopback_encoder import started, variables
from benchmarks.pipeline import machine
from benchmarks.processor import postmaster_of
from benchmarks.scale.sizes import MemoryWatch, measure_sizes
from benchmarks.scale.stages import month_spans, read_lines, step_starts, summarize
from mail_assets.settings.environment import Settings, load_settings

NEW_MESSAGE = b"""From mboxrd@z Thu Jan  1 00:00:00 1970
From: Ida Berg <ida@example.org>
Message-ID: <one-more@corpus.example>
Subject: one more message

It came after the month had been loaded.

"""
COUNTS = """
select (select count(*) from messages), (select count(*) from chunks),
       (select count(distinct (list, month)) from messages)
"""


def measure(corpus: Path, home: Path, table: Path | None) -> Iterator[dict[str, Any]]:
    """Fill a new home with a corpus, and yield figures as they are known, part after part.

    Raises:
        FileExistsError: the home is there.
        SystemExit: a month failed.
    """
    home.mkdir(parents=True)
    with started(table) as port:
        environ = {
            "MAIL_HOME": str(home.resolve()),
            "MAIL_LISTS": str((corpus / "lists.toml").resolve()),
            **variables(port),
        }
        settings = load_settings(environ)
        yield {"machine": machine(), "load_before": os.getloadavg()[1]}
        fill = _fill(settings, environ)
        yield {"fill": fill, "counts": _count(settings), "load_after": os.getloadavg()[1]}
        yield {"sizes": measure_sizes(settings)}
        yield {"queries": _ask(environ)}
        yield {"unchanged": _fill(settings, environ)}
        with _one_more_message(corpus):
            yield {"one_month": _fill(settings, environ)}
        yield {"sizes_in_the_end": measure_sizes(settings)}


def _fill(settings: Settings, environ: Mapping[str, str]) -> dict[str, Any]:
    """Run a backfill in a process of its own, and return what it took."""
    with settings.database.connect("scale") as connection:
        postmaster = postmaster_of(connection)
    with tempfile.TemporaryDirectory() as folder, MemoryWatch(postmaster) as watch:
        path = Path(folder) / "events"
        command = [sys.executable, "-m", "benchmarks.scale.fill", str(path)]
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        subprocess.run(command, env={**os.environ, **environ}, check=True)
        lines = read_lines(path)
    if failed := lines[-1].get("failed"):
        raise SystemExit(f"the backfill failed: {failed}")
    months = month_spans(lines, step_starts(settings, lines[0]["clock"]))
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    before_upkeep = [line["sizes"] for line in lines if line.get("name") == "indexes"]
    return {
        **summarize(lines, months),
        "months_done": lines[-1]["months"],
        # of the biggest child so far: that of the first fill, which is measured first
        "peak_mb": {"run": peak / 1024 if peak > before else None, "postgres": watch.peak},
        "sizes_before_upkeep": before_upkeep[0] if before_upkeep else None,
    }


def _ask(environ: Mapping[str, str]) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.scale.queries"]
    asked = subprocess.run(command, env={**os.environ, **environ}, check=True, capture_output=True)
    figures: dict[str, Any] = json.loads(asked.stdout)
    return figures


def _count(settings: Settings) -> dict[str, int]:
    with settings.database.connect("scale") as connection:
        row = connection.execute(COUNTS).fetchone() or ()
    return dict(zip(("messages", "chunks", "months"), row, strict=True))


@contextmanager
def _one_more_message(corpus: Path) -> Iterator[None]:
    """Append a message to the archive in the middle of the first list, and take it off again."""
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
