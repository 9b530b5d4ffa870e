"""The sensor that requests threads and series of patches, once after all months that changed.

Threads belong to no month: a reply is often in a later one, or on another list. Built in the run of
each month, they would be built 24 times after one tick of the sensor for archives.
https://docs.dagster.io/guides/automate/sensors
"""

import datetime as dt
from collections.abc import Callable
from itertools import takewhile

import dagster as dg

from mail_assets.defs.jobs import build_threads
from mail_assets.defs.partitions import asset_key, list_names
from mail_assets.defs.resources import DatabaseResource
from mail_assets.defs.runs import (
    IN_FLIGHT,
    Failures,
    is_backfill_in_flight,
    months_in_flight,
    run_ended,
)
from mail_assets.steps.build_threads import are_threads_outdated
from mail_assets.steps.group_series import are_series_outdated
from mail_assets.tables.thread_summaries import are_summaries_outdated

#: Longest wait for the runs of months: a backfill of days must not leave its mail without threads.
#: The cost of building them depends on the mail that changed, not on all mail.
LONGEST_WAIT = dt.timedelta(hours=1)

#: Threads are built at least this often, or unchanged ones would be shown as overdue.
REFRESH = dt.timedelta(days=1)


def build_new_threads(
    partitions: dg.MultiPartitionsDefinition,
    clock: Callable[[], dt.datetime] = lambda: dt.datetime.now(dt.UTC),
) -> dg.SensorDefinition:
    """Build the sensor. It is on from the start: without new mail it requests nothing."""
    lists = list_names(partitions)

    @dg.sensor(
        job=build_threads,
        minimum_interval_seconds=60,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Request that threads are built and summarized if messages have changed since, "
        "once the runs of months and backfills have ended or have taken an hour.",
    )
    def new_threads(
        context: dg.SensorEvaluationContext, database: DatabaseResource
    ) -> dg.RunRequest | dg.SkipReason:
        """Request one run if messages wait for their threads. The cursor is the time since then."""
        now = clock()
        with database.connect("sensor") as connection:
            outdated = (
                are_threads_outdated(connection)
                or are_summaries_outdated(connection)
                or are_series_outdated(connection)
            )
        if not outdated and not _is_due(context.instance, now):
            context.update_cursor("")
            return dg.SkipReason("no message has changed since the threads were built")
        since = dt.datetime.fromisoformat(context.cursor) if context.cursor else now
        context.update_cursor(since.isoformat())
        failures = _last_failures(context.instance)
        if _are_being_built(context.instance):
            return dg.SkipReason("a run builds the threads, or is about to")
        if failures and failures.retry_at > now:
            return dg.SkipReason(f"failed; again after {failures.retry_at:%Y-%m-%d %H:%M} UTC")
        if now - since < LONGEST_WAIT:
            if months_in_flight(context.instance, lists):
                return dg.SkipReason("months are in a run: the threads are built after them")
            # it may have a run of its own for the threads, at its end
            if is_backfill_in_flight(context.instance):
                return dg.SkipReason("a backfill goes on: the threads are built after it")
        context.update_cursor("")
        return dg.RunRequest()

    return new_threads


def _are_being_built(instance: dg.DagsterInstance) -> bool:
    """Return whether a run of any job that makes the threads is queued or running."""
    runs = instance.get_runs(dg.RunsFilter(statuses=IN_FLIGHT))
    return any(
        run.job_name == build_threads.name or asset_key("threads") in (run.asset_selection or ())
        for run in runs
    )


def _is_due(instance: dg.DagsterInstance, now: dt.datetime) -> bool:
    """Return whether threads were built, but not within REFRESH."""
    event = instance.get_latest_materialization_event(asset_key("threads"))
    built = event and dt.datetime.fromtimestamp(event.timestamp, dt.UTC)
    return bool(built and now - built > REFRESH)


def _last_failures(instance: dg.DagsterInstance) -> Failures | None:
    ended = [dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.SUCCESS]
    records = instance.get_run_records(
        dg.RunsFilter(job_name=build_threads.name, statuses=ended), limit=20
    )
    failed = [*takewhile(lambda x: x.dagster_run.status == dg.DagsterRunStatus.FAILURE, records)]
    if not failed:
        return None
    return Failures(len(failed), failed[0].dagster_run.run_id, run_ended(failed[0]))
