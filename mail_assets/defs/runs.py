"""The runs of the instance: in flight or abandoned, failed months, and the log of a run.

Our commands execute runs in their own process, which Dagster does not monitor. If it is killed,
Dagster would show the run as started for a day. So each such run has a tag with its process.

https://docs.dagster.io/api/dagster/internals (DagsterInstance.get_run_records)
https://docs.dagster.io/guides/log-debug/logging
"""

import datetime as dt
import logging
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

import dagster as dg
from dagster._core.execution.backfill import (
    BULK_ACTION_TERMINAL_STATUSES,
    BulkActionsFilter,
    BulkActionStatus,
)

from mail_assets.defs.failures import TRACEBACK, read_failures
from mail_assets.defs.partitions import MONTHLY, PREFIX, asset_key
from mail_assets.month import ListMonth, months_between
from mail_assets.processes.machine import has_ended
from mail_assets.tables.partitions import Counts

IN_FLIGHT = (
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
)

#: Tag of a run that is executed by a process of ours and ends with it.
PROCESS = "mail_assets/process"


def abandoned_runs(instance: dg.DagsterInstance) -> list[dg.DagsterRun]:
    """Return the runs whose process was killed on this machine."""
    return [run for run in _unfinished(instance) if _is_abandoned(run)]


def cancel_abandoned(instance: dg.DagsterInstance) -> None:
    """Cancel the runs whose process was killed; a backfill finds their unfinished months."""
    for run in abandoned_runs(instance):
        instance.report_run_canceled(run, "The process of this run was killed.")


def _unfinished(instance: dg.DagsterInstance) -> list[dg.DagsterRun]:
    return [*instance.get_runs(dg.RunsFilter(statuses=IN_FLIGHT))]


def _is_abandoned(run: dg.DagsterRun) -> bool:
    return PROCESS in run.tags and has_ended(run.tags[PROCESS])


#: Tags of a run: its partition, or the first and the last partition of its range.
PARTITION = "dagster/partition"
RANGE = ("dagster/asset_partition_range_start", "dagster/asset_partition_range_end")

#: Age after which failures do not count; then the month is tried again.
MEMORY = dt.timedelta(days=30)

#: Pauses before a failed month is tried again. They double up to a day, so that a server that is
#: down for a week costs 14 runs instead of 2,000.
FIRST_PAUSE = dt.timedelta(minutes=10)
LONGEST_PAUSE = dt.timedelta(days=1)


#: The assets of a month in reverse order: each before the assets that it is made from.
LAST_FIRST = tuple(map(asset_key, (*reversed(MONTHLY), "commits")))

#: Events read by one query.
MOST_IDS = 1_000


class Failures(NamedTuple):
    """Failed runs of a month since it was last made: their number, and id and end of the last."""

    runs: int
    last_run: str
    ended: dt.datetime

    @property
    def retry_at(self) -> dt.datetime:
        """Time of the next attempt."""
        pause = FIRST_PAUSE
        for _ in range(1, self.runs):
            pause = min(2 * pause, LONGEST_PAUSE)
        return self.ended + pause


def months_in_flight(instance: dg.DagsterInstance, lists: Collection[str]) -> set[ListMonth]:
    """Return the months of all queued or running runs of any job, including ranges."""
    runs = (run for run in _unfinished(instance) if not _is_abandoned(run))
    return {month for run in runs for month in months_of_tags(run.tags, lists)}


def is_backfill_in_flight(instance: dg.DagsterInstance) -> bool:
    """Return whether the daemon has an unfinished backfill of our assets, even between runs."""
    statuses = [one for one in BulkActionStatus if one not in BULK_ACTION_TERMINAL_STATUSES]
    backfills = instance.get_backfills(BulkActionsFilter(statuses=statuses))
    keys = (key for one in backfills for key in one.asset_selection or ())
    return any(key.path[0] == PREFIX for key in keys)


def failed_months(
    instance: dg.DagsterInstance, lists: Collection[str], now: dt.datetime
) -> dict[ListMonth, Failures]:
    """Return the months that runs of any job failed to make and no run has made since.

    A failed range counts for the months that its failures name. If they name none, it counts for
    all, because no month got the assets after the failed step. Any later run may have made a month,
    even one that a person started. Canceled runs do not count, because a person canceled them.
    """
    filters = dg.RunsFilter(statuses=[dg.DagsterRunStatus.FAILURE], created_after=now - MEMORY)
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
    last = {month: max(records, key=run_ended) for month, records in failed.items()}
    return {
        month: Failures(len(failed[month]), one.dagster_run.run_id, run_ended(one))
        for month, one in last.items()
    }


def _last_asset(run: dg.DagsterRun) -> dg.AssetKey:
    selected = run.asset_selection or ()
    return next((asset for asset in LAST_FIRST if asset in selected), LAST_FIRST[0])


