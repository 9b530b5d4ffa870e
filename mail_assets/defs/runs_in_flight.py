"""Runs that are queued or running, and those among them whose process was killed.

A run of the command line is worked on by the command's own process, which Dagster does not know:
it would call such a run started for a day. So the run carries the name of its process.
"""

import dagster as dg

from mail_assets.processes.identity import has_ended, name_process

IN_FLIGHT = (
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
)

#: The tag of a run that a process works on which the run does not outlive.
PROCESS = "mail_assets/process"


def process_tag() -> dict[str, str]:
    """Return the tag of a run that this process works on."""
    return {PROCESS: name_process()}


def runs_in_flight(instance: dg.DagsterInstance) -> list[dg.DagsterRun]:
    """Return the runs that are queued or running."""
    return [run for run in _unfinished(instance) if not _is_abandoned(run)]


def abandoned_runs(instance: dg.DagsterInstance) -> list[dg.DagsterRun]:
    """Return the runs whose process was killed on this machine."""
    return [run for run in _unfinished(instance) if _is_abandoned(run)]


def cancel_abandoned(instance: dg.DagsterInstance) -> None:
    """End the runs whose process was killed. Not as failed: what they left is found by itself."""
    for run in abandoned_runs(instance):
        instance.report_run_canceled(run, "The process of this run was killed.")


def _unfinished(instance: dg.DagsterInstance) -> list[dg.DagsterRun]:
    return [*instance.get_runs(dg.RunsFilter(statuses=IN_FLIGHT))]


def _is_abandoned(run: dg.DagsterRun) -> bool:
    return PROCESS in run.tags and has_ended(run.tags[PROCESS])
