"""The launcher for Celery marks a run as failed as soon as no worker has it."""

import gc
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.launcher.base import WorkerStatus
from dagster_celery.tags import DAGSTER_CELERY_TASK_ID_TAG

from mail_assets.defs import celery_launcher
from mail_assets.defs.celery_launcher import MailCeleryLauncher
from mail_assets_tests.ports import find_free_port

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        shutil.which("redis-server") is None, reason="redis-server is not installed"
    ),
    # redis-py and kombu leave sockets to the garbage collector
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

BIN = Path(sys.executable).parent


@pytest.fixture
def redis_url(tmp_path: Path) -> Iterator[str]:
    port = find_free_port()
    command = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--dir", str(tmp_path)]
    with _ended(subprocess.Popen(command, stdout=subprocess.PIPE, text=True)) as server:
        assert server.stdout
        assert any("Ready to accept connections" in line for line in server.stdout)
        yield f"redis://127.0.0.1:{port}/0"


@pytest.fixture
def launcher(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[MailCeleryLauncher]:
    # a missing worker never answers
    monkeypatch.setattr(celery_launcher, "PATIENCE", 1.0)
    yield MailCeleryLauncher(default_queue="dagster", broker=redis_url, backend=redis_url)
    gc.collect()  # collects open sockets, which would be errors in other tests


@contextmanager
def _ended(process: "subprocess.Popen[str]") -> Iterator["subprocess.Popen[str]"]:
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@contextmanager
def worker(redis_url: str, name: str) -> Iterator["subprocess.Popen[str]"]:
    """A ready worker with the options of the profile, and another task."""
    command = [
        *(str(BIN / "celery"), "--app", "mail_assets_tests.defs.celery_tasks", "worker"),
        *("--concurrency", "1", "--prefetch-multiplier", "1", "--disable-prefetch"),
        *("--queues", "dagster", "--loglevel", "INFO", "--hostname", name),
    ]
    environ = {
        **os.environ,
        "CELERY_BROKER_URL": redis_url,
        "CELERY_RESULT_BACKEND": redis_url,
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }
    with _ended(
        subprocess.Popen(
            command, env=environ, stderr=subprocess.PIPE, text=True, start_new_session=True
        )
    ) as process:
        assert process.stderr
        assert any("ready." in line for line in process.stderr)
        yield process
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)


def start_run(launcher: MailCeleryLauncher, path: Path) -> dg.DagsterRun:
    """Send the task of a run; return the run when its worker has started it."""
    sent = launcher.celery.send_task("wait_for_file", [str(path)], queue="dagster")
    return dg.DagsterRun(
        job_name="refresh", run_id="1", tags={DAGSTER_CELERY_TASK_ID_TAG: str(sent.id)}
    )


def wait(
    launcher: MailCeleryLauncher, run: dg.DagsterRun, state: str, by: "subprocess.Popen[str]"
) -> None:
    """Wait until the task of a run is in a state; fail if its worker ends."""
    task: Any = launcher.celery.AsyncResult(run.tags[DAGSTER_CELERY_TASK_ID_TAG])
    while task.state != state:
        assert by.poll() is None


def is_running(launcher: MailCeleryLauncher, run: dg.DagsterRun) -> bool:
    """Return True if a run is known to run; a busy worker may answer too late at first."""
    checks = (launcher.check_run_worker_health(run) for _ in range(100))
    return any(health.status == WorkerStatus.RUNNING for health in checks)


def test_run_whose_worker_was_killed_has_failed(
    launcher: MailCeleryLauncher, redis_url: str, tmp_path: Path
) -> None:
    health: Callable[[dg.DagsterRun], Any] = launcher.check_run_worker_health
    with worker(redis_url, "first@machine") as first:
        run = start_run(launcher, tmp_path / "end")
        wait(launcher, run, "STARTED", first)
        assert is_running(launcher, run)
        os.killpg(first.pid, signal.SIGKILL)
        first.wait()
        assert health(run).status == WorkerStatus.FAILED
        with worker(redis_url, "first@machine"):  # like a restarted container
            assert health(run).status == WorkerStatus.FAILED
            assert run.tags[DAGSTER_CELERY_TASK_ID_TAG] in health(run).msg


def test_run_goes_on_if_redis_forgot_its_worker(
    launcher: MailCeleryLauncher, redis_url: str, tmp_path: Path
) -> None:
    with worker(redis_url, "first@machine") as first:
        run = start_run(launcher, tmp_path / "end")
        wait(launcher, run, "STARTED", first)
        launcher.celery.backend.delete(
            launcher.celery.backend.get_key_for_task(run.tags[DAGSTER_CELERY_TASK_ID_TAG])
        )
        assert is_running(launcher, run)
        (tmp_path / "end").touch()
        wait(launcher, run, "SUCCESS", first)
        assert launcher.check_run_worker_health(run).status == WorkerStatus.SUCCESS


def test_busy_worker_takes_no_further_run(
    launcher: MailCeleryLauncher, redis_url: str, tmp_path: Path
) -> None:
    with worker(redis_url, "first@machine") as first:
        wait(launcher, start_run(launcher, tmp_path / "never"), "STARTED", first)
        waiting = start_run(launcher, tmp_path / "end")
        with worker(redis_url, "second@machine") as second:
            wait(launcher, waiting, "STARTED", second)
            started: Any = launcher.celery.AsyncResult(waiting.tags[DAGSTER_CELERY_TASK_ID_TAG])
            assert started.info["hostname"] == "second@machine"
