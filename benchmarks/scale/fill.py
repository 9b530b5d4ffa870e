"""One backfill in a process of its own: appends what happens, and when, as JSON lines.

    python -m benchmarks.scale.fill EVENTS.jsonl JOBS

A line has `clock` (seconds since 1970), `processor` (seconds so far of this process, its children
and the embedded PostgreSQL; those of the line before at a month of several jobs, since to count
them takes 10 ms) and `what`: "start"; "month" with asset, list, month and, where the
asset is `messages`, how many are stored; "range" before months of a list, with the peaks of memory
so far; "stage" with its name and the sizes then; "done", or "stopped" by Ctrl-C, with what failed,
and the peaks. A backfill that was stopped or cut off goes on where it was, with lines behind those
it wrote before.
"""

import json
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from benchmarks.processor import postmaster_of, seconds_so_far
from benchmarks.scale.sizes import MemoryWatch, measure_sizes
from mail_assets.defs.backfill.plan import BackfillRequest, backfill_lists
from mail_assets.defs.backfill.report import Event, RangeStarted, StageStarted
from mail_assets.defs.runs import MonthFinished
from mail_assets.settings.settings import Settings, load_settings

#: The exit status of a backfill that was stopped, as a shell has it.
STOPPED = 130


def main() -> None:
    """Fill the home of the environment with all its lists."""
    settings = load_settings()
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
    """Return the KB that this process had at most, or the biggest of those it waited for."""
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
    """Write one line at once, with the time."""
    print(json.dumps({"clock": time.time(), **fields}), file=file, flush=True)


if __name__ == "__main__":
    main()
