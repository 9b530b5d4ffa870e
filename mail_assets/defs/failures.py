"""Failures of steps: reporting them in three lines, and reading the failures of a run.

Dagster shows an exception with about 80 lines of its own stack frames. Our failures are shown as
text: the months, the reason, and the command that makes the months. The traceback is in the
metadata of the failure, which the UI and `mail-assets backfill --verbose` show.
https://docs.dagster.io/guides/build/ops (dagster.Failure)
"""

import re
import traceback
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import dagster as dg
from dagster._core.errors import DagsterUserCodeProcessError
from dagster_shared.error import SerializableErrorInfo

from mail_assets.errors import name_some
from mail_assets.month import ListMonth
from mail_assets.operations.examine import BACKFILL, span
from mail_assets.steps.fetch_archive import REMEDY

#: Metadata of a failure, and of a step's output if some months failed: key of a month -> reason,
#: and the traceback of the first failure.
FAILED, TRACEBACK = "failed", "traceback"

#: Matches the command in a reason that makes a damaged file of the month again.
_REBUILD = re.compile(rf"`({BACKFILL} --rebuild(?: --only \w+)?)(?:` for this month| --list )")

#: Most months of a list that are named in a line.
MOST_NAMED = 12


class StepFailedError(DagsterUserCodeProcessError, dg.Failure):
    """A failure that Dagster shows as text, without a stack, and does not retry.

    The base class is for errors of other processes: Dagster shows its error infos unchanged. It is
    private to Dagster (1.13.27); a test covers what is shown.
    """

    def __init__(self, text: str, metadata: Mapping[str, Any] | None = None) -> None:
        infos = [_info(text)]
        super().__init__(  # type: ignore[no-untyped-call]
            text, metadata or {}, False, user_code_process_error_infos=infos
        )


class StepRetryError(DagsterUserCodeProcessError, dg.RetryRequested):
    """A request to retry a step, shown as text like a StepFailedError."""

    def __init__(self, text: str, retries: dg.RetryPolicy, attempt: int) -> None:
        infos = [_info(text)]
        super().__init__(user_code_process_error_infos=infos)  # type: ignore[no-untyped-call]
        self.max_retries = retries.max_retries
        self.seconds_to_wait = retries.calculate_delay(attempt)


def _info(text: str) -> SerializableErrorInfo:
    return SerializableErrorInfo(f"{text}\n", [], None)


def fail_step(error: BaseException, text: str = "") -> StepFailedError:
    """Return the failure for a step that ended by an expected error, with the text of the error."""
    said = text or " ".join(str(error).split())
    return StepFailedError(said, {TRACEBACK: dg.MetadataValue.text(format_traceback(error))})


def fail_months(reasons: Mapping[ListMonth, str], traceback_text: str = "") -> StepFailedError:
    """Return the failure of a step that could not make some months."""
    metadata: dict[str, Any] = {
        FAILED: dg.MetadataValue.json({one.key: reason for one, reason in reasons.items()})
    }
    if traceback_text:
        metadata[TRACEBACK] = dg.MetadataValue.text(traceback_text)
    return StepFailedError(describe_failed(reasons), metadata)


def reason_of_month(month: ListMonth, error: Exception) -> str:
    """Return the reason why a month failed, without the month's name."""
    name = f"list {month.list_name}, month {month.month}: "
    return str(error).removeprefix(f"{month}: ").removeprefix(name)


def format_traceback(error: BaseException) -> str:
    """Return the traceback of an error and its causes."""
    return "".join(traceback.format_exception(error)).rstrip()


def describe_failed(reasons: Mapping[ListMonth, str]) -> str:
    """Return three lines for months that failed alike: months, reason, command to make them."""
    groups: dict[tuple[str, str], list[ListMonth]] = {}
    for month, reason in reasons.items():
        groups.setdefault((month.list_name, reason), []).append(month)
    return "\n".join(
        line
        for (_, reason), months in groups.items()
        for line in (
            name_months(months),
            " ".join(reason.removesuffix(REMEDY).split()),
            advise(months, reason),
        )
    )


def name_months(months: Sequence[ListMonth]) -> str:
    """Return the months of one list, "LIST YYYY-MM, YYYY-MM"."""
    return f"{months[0].list_name} {name_some((one.month for one in months), MOST_NAMED)}"


def advise(months: Sequence[ListMonth], reason: str) -> str:
    """Return the line with the command that makes months of one list again."""
    when = "when that is repaired"
    if REMEDY in reason:
        when = "if that is meant"
    elif reason.startswith(CHECK) or find_rebuild(reason):
        when = "to make it again"
    return f"{when}, run: {find_command(months, reason)}"


