"""The runs of the instance: in flight or abandoned, failed months, reasons, and the log of a run.

A command of ours makes its runs in its own process, which Dagster does not know. After a kill,
Dagster would show such a run as started for a day. So each such run has a tag with its process.

https://docs.dagster.io/api/dagster/internals (DagsterInstance.get_run_records)
https://docs.dagster.io/guides/log-debug/logging
"""

import datetime as dt
import logging
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import dagster as dg

from mail_assets.defs.partitions import asset_key
from mail_assets.month import ListMonth, months_between
from mail_assets.processes.machine import has_ended, name_process
from mail_assets.tables.partitions import Counts

IN_FLIGHT = (
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
)

#: Tag of a run that is made by a process and ends with it.
PROCESS = "mail_assets/process"


def process_tag() -> dict[str, str]:
    """Return the tag of a run that this process makes."""
    return {PROCESS: name_process()}


def abandoned_runs(instance: dg.DagsterInstance) -> list[dg.DagsterRun]:
    """Return the runs whose process was killed on this machine."""
    return [run for run in _unfinished(instance) if _is_abandoned(run)]


def cancel_abandoned(instance: dg.DagsterInstance) -> None:
    """Cancel the runs whose process was killed; a backfill finds by itself what they left."""
    for run in abandoned_runs(instance):
        instance.report_run_canceled(run, "The process of this run was killed.")


def _unfinished(instance: dg.DagsterInstance) -> list[dg.DagsterRun]:
    return [*instance.get_runs(dg.RunsFilter(statuses=IN_FLIGHT))]


def _is_abandoned(run: dg.DagsterRun) -> bool:
    return PROCESS in run.tags and has_ended(run.tags[PROCESS])


#: Tags of a run: its partition, or the first and last one of its range.
PARTITION = "dagster/partition"
RANGE = ("dagster/asset_partition_range_start", "dagster/asset_partition_range_end")

#: Failures older than this do not count: a month that nobody mends is then tried once more.
MEMORY = dt.timedelta(days=30)

#: Pauses before a failed month is tried again. They double up to a day: a server that is down for
#: a week costs 14 runs instead of 2,000.
FIRST_PAUSE = dt.timedelta(minutes=10)
LONGEST_PAUSE = dt.timedelta(days=1)


#: The assets of a month, each before the assets that it is made from.
LAST_FIRST = tuple(
    asset_key(name)
    for name in (
        *("vectors", "embeddings", "chunks", "patches", "words", "messages", "mbox_archives"),
    )
)

#: Events read at once.
MOST_IDS = 1_000


class Failures(NamedTuple):
    """Failed runs of a month since it was last made: number, id of the last, and its end."""

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
    """Return the months of runs of any job that are queued or running, ranges included."""
    runs = (run for run in _unfinished(instance) if not _is_abandoned(run))
    return {month for run in runs for month in months_of_tags(run.tags, lists)}


