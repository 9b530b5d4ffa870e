"""What the instance's runs say of a month: one is in flight, or the last ones have failed.

https://docs.dagster.io/api/dagster/internals (DagsterInstance.get_run_records)
"""

import datetime as dt
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

import dagster as dg

from mail_assets.month import ListMonth, months_between

#: Tags of a run: its partition, or the ends of its range.
PARTITION = "dagster/partition"
RANGE = ("dagster/asset_partition_range_start", "dagster/asset_partition_range_end")

IN_FLIGHT = (
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
)

#: Failures older than this are forgotten. A month that nobody mends is then tried once more.
MEMORY = dt.timedelta(days=30)

#: A failed month is tried again after 10 minutes, then after twice as long each time, at last
#: once a day: a server that is down for a week costs 14 runs instead of 2,000.
FIRST_PAUSE = dt.timedelta(minutes=10)
LONGEST_PAUSE = dt.timedelta(days=1)


class Failures(NamedTuple):
    """The runs of a month that have failed since its last success, `last_run` the latest."""

    runs: int
    last_run: str
    ended: dt.datetime

    @property
    def retry_at(self) -> dt.datetime:
        """When the month is worth another run."""
        pause = FIRST_PAUSE
        for _ in range(1, self.runs):
            pause = min(2 * pause, LONGEST_PAUSE)
        return self.ended + pause


def months_in_flight(instance: dg.DagsterInstance, lists: Collection[str]) -> set[ListMonth]:
    """Return the months of runs of any job that are queued or running, ranges included."""
    runs = instance.get_runs(dg.RunsFilter(statuses=IN_FLIGHT))
    return {month for run in runs for month in months_of_tags(run.tags, lists)}


def failed_months(
    instance: dg.DagsterInstance, job: str, lists: Collection[str], now: dt.datetime
) -> dict[ListMonth, Failures]:
    """Return the months whose last finished run of a job has failed.

    A failed range counts for each of its months: what comes after the failed step was made for
    none. A success counts from any job: somebody may have materialized the month by hand. A run
    that was canceled counts as nothing: somebody did not want it.
    """
    since = now - MEMORY
    failed = defaultdict(list)
    for record in instance.get_run_records(
        dg.RunsFilter(job_name=job, statuses=[dg.DagsterRunStatus.FAILURE], created_after=since)
    ):
        for month in months_of_tags(record.dagster_run.tags, lists):
            failed[month].append(record)
    succeeded = _last_successes(instance, [month.key for month in failed], since)
    months = {}
    for month, records in failed.items():
        later = [
            record for record in records if run_ended(record) > succeeded.get(month.key, since)
        ]
        if later:
            last = max(later, key=run_ended)
            months[month] = Failures(len(later), last.dagster_run.run_id, run_ended(last))
    return months


def _last_successes(
    instance: dg.DagsterInstance, keys: Sequence[str], since: dt.datetime
) -> dict[str, dt.datetime]:
    """Return when the last successful run of each partition ended."""
    if not keys:  # Dagster takes an empty sequence for any
        return {}
    records = instance.get_run_records(
        dg.RunsFilter(
            statuses=[dg.DagsterRunStatus.SUCCESS], tags={PARTITION: keys}, created_after=since
        ),
        ascending=True,
    )
    return {record.dagster_run.tags[PARTITION]: run_ended(record) for record in records}


def run_ended(record: dg.RunRecord) -> dt.datetime:
    """Return when a run ended; one that never started has no end of its own."""
    if record.end_time is not None:
        return dt.datetime.fromtimestamp(record.end_time, dt.UTC)
    return record.update_timestamp.replace(tzinfo=dt.UTC)


def months_of_tags(tags: Mapping[str, str], lists: Collection[str]) -> Iterator[ListMonth]:
    """Yield the months of a run: one, or the rectangle of lists and months of its range."""
    if PARTITION in tags:
        yield ListMonth.parse(tags[PARTITION])
    if all(tag in tags for tag in RANGE):
        first, last = (ListMonth.parse(tags[tag]) for tag in RANGE)
        names = {name for name in lists if first.list_name <= name <= last.list_name}
        for name in names | {first.list_name, last.list_name}:
            for month in months_between(first.month, last.month):
                yield ListMonth(name, month)
