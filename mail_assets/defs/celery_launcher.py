"""A run launcher for Celery that detects that the worker of a run was killed.

Celery records only once that a task has started. So with dagster-celery (0.29.27), a run whose
worker was killed stays STARTED until `max_runtime_seconds` ends it. This launcher asks the worker
whether it has the task. If not, the run has failed, and `run_retries` of dagster.yaml launches it
again. It uses private modules of Dagster (1.13.27); a test covers it.
"""

from typing import Any

import dagster as dg
from dagster._core.launcher.base import CheckRunHealthResult, WorkerStatus
from dagster_celery.launcher import CeleryRunLauncher
from dagster_celery.tags import DAGSTER_CELERY_TASK_ID_TAG

#: Seconds to wait for the answer of a worker. Its main process answers at once while a child runs
#: the task, but not on a machine that swaps.
PATIENCE = 20.0


class MailCeleryLauncher(CeleryRunLauncher):
    """Launches runs as Celery tasks; deploy/celery/dagster.yaml names it."""

    def check_run_worker_health(self, run: dg.DagsterRun) -> CheckRunHealthResult:
        """Return the state of the task of a started run; the daemon asks every minute."""
        health = super().check_run_worker_health(run)
        if health.status in (WorkerStatus.SUCCESS, WorkerStatus.FAILED):
            return health
        task_id = run.tags[DAGSTER_CELERY_TASK_ID_TAG]
        if self._is_held(task_id):
            return CheckRunHealthResult(WorkerStatus.RUNNING)
        return CheckRunHealthResult(WorkerStatus.FAILED, f"no worker has Celery task {task_id}")

    def _is_held(self, task_id: str) -> bool:
        """Ask the worker that started a task, or all workers if Redis no longer knows which."""
        started: Any = self.celery.AsyncResult(task_id).info
        worker = started.get("hostname") if isinstance(started, dict) else None
        asked = self.celery.control.inspect([worker] if worker else None, timeout=PATIENCE)
        answers = asked.query_task(task_id) or {}
        return any(task_id in tasks for tasks in answers.values())