def failed_months(
    instance: dg.DagsterInstance, job: str | None, lists: Collection[str], now: dt.datetime
) -> dict[ListMonth, Failures]:
    """Return the months that runs of a job (None: of any job) failed to make and no run has since.

    A failed range counts for the months that it names as failed. If it names none it counts for
    all: no month got the assets after the failed step. Any run may have made a month since, also
    one that somebody started by hand. Canceled runs do not count: somebody did not want them.
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
    """Return the last asset of a month that a run was to make."""
    selected = run.asset_selection or ()
    return next((asset for asset in LAST_FIRST if asset in selected), LAST_FIRST[0])


def _last_made(
    instance: dg.DagsterInstance, runs: Sequence[tuple[dg.RunRecord, set[ListMonth]]]
) -> dict[tuple[dg.AssetKey, str], dg.EventLogRecord]:
    """Return the last materializations of the assets of some runs, by asset and partition.

    It takes two look-ups by index for each asset, for any number of runs that succeeded since.
    """
    wanted: dict[dg.AssetKey, set[str]] = defaultdict(set)
    for record, months in runs:
        wanted[_last_asset(record.dagster_run)] |= {month.key for month in months}
    kind = dg.DagsterEventType.ASSET_MATERIALIZATION
    made = {}
    for asset, keys in wanted.items():
        if not keys:  # for Dagster an empty set means all
            continue
        ids = [*instance.get_latest_storage_id_by_partition(asset, kind, keys).values()]
        for first in range(0, len(ids), MOST_IDS):
            some = dg.AssetRecordsFilter(asset, storage_ids=ids[first : first + MOST_IDS])
            for event in instance.fetch_materializations(some, limit=MOST_IDS).records:
                made[asset, str(event.partition_key)] = event
    return made


def _is_later(made: dg.EventLogRecord | None, record: dg.RunRecord) -> bool:
    """Return whether another run has made something since a run began.

    The beginning counts, not the end: a killed process is noticed a day later.
    """
    if made is None or made.run_id == record.dagster_run.run_id:
        return False
    return made.timestamp > (record.start_time or record.create_timestamp.timestamp())


def _failed_of(
    instance: dg.DagsterInstance, record: dg.RunRecord, months: set[ListMonth]
) -> set[ListMonth]:
    """Return the failed months of a run: all, unless every reason names one of them."""
    if len(months) == 1:
        return months
    named = {failure.subject for failure in read_failures(instance, record.dagster_run.run_id)}
    failed = {month for month in months if str(month) in named}
    return failed if failed and len(failed) == len(named) else months


def run_ended(record: dg.RunRecord) -> dt.datetime:
    """Return when a run ended, or was last updated if it never started."""
    if record.end_time is not None:
        return dt.datetime.fromtimestamp(record.end_time, dt.UTC)
    return record.update_timestamp.replace(tzinfo=dt.UTC)


def months_of_tags(tags: Mapping[str, str], lists: Collection[str]) -> Iterator[ListMonth]:
    """Yield the months of a run: one, or the rectangle of lists and months of its range.

    Only months of `lists`: others have no partitions any more.
    """
    if ends := _ends_of_tags(tags):
        first, last = ends
        for name in lists:
            if first.list_name <= name <= last.list_name:
                for month in months_between(first.month, last.month):
                    yield ListMonth(name, month)


def _ends_of_tags(tags: Mapping[str, str]) -> tuple[ListMonth, ListMonth] | None:
    """Return the ends of a run's range, or None if its partitions are no months of lists.

    The instance may have runs of other projects, whose partitions may be days.
    """
    first, last = (tags.get(PARTITION) or tags.get(tag, "") for tag in RANGE)
    try:
        return ListMonth.parse(first), ListMonth.parse(last)
    except ValueError:
        return None


class RunFailure(NamedTuple):
    """Failure in a run: its subject, a month ("LIST YYYY-MM"), step or asset, and its reason."""

    subject: str
    reason: str


def read_failures(instance: dg.DagsterInstance, run_id: str) -> list[RunFailure]:
    """Return the failures of a run; a successful run may have failed checks.

    Checks of severity WARN do not count.
    """
    kinds = {
        dg.DagsterEventType.STEP_FAILURE,
        dg.DagsterEventType.ASSET_CHECK_EVALUATION,
        dg.DagsterEventType.RUN_FAILURE,
    }
    records = instance.get_records_for_run(run_id, of_type=kinds).records
    events = [record.event_log_entry.dagster_event for record in records]
    failures = [failure for event in events if event for failure in _failures_of(event)]
    if failures:
        return failures
    # no step failed: the worker died, the run took too long, or the code location does not load
    ends = [event for event in events if event and event.is_run_failure]
    return [RunFailure("run", event.message or "it failed") for event in ends]


def reason_of(event: dg.DagsterEvent) -> str:
    """Return why a step failed or a check stopped a run; "" for any other event."""
    if event.event_type == dg.DagsterEventType.ASSET_CHECK_EVALUATION:
        check = event.asset_check_evaluation_data
        stopped = not check.passed and check.severity == dg.AssetCheckSeverity.ERROR
        return f"check {check.check_name} {check.description}" if stopped else ""
    if event.event_type == dg.DagsterEventType.STEP_FAILURE:
        return _step_reason(event)
    return ""


def first_reason(result: dg.ExecuteInProcessResult) -> str:
    """Return why a run failed: the check that stopped it, or its first failed step."""
    return next(filter(None, map(reason_of, result.all_events)), "the run failed")


def was_interrupted(result: dg.ExecuteInProcessResult) -> bool:
    """Return whether Ctrl-C ended a run; with raise_on_error=False Dagster does not raise it."""
    failures = [
        event.job_failure_data
        for event in result.all_events
        if event.event_type == dg.DagsterEventType.RUN_FAILURE
    ]
    reasons = [failure.failure_reason for failure in failures if failure.failure_reason]
    return any(reason.value == "UNEXPECTED_TERMINATION" for reason in reasons)


def _step_reason(event: dg.DagsterEvent) -> str:
    data = event.step_failure_data
    failure, error = data.user_failure_data, _own_error(data.error)
    said = (failure.description if failure else None) or (error.message if error else None)
    return (said or "failed").strip()


def _own_error(error: Any) -> Any:
    """Return the error that was raised, without Dagster's errors around it.

    The cause of our own errors is left out: it names neither the subject nor the remedy.
    """
    while error and error.cause and error.cls_name and error.cls_name.startswith("Dagster"):
        error = error.cause
    return error


def _failures_of(event: dg.DagsterEvent) -> Iterator[RunFailure]:
    if event.event_type == dg.DagsterEventType.ASSET_CHECK_EVALUATION:
        yield from _check_failures(event.asset_check_evaluation_data)
    elif event.event_type == dg.DagsterEventType.STEP_FAILURE:
        yield from _step_failures(event)


def _check_failures(check: dg.AssetCheckEvaluation) -> Iterator[RunFailure]:
    if check.passed or check.severity != dg.AssetCheckSeverity.ERROR:
        return
    months = check.metadata.get("months")
    if not isinstance(months, dg.TableMetadataValue):
        reason = check.description or "failed"
        yield RunFailure(check.asset_key.to_user_string(), f"check {check.check_name}: {reason}")
        return
    for record in months.records:
        about = {name: x for name, x in record.data.items() if name not in ("month", "reason")}
        figures = ", ".join(f"{name} {x}" for name, x in about.items())
        reason = f"{record.data['reason']}; " if "reason" in record.data else ""
        month = ListMonth.parse(str(record.data["month"]))
        yield RunFailure(str(month), f"check {check.check_name} failed: {reason}{figures}")


def _step_failures(event: dg.DagsterEvent) -> Iterator[RunFailure]:
    data = event.step_failure_data
    failure, error = data.user_failure_data, _own_error(data.error)
    months = failure.metadata.get("failed") if failure else None
    if isinstance(months, dg.JsonMetadataValue) and isinstance(months.value, Mapping):
        for key, reason in months.value.items():
            yield RunFailure(str(ListMonth.parse(key)), reason)
        return
    if error and error.cls_name == "DagsterAssetCheckFailedError":
        return  # the event of the check has the reason
    yield RunFailure(event.step_key or "step", _step_reason(event))


#: Attribute of a log record that has a MonthFinished.
_FINISHED = "mail_assets_month_finished"


class MonthFinished(NamedTuple):
    """Event: an asset is made for a month. If nothing changed the counts are of an earlier run."""

    asset: str
    month: ListMonth
    counts: Counts
    changed: bool


class LogLine(NamedTuple):
    """Line of a run's log: seconds since 1970, level of `logging`, text."""

    seconds: float
    level: int
    text: str

    def __str__(self) -> str:
        """Return "HH:MM:SS text" in local time, with the level of warnings and errors."""
        level = f"{logging.getLevelName(self.level).lower()}: " if self.level > logging.INFO else ""
        return f"{time.strftime('%H:%M:%S', time.localtime(self.seconds))} {level}{self.text}"


