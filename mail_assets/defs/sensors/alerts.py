"""The sensor that posts failed months, with their reasons, to a webhook.

Dagster's run_failure_sensor is not used: it moves on if its function fails (1.13.27), so that a
message to a webhook that is down would be lost.
https://docs.dagster.io/guides/automate/sensors
"""

from collections.abc import Iterator
from itertools import islice
from typing import Final

import dagster as dg

from mail_assets.defs.failures import RunFailure, read_failures
from mail_assets.defs.resources import AlertsResource
from mail_assets.http.requests import WebhookError, escape

#: Runs that one tick looks at, successful ones included; the next tick goes on after them.
BATCH = 100

#: Keep a message below the 4,000 characters of Slack.
MOST_FAILURES, LONGEST_REASON = 10, 300

#: Ends of runs: a successful run may have failed checks.
ENDS: Final = (dg.DagsterEventType.RUN_FAILURE, dg.DagsterEventType.RUN_SUCCESS)


def build_failure_alerts(enabled: bool) -> dg.SensorDefinition:
    """Build the sensor; it is on from the start if MAIL_ALERT_URL is set."""
    status = dg.DefaultSensorStatus.RUNNING if enabled else dg.DefaultSensorStatus.STOPPED

    @dg.sensor(
        minimum_interval_seconds=60,
        default_status=status,
        description="Post failed months and checks, with their reasons, to MAIL_ALERT_URL.",
    )
    def failure_alerts(
        context: dg.SensorEvaluationContext, alerts: AlertsResource
    ) -> dg.SkipReason:
        """Post one message for each run that has failed, or that has a failed check of severity
        ERROR, since the last tick. If the webhook fails, the next tick tries again.
        """
        if not alerts.url:
            return dg.SkipReason("MAIL_ALERT_URL is not set")
        if context.cursor is None:
            context.update_cursor(str(_newest(context.instance)))
            return dg.SkipReason("from now on, failed runs are posted to MAIL_ALERT_URL")
        posted = 0
        for run_id, storage_id in finished_runs(context.instance, int(context.cursor)):
            try:
                posted += _alert(context.instance, alerts, run_id)
            except WebhookError as error:
                context.log.error(f"MAIL_ALERT_URL: {error}; run {run_id} is posted later")
                if not posted:  # a tick that raises keeps its old cursor and would post twice
                    raise
                break
            context.update_cursor(str(storage_id))
        return dg.SkipReason(f"runs posted: {posted}" if posted else "no failed runs")

    return failure_alerts


def finished_runs(instance: dg.DagsterInstance, after: int) -> Iterator[tuple[str, int]]:
    """Yield the id of each run that ended after an event, in order, and the event of its end."""
    records = [
        record
        for kind in ENDS
        for record in instance.fetch_run_status_changes(
            dg.RunStatusChangeRecordsFilter(kind, after_storage_id=after),
            limit=BATCH,
            ascending=True,
        ).records
    ]
    for record in islice(sorted(records, key=lambda record: record.storage_id), BATCH):
        yield record.run_id, record.storage_id


def alert_text(job: str, run: str, failures: list[RunFailure]) -> str:
    """Return the message about a run in Slack's markup; `run` is in that markup already."""
    name = "materialization" if job.startswith("__") else job  # Dagster's own name is internal
    lines = [f"*{escape(name)}* failed, {run}:"]
    for failure in failures[:MOST_FAILURES]:
        reason = " ".join(failure.reason.split())
        if len(reason) > LONGEST_REASON:
            reason = f"{reason[:LONGEST_REASON]}..."
        lines.append(f"• {escape(failure.subject)}: {escape(reason)}")
    if len(failures) > MOST_FAILURES:
        lines.append(f"and {len(failures) - MOST_FAILURES} more")
    return "\n".join(lines)


def _alert(instance: dg.DagsterInstance, alerts: AlertsResource, run_id: str) -> bool:
    """Post the failures of a run; return whether it has any."""
    failures, run = read_failures(instance, run_id), instance.get_run_by_id(run_id)
    if not failures or run is None:  # somebody deleted the run
        return False
    alerts.post(alert_text(run.job_name, alerts.run_link(run_id), failures))
    return True


def _newest(instance: dg.DagsterInstance) -> int:
    newest = (instance.fetch_run_status_changes(kind, limit=1).records for kind in ENDS)
    return max((record.storage_id for records in newest for record in records), default=0)