def _last_made(
    instance: dg.DagsterInstance, runs: Sequence[tuple[dg.RunRecord, set[ListMonth]]]
) -> dict[tuple[dg.AssetKey, str], dg.EventLogRecord]:
    """Return (asset, partition) -> last materialization, for the last assets of some runs.

    It takes two index look-ups per asset, regardless of the number of runs that succeeded since.
    """
    wanted: dict[dg.AssetKey, set[str]] = defaultdict(set)
    for record, months in runs:
        wanted[_last_asset(record.dagster_run)] |= {month.key for month in months}
    kind = dg.DagsterEventType.ASSET_MATERIALIZATION
    made = {}
    for asset, keys in wanted.items():
        if not keys:  # Dagster takes an empty set as all partitions
            continue
        ids = [*instance.get_latest_storage_id_by_partition(asset, kind, keys).values()]
        for first in range(0, len(ids), MOST_IDS):
            some = dg.AssetRecordsFilter(asset, storage_ids=ids[first : first + MOST_IDS])
            for event in instance.fetch_materializations(some, limit=MOST_IDS).records:
                made[asset, str(event.partition_key)] = event
    return made


def _is_later(made: dg.EventLogRecord | None, record: dg.RunRecord) -> bool:
    """Return whether a materialization by another run is later than the start of a run.

    The start counts, not the end, because Dagster notices a killed process only a day later.
    """
    if made is None or made.run_id == record.dagster_run.run_id:
        return False
    return made.timestamp > (record.start_time or record.create_timestamp.timestamp())


def _failed_of(
    instance: dg.DagsterInstance, record: dg.RunRecord, months: set[ListMonth]
) -> set[ListMonth]:
    """Return the failed months of a run: all, unless every failure names one of them."""
    if len(months) == 1:
        return months
    named = {failure.subject for failure in read_failures(instance, record.dagster_run.run_id)}
    failed = {month for month in months if str(month) in named}
    return failed if failed and len(failed) == len(named) else months


def run_ended(record: dg.RunRecord) -> dt.datetime:
    """Return the time when a run ended, or was last updated if it never started."""
    if record.end_time is not None:
        return dt.datetime.fromtimestamp(record.end_time, dt.UTC)
    return record.update_timestamp.replace(tzinfo=dt.UTC)


def months_of_tags(tags: Mapping[str, str], lists: Collection[str]) -> Iterator[ListMonth]:
    """Yield the months of a run: its partition, or all months of all lists of its range.

    Only months of `lists` are returned; others have no partitions any more.
    """
    try:
        first, last = (ListMonth.parse(tags.get(PARTITION) or tags.get(tag, "")) for tag in RANGE)
    except ValueError:  # the run of another project, with other partitions
        return
    for name in lists:
        if first.list_name <= name <= last.list_name:
            for month in months_between(first.month, last.month):
                yield ListMonth(name, month)


#: Beginning of the line that Dagster logs for each step after a failed one; it is left out.
_NOT_EXECUTED = "Dependencies for step "

#: Attribute of a log record that contains a MonthFinished.
_FINISHED = "mail_assets_month_finished"


class MonthFinished(NamedTuple):
    """Event: an asset was made for a month; if nothing changed, `counts` are of an earlier run."""

    asset: str
    month: ListMonth
    counts: Counts
    changed: bool


class LogLine(NamedTuple):
    """A line of a run's log: seconds since 1970, level of `logging`, text."""

    seconds: float
    level: int
    text: str

    def __str__(self) -> str:
        """Return "HH:MM:SS text" in local time; levels other than INFO are named."""
        level = (
            f"{logging.getLevelName(self.level).lower()}: " if self.level != logging.INFO else ""
        )
        return f"{time.strftime('%H:%M:%S', time.localtime(self.seconds))} {level}{self.text}"


#: Receives the log of a run, in the thread of the run.
Emit = Callable[[MonthFinished | LogLine], None]


def log_month(log: logging.Logger, finished: MonthFinished, text: str) -> None:
    """Log a finished month; the receiver of the log gets it as an event too."""
    log.info(text, extra={_FINISHED: finished})


def build_run_logger(emit: Emit) -> dg.LoggerDefinition:
    """Return a logger that passes each line to `emit`, without the prefix that Dagster adds."""

    @dg.logger(config_schema={}, description="Passes the log on to the command that made the run.")
    def run_log(context: dg.InitLoggerContext) -> logging.Logger:
        logger = logging.Logger("mail_assets")
        logger.addHandler(_Emitter(emit))
        return logger

    return run_log


class _Emitter(logging.Handler):
    def __init__(self, emit: Emit) -> None:
        super().__init__()
        self._emit = emit

    def emit(self, record: logging.LogRecord) -> None:
        """Pass a record to `emit`; of Dagster's own events, pass only tracebacks of failures."""
        dagster_fields = getattr(record, "dagster_meta", None) or {}
        if finished := getattr(record, _FINISHED, None):
            self._emit(finished)
        if event := dagster_fields.get("dagster_event"):
            if stack := _traceback_of(event):
                self._emit(LogLine(record.created, logging.DEBUG, stack))
        elif record.levelno >= logging.INFO:
            text = dagster_fields.get("orig_message") or record.getMessage()
            if not text.startswith(_NOT_EXECUTED):
                self._emit(LogLine(record.created, record.levelno, text))


def _traceback_of(event: dg.DagsterEvent) -> str:
    if event.event_type != dg.DagsterEventType.STEP_FAILURE:
        return ""
    data = event.step_failure_data
    kept = data.user_failure_data.metadata.get(TRACEBACK) if data.user_failure_data else None
    return str(kept.value) if kept else str(data.error.to_string() if data.error else "")
