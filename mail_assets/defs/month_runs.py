"""What the instance's runs say of a month: one is in flight, or the last ones have failed.

https://docs.dagster.io/api/dagster/internals (DagsterInstance.get_run_records)
"""

import datetime as dt
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

import dagster as dg

from mail_assets.defs.asset_keys import asset_key
from mail_assets.defs.run_failures import read_failures
from mail_assets.defs.runs_in_flight import runs_in_flight
from mail_assets.month import ListMonth, months_between

#: Tags of a run: its partition, or the ends of its range.
PARTITION = "dagster/partition"
RANGE = ("dagster/asset_partition_range_start", "dagster/asset_partition_range_end")

#: Failures older than this are forgotten. A month that nobody mends is then tried once more.
MEMORY = dt.timedelta(days=30)

#: A failed month is tried again after 10 minutes, then after twice as long each time, at last
#: once a day: a server that is down for a week costs 14 runs instead of 2,000.
FIRST_PAUSE = dt.timedelta(minutes=10)
LONGEST_PAUSE = dt.timedelta(days=1)


#: The assets of a month, each before those that it is made from.
LAST_FIRST = tuple(
    asset_key(name)
    for name in ("vectors", "embeddings", "chunks", "words", "messages", "mbox_archives")
)

#: Events that are asked for at once.
MOST_IDS = 1_000


class Failures(NamedTuple):
    """The runs of a month that have failed since it was made last, `last_run` the latest."""

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
    runs = runs_in_flight(instance)
    return {month for run in runs for month in months_of_tags(run.tags, lists)}


def failed_months(
    instance: dg.DagsterInstance, job: str | None, lists: Collection[str], now: dt.datetime
) -> dict[ListMonth, Failures]:
    """Return the months that runs of a job, or of any, have failed to make, and none has since.

    Where a failed range names the months that failed, it counts for those, else for each: what
    comes after the failed step was made for none. Any run may have made a month since: somebody
    did so by hand. A run that was canceled counts as nothing: somebody did not want it.
    """
    filters = dg.RunsFilter(
        job_name=job, statuses=[dg.DagsterRunStatus.FAILURE], created_after=now - MEMORY
    )
    runs = [
        (record, {*months_of_tags(record.dagster_run.tags, lists)})
        for record in instance.get_run_records(filters)
    ]
    made = _last_made(instance, runs)
    failed = defaultdict(list)
    for record, months in runs:
        asset = _last_asset(record.dagster_run)
        left = {m for m in months if not _is_later(made.get((asset, m.key)), record)}
        for month in left & _failed_of(instance, record, months) if left else ():
            failed[month].append(record)
    return {month: _failures(records) for month, records in failed.items()}


def _failures(records: Sequence[dg.RunRecord]) -> Failures:
    last = max(records, key=run_ended)
    return Failures(len(records), last.dagster_run.run_id, run_ended(last))


def _last_asset(run: dg.DagsterRun) -> dg.AssetKey:
    """Return the last asset of a month that a run was to make: behind it the month is done."""
    selected = run.asset_selection or ()
    return next((asset for asset in LAST_FIRST if asset in selected), LAST_FIRST[0])


def _last_made(
    instance: dg.DagsterInstance, runs: Sequence[tuple[dg.RunRecord, set[ListMonth]]]
) -> dict[tuple[dg.AssetKey, str], dg.EventLogRecord]:
    """Return the last materializations of what some runs were to make, by asset and partition.

    Two look-ups by index for each asset, however many runs have succeeded since.
    """
    wanted: dict[dg.AssetKey, set[str]] = defaultdict(set)
    for record, months in runs:
        wanted[_last_asset(record.dagster_run)] |= {month.key for month in months}
    kind = dg.DagsterEventType.ASSET_MATERIALIZATION
    made = {}
    for asset, keys in wanted.items():
        if not keys:  # Dagster takes an empty set for any
            continue
        ids = [*instance.get_latest_storage_id_by_partition(asset, kind, keys).values()]
        for first in range(0, len(ids), MOST_IDS):
            some = dg.AssetRecordsFilter(asset, storage_ids=ids[first : first + MOST_IDS])
            for event in instance.fetch_materializations(some, limit=MOST_IDS).records:
                made[asset, str(event.partition_key)] = event
    return made


def _is_later(made: dg.EventLogRecord | None, record: dg.RunRecord) -> bool:
    """Return whether another run has made something since a run began.

    Began, not ended: a process that was killed is noticed a day later.
    """
    if made is None or made.run_id == record.dagster_run.run_id:
        return False
    return made.timestamp > (record.start_time or record.create_timestamp.timestamp())


def _failed_of(
    instance: dg.DagsterInstance, record: dg.RunRecord, months: set[ListMonth]
) -> set[ListMonth]:
    """Return those of a run's months that have failed: all, unless every reason is that of one."""
    if len(months) == 1:
        return months
    named = {failure.subject for failure in read_failures(instance, record.dagster_run.run_id)}
    failed = {month for month in months if str(month) in named}
    return failed if failed and len(failed) == len(named) else months


def run_ended(record: dg.RunRecord) -> dt.datetime:
    """Return when a run ended; one that never started has no end of its own."""
    if record.end_time is not None:
        return dt.datetime.fromtimestamp(record.end_time, dt.UTC)
    return record.update_timestamp.replace(tzinfo=dt.UTC)


def months_of_tags(tags: Mapping[str, str], lists: Collection[str]) -> Iterator[ListMonth]:
    """Yield the months of a run: one, or the rectangle of lists and months of its range.

    Those of `lists` alone: nobody can make others any more.
    """
    if ends := _ends_of_tags(tags):
        first, last = ends
        for name in lists:
            if first.list_name <= name <= last.list_name:
                for month in months_between(first.month, last.month):
                    yield ListMonth(name, month)


def _ends_of_tags(tags: Mapping[str, str]) -> tuple[ListMonth, ListMonth] | None:
    """Return the ends of a run's range, None where it has no months of ours.

    An instance may have the runs of other projects too, whose partitions are days, say.
    """
    first, last = (tags.get(PARTITION) or tags.get(tag, "") for tag in RANGE)
    try:
        return ListMonth.parse(first), ListMonth.parse(last)
    except ValueError:
        return None
