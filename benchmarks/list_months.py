"""Measure the cost of Dagster for each list-month: filled, unchanged, and one changed.

    python -m benchmarks.list_months [--lists 2] [--months 48] [--messages 20] [--home FOLDER]

The archives are synthetic, and the encoder is static. The home is temporary; --home keeps it, and
continues with it later. Each backfill is a separate process, as `mail-assets backfill` is. The
time outside the steps is that of the backfill minus the seconds that the steps recorded: Dagster,
checks, threads and imports. ui.py measures the pages of the UI.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psycopg
from sqlalchemy import event
from sqlalchemy.engine import Engine

from mail_assets.defs.backfill.plan import BackfillRequest, backfill_lists
from mail_assets.defs.backfill.report import Event, RangeStarted
from mail_assets.defs.runs import MonthFinished
from mail_assets.month import months_between, next_month
from mail_assets.postgres.database import DAGSTER, Database, embedded, embedded_dsn
from mail_assets.settings.settings import load_settings

#: Argument of the process of one backfill.
ONCE = "--once"
FIRST_MONTH = "1997-01"

_WORDS = (
    "archive",
    "boat",
    "cable",
    "dock",
    "engine",
    "ferry",
    "gale",
    "harbor",
    "island",
    "jetty",
)


def main() -> None:
    """Write archives; measure a first, an unchanged, and a changed backfill."""
    parser = argparse.ArgumentParser(description="Measure the cost of Dagster for each list-month.")
    parser.add_argument("--lists", type=int, default=2)
    parser.add_argument("--months", type=int, default=48)
    parser.add_argument("--messages", type=int, default=20)
    parser.add_argument("--home", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = arguments.home or Path(folder)
        lists = [f"list{number}" for number in range(arguments.lists)]
        changed = write_archives(home, lists, arguments.months, arguments.messages)
        measure(home, "filled")
        measure(home, "unchanged")
        changed.write_bytes(changed.read_bytes() + message("one more", random.Random(0)))
        measure(home, "one changed")
        print_events(home)
        if arguments.home is None:
            embedded(home).stop()


def write_archives(home: Path, lists: Sequence[str], months: int, messages: int) -> Path:
    """Write lists.toml and the missing archives; return the path of the last archive."""
    last = FIRST_MONTH
    for _ in range(months - 1):
        last = next_month(last)
    text = [f'first_month = "{FIRST_MONTH}"', f'last_month = "{last}"']
    for name in lists:
        folder = home / "archives" / name
        folder.mkdir(parents=True, exist_ok=True)
        text.append(f"[{name}]\nsource = {json.dumps(str(folder))}\nstart = '{FIRST_MONTH}'")
        for month in months_between(FIRST_MONTH, last):
            path = folder / f"{name}.{month}.mbox"
            if not path.exists():
                chance = random.Random(path.name)
                mails = [message(f"{name}.{month}.{n}", chance) for n in range(messages)]
                path.write_bytes(b"".join(mails))
    (home / "lists.toml").write_text("\n".join([*text, ""]))
    return path


def message(name: str, chance: random.Random) -> bytes:
    """Return a message of 60 random words."""
    words = [f"{chance.choice(_WORDS)}{chance.randrange(40)}" for _ in range(60)]
    lines = [" ".join(words[n : n + 10]) for n in range(0, 60, 10)]
    return (
        "From ann@example.org Mon Mar  4 09:00:00 2024\n"
        "From: Ann <ann@example.org>\nDate: Mon, 04 Mar 2024 09:00:00 +0000\n"
        f"Message-ID: <{name.replace(' ', '.')}@example.org>\nSubject: {name}\n\n"
        + "\n".join(lines)
        + "\n\n"
    ).encode()


def measure(home: Path, what: str) -> None:
    """Run a backfill in its own process; print its cost."""
    environment = {
        **os.environ,
        "MAIL_HOME": str(home),
        "MAIL_LISTS": str(home / "lists.toml"),
        "MAIL_PRECISION": "static",
    }
    command = [sys.executable, "-m", "benchmarks.list_months", ONCE]
    began = time.monotonic()
    done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE)
    figures: dict[str, Any] = json.loads(done.stdout)
    seconds = time.monotonic() - began
    outside = seconds - figures["steps"]
    print(
        f"{what}: {figures['months']} list-months in {seconds:.1f} s, steps {figures['steps']:.1f}"
        f" s, outside {outside:.1f} s ({outside / seconds:.0%}, {outside / figures['months']:.3f} s"
        f" a month); to Dagster's storage {figures['connections']} connections,"
        f" {figures['statements']} statements; runs {figures['runs']}",
        flush=True,
    )
    if figures["failed"]:
        print(f"failed: {figures['failed']}")


def print_events(home: Path) -> None:
    """Print the rows and the size of the event log, by kind of event."""
    with psycopg.connect(embedded_dsn(home, DAGSTER)) as connection:
        rows = connection.execute(
            "select coalesce(dagster_event_type, 'log line'), count(*), sum(length(event))"
            "  from event_logs group by 1 order by 2 desc"
        ).fetchall()
        size = connection.execute("select pg_total_relation_size('event_logs')").fetchone()
    with Database(home).connect("benchmark") as mail:
        partitions = mail.execute("select count(*) from partitions where month <> ''").fetchone()
    count = partitions[0] if partitions else 0
    totals = Counter[str]()
    for kind, number, length in rows:
        totals["rows"] += number
        totals["bytes"] += length
        if number * 50 > totals["rows"]:
            print(f"  {kind:<32} {number:>7} rows, {length / number / 1e3:.1f} KB each")
    print(
        f"event log: {totals['rows']} rows, {size[0] / 1e6 if size else 0:.1f} MB, of"
        f" {count} partitions: {1000 * totals['rows'] / count:.0f} rows and"
        f" {1000 * totals['bytes'] / 1e6 / count:.2f} MB of events per 1,000"
    )


def fill_once() -> None:
    """Fill the home of the environment; print the cost as JSON."""
    counts = Counter[str]()
    event.listen(Engine, "do_connect", lambda *_: counts.update(["connections"]))
    event.listen(Engine, "before_cursor_execute", lambda *_: counts.update(["statements"]))
    steps = 0.0

    def listen(one: Event) -> None:
        nonlocal steps
        if isinstance(one, MonthFinished) and one.changed:
            steps += one.counts.get("seconds", 0)
        counts["runs"] += isinstance(one, RangeStarted)

    settings = load_settings()
    report = backfill_lists(settings, BackfillRequest([*settings.lists]), listen)
    figures = {**{name: counts[name] for name in ("connections", "statements", "runs")}}
    print(
        json.dumps(
            {
                **figures,
                "steps": steps,
                "months": len(report.done) + len(report.unchanged),
                "failed": [*report.failed],
            }
        )
    )


if __name__ == "__main__":
    fill_once() if sys.argv[1:] == [ONCE] else main()