def find_command(months: Sequence[ListMonth], reason: str) -> str:
    """Return the command that makes months of one list again after they failed for `reason`."""
    _, command = span(months[0].list_name, months)
    if REMEDY in reason:
        return f"{command} --allow-loss"
    if reason.startswith(CHECK):
        # --rebuild, because the records are unchanged: steps would write nothing without it
        return command.replace(BACKFILL, f"{BACKFILL} --rebuild", 1)
    if again := find_rebuild(reason):
        return f"{command.replace(BACKFILL, again, 1)} && {command}"
    return command


def find_rebuild(reason: str) -> str:
    """Return the command, without months, that makes the damaged file of a reason again, or ""."""
    named = _REBUILD.search(reason)
    return named[1] if named else ""


#: Beginning of the reason of a month that a check has stopped.
CHECK = "check "

#: The check of every asset with months that fails a run if it could not make some of them.
MONTHS_MADE = "months_made"


class RunFailure(NamedTuple):
    """A failure in a run: its subject (a month "LIST YYYY-MM", a step or an asset) and reason."""

    subject: str
    reason: str


def read_failures(instance: dg.DagsterInstance, run_id: str) -> list[RunFailure]:
    """Return the failures of a run, including failed checks, except those of severity WARN."""
    kinds = {
        dg.DagsterEventType.STEP_FAILURE,
        dg.DagsterEventType.ASSET_CHECK_EVALUATION,
        dg.DagsterEventType.RUN_FAILURE,
    }
    records = instance.get_records_for_run(run_id, of_type=kinds).records
    events = [record.event_log_entry.dagster_event for record in records]
    failures: list[RunFailure] = []
    for event in filter(None, events):
        if event.event_type == dg.DagsterEventType.ASSET_CHECK_EVALUATION:
            failures += _check_failures(event.asset_check_evaluation_data)
        elif event.event_type == dg.DagsterEventType.STEP_FAILURE:
            failures += _step_failures(event)
    if failures:  # the first of each subject: later ones repeat the reason
        return [*{one.subject: one for one in reversed(failures)}.values()][::-1]
    # no step failed: the worker died, the run took too long, or the code location does not load
    ends = [event for event in events if event and event.is_run_failure]
    return [RunFailure("run", event.message or "it failed") for event in ends]


def first_reason(result: dg.ExecuteInProcessResult) -> str:
    """Return the reason why a run failed: the check that stopped it, or the first failed step."""
    for event in result.all_events:
        if event.event_type == dg.DagsterEventType.STEP_FAILURE:
            return _step_reason(event)
        if event.event_type == dg.DagsterEventType.ASSET_CHECK_EVALUATION:
            check = event.asset_check_evaluation_data
            if stops(check):
                return f"check {check.check_name} {check.description}"
    return "the run failed"


def stops(check: dg.AssetCheckEvaluation) -> bool:
    """Return whether an evaluation fails a run or a month: it failed, and is no warning."""
    return not check.passed and check.severity == dg.AssetCheckSeverity.ERROR


def was_interrupted(result: dg.ExecuteInProcessResult) -> bool:
    """Return whether Ctrl-C ended a run; with raise_on_error=False Dagster does not raise."""
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

    Causes of our own errors are not followed: they name neither the subject nor the remedy.
    """
    while error and error.cause and error.cls_name and error.cls_name.startswith("Dagster"):
        error = error.cause
    return error


def check_reasons(check: dg.AssetCheckEvaluation) -> dict[ListMonth, str]:
    """Return month -> reason of a failed evaluation; {} if it passed or is a warning."""
    months = check.metadata.get("months")
    if not stops(check) or not isinstance(months, dg.TableMetadataValue):
        return {}
    return {
        ListMonth.parse(str(record.data["month"])): reason_of_row(check.check_name, record.data)
        for record in months.records
    }


def reason_of_row(check_name: str, row: Mapping[str, Any]) -> str:
    """Return the reason why a month failed, from its row in the metadata of a check."""
    if check_name == MONTHS_MADE:
        return str(row["reason"])
    figures = ", ".join(f"{name} {x}" for name, x in row.items() if name not in ("month", "reason"))
    reason = f"{row['reason']}; " if "reason" in row else ""
    return f"{CHECK}{check_name} failed: {reason}{figures}"


def _check_failures(check: dg.AssetCheckEvaluation) -> Iterator[RunFailure]:
    if not stops(check):
        return
    reasons = check_reasons(check)
    for month, reason in reasons.items():
        yield RunFailure(str(month), reason)
    if not reasons:
        reason = f"{CHECK}{check.check_name}: {check.description or 'failed'}"
        yield RunFailure(check.asset_key.to_user_string(), reason)


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
