"""Dagster's launcher for Celery, which also notices that the worker of a run is gone.

Celery notes once that a task has started and never looks again. So a run whose worker was killed,
or whose machine died, stays STARTED under dagster-celery (0.29.27) until `max_runtime_seconds` ends
it. Here the worker is asked whether it still has the task; if not, the run has failed, and
`run_retries` of dagster.yaml launches it again.
It relies on private modules of Dagster (1.13.27); a test covers it.
"""

from typing import Any

import dagster as dg
from dagster._core.launcher.base import CheckRunHealthResult, WorkerStatus
from dagster_celery.launcher import CeleryRunLauncher
from dagster_celery.tags import DAGSTER_CELERY_TASK_ID_TAG

#: Seconds that a worker has to answer. Its main process does, at once, while its child runs the
#: task; on a machine that swaps it may take seconds.
PATIENCE = 20.0


class MailCeleryLauncher(CeleryRunLauncher):
    """Launches runs as Celery tasks; deploy/celery/dagster.yaml names it."""

    def check_run_worker_health(self, run: dg.DagsterRun) -> CheckRunHealthResult:
        """Return what became of the task of a started run, as Dagster's daemon asks each minute."""
        health = super().check_run_worker_health(run)
        if health.status in (WorkerStatus.SUCCESS, WorkerStatus.FAILED):
            return health
        task_id = run.tags[DAGSTER_CELERY_TASK_ID_TAG]
        if self._is_held(task_id):
            return CheckRunHealthResult(WorkerStatus.RUNNING)
        return CheckRunHealthResult(WorkerStatus.FAILED, f"no worker has Celery task {task_id}")

    def _is_held(self, task_id: str) -> bool:
        """Ask the worker that has started a task, or all where Redis has forgotten which."""
        started: Any = self.celery.AsyncResult(task_id).info
        worker = started.get("hostname") if isinstance(started, dict) else None
        asked = self.celery.control.inspect([worker] if worker else None, timeout=PATIENCE)
        answers = asked.query_task(task_id) or {}
        return any(task_id in tasks for tasks in answers.values())
