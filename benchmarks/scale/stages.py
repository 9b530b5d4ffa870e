"""Seconds by stage and month, from the lines of a backfill (fill.py) and Dagster's event log.

The event log also has the steps of ranges that run in parallel.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import psycopg

from mail_assets.defs.partitions import MONTHLY
from mail_assets.postgres.database import DAGSTER, embedded_dsn
from mail_assets.settings.settings import Settings

T = TypeVar("T")

#: Share of all months in each of the parts "first", "middle" and "last".
PART = 0.1

STEP_STARTS = """
select extract(epoch from timestamp at time zone 'utc'), step_key from event_logs
 where dagster_event_type = 'STEP_START' order by id
"""


class Span(NamedTuple):
    """A piece of work in processor seconds and wall seconds.

    `messages` is the number of messages of its month, 0 if it belongs to no month.
    """

    what: str
    processor: float
    clock: float
    messages: int = 0


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Return the lines of a backfill."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def step_starts(settings: Settings, since: float) -> dict[str, list[float]]:
    """Return the start times of each asset's steps, as recorded by Dagster."""
    starts: defaultdict[str, list[float]] = defaultdict(list)
    with psycopg.connect(embedded_dsn(settings.home, DAGSTER)) as connection:
        for clock, step in connection.execute(STEP_STARTS):
            if clock >= since:
                starts[step.rpartition("__")[2]].append(float(clock))
    return dict(starts)


def month_spans(
    lines: Sequence[Mapping[str, Any]], starts: Mapping[str, Sequence[float]]
) -> list[Span]:
    """Return the time of each month of each asset.

    The first month of a step begins with the step. The time before is Dagster's own; its processor
    seconds are estimated by its share of the wall time, and subtracted.
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
    """Return the times of stages (threads, upkeep of indexes), each up to the next event.

    A long backfill also builds threads between ranges of months.
    """
    marks = [line for line in lines if line["what"] != "month"]
    return [
        Span(one["name"], after["processor"] - one["processor"], after["clock"] - one["clock"])
        for one, after in pairwise(marks)
        if one["what"] == "stage" and after["what"] != "start"
    ]


def summarize(lines: Sequence[Mapping[str, Any]], months: list[Span]) -> dict[str, Any]:
    """Return seconds by stage, by early and late months, and between the steps.

    The time between the steps is Dagster's own, with its event log and checks, and the start of the
    process.
    """
    stages = stage_spans(lines)
    # a process that continues a killed one counts its processor seconds from 0
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
    """Return the first, the middle and the last PART of ordered spans."""
    size = max(1, round(PART * len(spans)))
    middle = (len(spans) - size) // 2
    return {"first": spans[:size], "middle": spans[middle : middle + size], "last": spans[-size:]}


def _peaks(lines: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Return the peak memory of the backfill and of PostgreSQL, in MB."""
    peaks = [line["peak_mb"] for line in lines if "peak_mb" in line]
    return {name: max(peak[name] for peak in peaks) for name in (peaks[0] if peaks else ())}


def _early_and_late(spans: list[Span]) -> dict[str, float]:
    """Return processor milliseconds per message of the first, middle and last months."""
    return {
        name: 1_000 * sum(span.processor for span in part) / messages
        for name, part in early_and_late(spans).items()
        if (messages := sum(span.messages for span in part))
    }


STEPS = """
with tag as (
    select run_id, max(value) filter (where key = 'dagster/asset_partition_range_start') as first,
                   max(value) filter (where key = 'dagster/asset_partition_range_end') as last
      from run_tags group by run_id
)
select e.run_id::text, split_part(tag.first, '|', 1), split_part(tag.first, '|', 2),
       split_part(tag.last, '|', 2), coalesce(e.step_key, ''),
       extract(epoch from min(e.timestamp) at time zone 'utc')::float,
       extract(epoch from max(e.timestamp) at time zone 'utc')::float
  from event_logs e join tag on tag.run_id = e.run_id and tag.first is not null
 where e.timestamp >= %s
   and e.dagster_event_type in
       ('STEP_START', 'STEP_SUCCESS', 'PIPELINE_START', 'PIPELINE_SUCCESS')
 group by e.run_id, tag.first, tag.last, e.step_key
 order by 6
"""
MESSAGES = """
select list, month, count(*) from messages group by list, month
"""


class StepSpan(NamedTuple):
    """A step of a run of a range of months; without a name it is the run. Times in seconds."""

    run: str
    list: str
    first: str
    last: str
    step: str
    began: float
    ended: float

    @property
    def asset(self) -> str:
        """Name of the asset, "" for a check and for the run itself."""
        name = self.step.rpartition("__")[2]
        return name if name in MONTHLY else ""

    @property
    def seconds(self) -> float:
        """Duration in seconds."""
        return self.ended - self.began


def measure_steps(settings: Settings, since: float) -> dict[str, Any]:
    """Return the figures of the steps of runs since a time (seconds since 1970)."""
    with psycopg.connect(embedded_dsn(settings.home, DAGSTER)) as connection:
        rows = connection.execute(STEPS, [datetime.fromtimestamp(since, UTC).replace(tzinfo=None)])
        spans = [StepSpan(*row) for row in rows]
    with settings.database.connect("scale") as connection:
        messages = {(name, month): count for name, month, count in connection.execute(MESSAGES)}
    return summarize_steps(spans, messages)


def summarize_steps(
    spans: Iterable[StepSpan], messages: Mapping[tuple[str, str], int]
) -> dict[str, Any]:
    """Return seconds by asset, of runs, between their steps, and by early and late ranges.

    The time between the steps of assets has the checks, Dagster's own work, and its log.
    """
    by_asset: defaultdict[str, list[StepSpan]] = defaultdict(list)
    runs = []
    for span in sorted(spans, key=lambda one: one.began):
        if span.asset:
            by_asset[span.asset].append(span)
        elif not span.step:
            runs.append(span)
    in_runs = sum(run.seconds for run in runs)
    in_steps = sum(one.seconds for steps in by_asset.values() for one in steps)
    return {
        "assets": {name: sum(one.seconds for one in steps) for name, steps in by_asset.items()},
        "runs": in_runs,
        "between": in_runs - in_steps,
        "between_share": (in_runs - in_steps) / in_runs if in_runs else 0.0,
        "until_searchable": max(run.ended for run in runs) - runs[0].began if runs else 0.0,
        "ranges": {
            name: _early_and_late_steps(steps, messages) for name, steps in by_asset.items()
        },
    }


def _early_and_late_steps(
    steps: list[StepSpan], messages: Mapping[tuple[str, str], int]
) -> dict[str, float]:
    """Return milliseconds per message of the first, middle and last ranges of months."""
    return {
        name: 1_000 * sum(one.seconds for one in part) / count
        for name, part in early_and_late(steps).items()
        if (count := sum(_count(one, messages) for one in part))
    }


def _count(step: StepSpan, messages: Mapping[tuple[str, str], int]) -> int:
    return sum(
        count
        for (name, month), count in messages.items()
        if name == step.list and step.first <= month <= step.last
    )