#: Receives the log of a run, in the thread of the run.
Emit = Callable[[MonthFinished | LogLine], None]


def log_month(log: logging.Logger, finished: MonthFinished, text: str) -> None:
    """Log a finished month, and pass it on to the receiver of the log."""
    log.info(text, extra={_FINISHED: finished})


def build_run_logger(emit: Emit) -> dg.LoggerDefinition:
    """Return a logger that passes on every line, without the prefix that Dagster adds."""

    @dg.logger(config_schema={}, description="Passes the log on to whoever started the run.")
    def run_log(context: dg.InitLoggerContext) -> logging.Logger:
        logger = logging.Logger("mail_assets")
        logger.addHandler(_Emitter(emit))
        return logger

    return run_log


class _Emitter(logging.Handler):
    """Turns log records into values.

    Raises KeyboardInterrupt if Dagster is about to retry an interrupted step: its retry policy
    takes Ctrl-C for a fault.
    """

    def __init__(self, emit: Emit) -> None:
        super().__init__()
        self._emit = emit

    def emit(self, record: logging.LogRecord) -> None:
        """Pass one record on."""
        dagster_fields = getattr(record, "dagster_meta", None) or {}
        event = dagster_fields.get("dagster_event")
        if event and event.event_type == dg.DagsterEventType.STEP_UP_FOR_RETRY:
            _stop_if_interrupted(event)
        if finished := getattr(record, _FINISHED, None):
            self._emit(finished)
        if record.levelno < logging.INFO:  # Dagster's own bookkeeping
            return
        text = dagster_fields.get("orig_message") or record.getMessage()
        self._emit(LogLine(record.created, record.levelno, text))


def _stop_if_interrupted(event: dg.DagsterEvent) -> None:
    error: Any = event.step_retry_data.error
    while error:
        if error.cls_name in ("KeyboardInterrupt", "DagsterExecutionInterruptedError"):
            raise KeyboardInterrupt
        error = error.cause
