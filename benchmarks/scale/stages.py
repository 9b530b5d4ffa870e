"""The lines of a backfill (fill.py) and Dagster's event log, as seconds by stage and month."""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import psycopg

from mail_assets.postgres.database import DAGSTER, embedded_dsn
from mail_assets.settings.settings import Settings

T = TypeVar("T")

#: The share of all months that counts as the first, the middle and the last.
PART = 0.1

STEP_STARTS = """
select extract(epoch from timestamp at time zone 'utc'), step_key from event_logs
 where dagster_event_type = 'STEP_START' order by id
"""


class Span(NamedTuple):
    """Work that was done, in seconds of the processor and of the clock.

    `messages` are those of its month, 0 for what belongs to no month.
    """

    what: str
    processor: float
    clock: float
    messages: int = 0


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Return the lines of a backfill."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def step_starts(settings: Settings, since: float) -> dict[str, list[float]]:
    """Return when each asset's steps began, as Dagster recorded it."""
    starts: defaultdict[str, list[float]] = defaultdict(list)
    with psycopg.connect(embedded_dsn(settings.home, DAGSTER)) as connection:
        for clock, step in connection.execute(STEP_STARTS):
            if clock >= since:
                starts[step.rpartition("__")[2]].append(float(clock))
    return dict(starts)


def month_spans(
    lines: Sequence[Mapping[str, Any]], starts: Mapping[str, Sequence[float]]
) -> list[Span]:
    """Return what each month of each asset took.

    The first month of a step began with the step; processor time in front of it, Dagster's own, is
    taken off by its share of the clock.
    """
    stored = {
        (line["list"], line["month"]): line["stored"]
        for line in lines
        if line.get("asset") == "messages"
    }
    spans = []
    for before, line in pairwise(lines):
        if line["what"] != "month":
            continue
        clock = line["clock"] - before["clock"]
        processor = line["processor"] - before["processor"]
        began = [
            start
            for start in starts.get(line["asset"], ())
            if before["clock"] < start < line["clock"]
        ]
        own = line["clock"] - began[-1] if began else clock
        share = own / clock if clock > 0 else 1
        messages = stored.get((line["list"], line["month"]), 0)
        spans.append(Span(line["asset"], processor * share, own, messages))
    return spans


def stage_spans(lines: Sequence[Mapping[str, Any]]) -> list[Span]:
    """Return what threads and the upkeep of the indexes took, each until what comes next.

    Threads are also built between ranges of months, where a backfill takes long.
    """
    marks = [line for line in lines if line["what"] != "month"]
    return [
        Span(
            one["name"],
            after["processor"] - one["processor"],
            after["clock"] - one["clock"],
        )
        for one, after in pairwise(marks)
        if one["what"] == "stage" and after["what"] != "start"
    ]


def summarize(lines: Sequence[Mapping[str, Any]], months: list[Span]) -> dict[str, Any]:
    """Return seconds by stage and between the steps, and what early and late months took.

    What is between them is Dagster's own, its event log and checks, and the start of the process.
    """
    stages = stage_spans(lines)
    # a process that goes on where one was cut off counts its processor seconds from nought
    spans = [(one, after) for one, after in pairwise(lines) if after["what"] != "start"]
    total = Span(
        "all",
        sum(after["processor"] - one["processor"] for one, after in spans),
        sum(after["clock"] - one["clock"] for one, after in spans),
    )
    steps = [*months, *stages]
    between = total.processor - sum(span.processor for span in steps)
    return {
        "processor": total.processor,
        "clock": total.clock,
        "starts": sum(line["what"] == "start" for line in lines),
        "peak_mb": _peaks(lines),
        "stages": {
            name: {
                "processor": sum(span.processor for span in steps if span.what == name),
                "clock": sum(span.clock for span in steps if span.what == name),
            }
            for name in dict.fromkeys(span.what for span in steps)
        },
        "months": {
            name: _early_and_late([span for span in months if span.what == name])
            for name in dict.fromkeys(span.what for span in months)
        },
        "between_steps": {
            "processor": between,
            "clock": total.clock - sum(span.clock for span in steps),
            "share": between / total.processor,
        },
    }


def early_and_late(spans: Sequence[T]) -> dict[str, Sequence[T]]:
    """Return the first, the middle and the last PART of what was done in this order."""
    size = max(1, round(PART * len(spans)))
    middle = (len(spans) - size) // 2
    return {"first": spans[:size], "middle": spans[middle : middle + size], "last": spans[-size:]}


def _peaks(lines: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Return the most memory of the backfill and of PostgreSQL, in MB."""
    peaks = [line["peak_mb"] for line in lines if "peak_mb" in line]
    return {name: max(peak[name] for peak in peaks) for name in (peaks[0] if peaks else ())}


def _early_and_late(spans: list[Span]) -> dict[str, float]:
    """Return processor milliseconds a message, of the first, middle and last months."""
    return {
        name: 1_000 * sum(span.processor for span in part) / messages
        for name, part in early_and_late(spans).items()
        if (messages := sum(span.messages for span in part))
    }
