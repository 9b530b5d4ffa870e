"""Why a run failed: its months, steps and checks, each with its reason, from the event log."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import dagster as dg

from mail_assets.month import ListMonth


class RunFailure(NamedTuple):
    """One thing that failed in a run, a month ("LIST YYYY-MM"), a step or an asset, and why."""

    subject: str
    reason: str


def read_failures(instance: dg.DagsterInstance, run_id: str) -> list[RunFailure]:
    """Return what failed in a run, failed checks of a successful run included.

    A check of severity WARN does not count.
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
    # no step has failed: its worker died, it took too long, its code location does not load
    ends = [event for event in events if event and event.is_run_failure]
    return [RunFailure("run", event.message or "it failed") for event in ends]


def reason_of(event: dg.DagsterEvent) -> str:
    """Return why a step failed or a check stopped a run; "" where the event is of neither."""
    if event.event_type == dg.DagsterEventType.ASSET_CHECK_EVALUATION:
        check = event.asset_check_evaluation_data
        stopped = not check.passed and check.severity == dg.AssetCheckSeverity.ERROR
        return f"check {check.check_name} {check.description}" if stopped else ""
    if event.event_type == dg.DagsterEventType.STEP_FAILURE:
        return _step_reason(event)
    return ""


def _step_reason(event: dg.DagsterEvent) -> str:
    data = event.step_failure_data
    failure, error = data.user_failure_data, _own_error(data.error)
    said = (failure.description if failure else None) or (error.message if error else None)
    return (said or "failed").strip()


def _own_error(error: Any) -> Any:
    """Return what was raised; what Dagster wraps it in says only where.

    The cause of our own error is not looked for: it names neither the thing nor the remedy.
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
        return  # the check has said more
    yield RunFailure(event.step_key or "step", _step_reason(event))
