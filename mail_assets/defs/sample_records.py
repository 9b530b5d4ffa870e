"""The rows of months that Dagster's event log shows, as samples of what a run has made.

Dagster has no way to change a record or to wipe the records of a month
(`wipe_asset_partitions` is not implemented by its PostgreSQL storage): a run is deleted whole, with
its log and its records of other months. The UI shows those as missing until their next run, which
finds nothing to do.
"""

import os
from collections.abc import Collection, Iterator
from typing import NamedTuple

import dagster as dg

from mail_assets.defs.instance import open_instance
from mail_assets.defs.partitions import asset_key, partition_key
from mail_assets.month import ListMonth
from mail_assets.settings.environment import Settings

#: The assets whose samples show senders, subjects or text.
SHOWN = ("messages", "words", "chunks", "vectors", "threads", "thread_summaries")

#: Those of the whole corpus: a record may show a row of any month.
WHOLE = ("threads", "thread_summaries")

#: Records to a request; Dagster allows 1,000.
PAGE = 500


class SampleRecords(NamedTuple):
    """How many records show rows, and the runs that wrote them, sorted."""

    total: int
    runs: list[str]


def find_samples(instance: dg.DagsterInstance, months: Collection[ListMonth]) -> SampleRecords:
    """Return the records that show rows of months, or of the whole corpus."""
    keys = [str(partition_key(month)) for month in months]
    if not keys:
        return SampleRecords(0, [])
    runs = [
        record.event_log_entry.run_id
        for asset in SHOWN
        for record in _records(instance, asset, None if asset in WHOLE else keys)
        if record.asset_materialization and "sample" in record.asset_materialization.metadata
    ]
    return SampleRecords(len(runs), sorted({*runs}))


def clean_samples(settings: Settings, months: Collection[ListMonth], delete: bool) -> SampleRecords:
    """Return the records of the instance of this home that show rows of months.

    With `delete` the runs that wrote them are deleted, and what is left is returned: a run that
    has not ended stays.
    """
    if not os.path.lexists(settings.dagster_home / "dagster.yaml"):
        return SampleRecords(0, [])  # nothing was ever run here
    with open_instance(settings) as instance:
        found = find_samples(instance, months)
        if delete:
            delete_runs(instance, found.runs)
            found = find_samples(instance, months)
    return found


def delete_runs(instance: dg.DagsterInstance, run_ids: Collection[str]) -> None:
    """Delete runs that have ended, with everything that they have recorded."""
    for run_id in run_ids:
        run = instance.get_run_by_id(run_id)
        if run and run.is_finished:
            instance.delete_run(run_id)


def _records(
    instance: dg.DagsterInstance, asset: str, keys: list[str] | None
) -> Iterator[dg.EventLogRecord]:
    wanted = dg.AssetRecordsFilter(asset_key=asset_key(asset), asset_partitions=keys)
    cursor = None
    while True:
        page = instance.fetch_materializations(wanted, limit=PAGE, cursor=cursor)
        yield from page.records
        if not page.has_more:
            return
        cursor = page.cursor
