"""Time that the steps of a backfill took by the clock, from Dagster's event log.

It tells the steps of ranges that several processes run at once apart, which the lines of a
backfill (fill.py) do not.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

import psycopg

from benchmarks.scale.stages import early_and_late
from mail_assets.defs.backfill.report import CHAIN
from mail_assets.postgres.database import DAGSTER, embedded_dsn
from mail_assets.settings.settings import Settings

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
    """A step of the run of a range of months, or with no name the run; times in seconds."""

    run: str
    list: str
    first: str
    last: str
    step: str
    began: float
    ended: float

    @property
    def asset(self) -> str:
        """Name the asset, or "" for a check and for the run itself."""
        name = self.step.rpartition("__")[2]
        return name if name in CHAIN else ""

    @property
    def seconds(self) -> float:
        """Return how long it ran."""
        return self.ended - self.began


def measure_steps(settings: Settings, since: float) -> dict[str, Any]:
    """Return what the steps took of the runs that began since then (seconds since 1970)."""
    with psycopg.connect(embedded_dsn(settings.home, DAGSTER)) as connection:
        rows = connection.execute(STEPS, [datetime.fromtimestamp(since, UTC).replace(tzinfo=None)])
        spans = [StepSpan(*row) for row in rows]
    with settings.database.connect("scale") as connection:
        messages = {(name, month): count for name, month, count in connection.execute(MESSAGES)}
    return summarize_steps(spans, messages)


def summarize_steps(
    spans: Iterable[StepSpan], messages: Mapping[tuple[str, str], int]
) -> dict[str, Any]:
    """Return seconds by asset, of runs and between their steps, and early and late ranges.

    Checks, Dagster's own and the writing of its log are between the steps of assets.
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
        "ranges": {name: _early_and_late(steps, messages) for name, steps in by_asset.items()},
    }


def _early_and_late(
    steps: list[StepSpan], messages: Mapping[tuple[str, str], int]
) -> dict[str, float]:
    """Return milliseconds a message in the first, middle and last ranges of months."""
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
