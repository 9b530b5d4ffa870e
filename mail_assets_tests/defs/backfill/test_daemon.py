"""Backfills that run in the daemon.

Instead of sleeping, a waiting test runs the daemon's own code in this process, one run after
another.
"""

import itertools
import logging
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.execution.backfill import BulkActionStatus
from dagster._core.remote_origin import InProcessCodeLocationOrigin
from dagster._core.test_utils import create_test_daemon_workspace_context
from dagster._core.types.loadable_target_origin import LoadableTargetOrigin
from dagster._core.workspace.load_target import InProcessWorkspaceLoadTarget
from dagster._daemon.backfill import execute_backfill_iteration
from dagster._daemon.types import DaemonHeartbeat

from mail_assets.defs.backfill import daemon as daemon_module
from mail_assets.defs.backfill.daemon import Launched, LaunchError, launch_lists, wait_for_backfill
from mail_assets.defs.backfill.plan import BackfillRequest
from mail_assets.defs.runs import RANGE
from mail_assets.month import ListMonth
from mail_assets.settings.settings import load_settings
from mail_assets_tests.world import APRIL, FORGET_KEY, HARBOR, MARCH, PIER, World, mail

pytestmark = [
    # Dagster reads this property of each schedule itself
    pytest.mark.filterwarnings(
        "ignore:Property `ScheduleDefinition.environment_vars` is deprecated:DeprecationWarning"
    ),
    # its daemon does not await every coroutine
    pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


class Daemon:
    """Dagster's daemon, which works only when a test calls it."""

    def __init__(self, instance: dg.DagsterInstance, work: Callable[[], None]) -> None:
        self.instance, self._work = instance, work

    def show_itself(self, seconds_ago: float = 0) -> None:
        """Record a heartbeat, as a running daemon does."""
        beat = DaemonHeartbeat(time.time() - seconds_ago, "BACKFILL", None)
        self.instance.add_daemon_heartbeat(beat)

    def work(self, _pause: float) -> None:
        self._work()


@pytest.fixture
def world(
    tmp_path: Path, mail_dsn: str, model_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> World:
    """A world with its settings in the environment, for the code location."""
    made = World(tmp_path, mail_dsn)
    lists = tmp_path / "lists.toml"
    lists.write_text(
        "".join(f'[{name}]\nsource = "{made.folder(name)}"\n' for name in (HARBOR, PIER))
    )
    settings = {
        "MAIL_HOME": tmp_path,
        "MAIL_LISTS": lists,
        "MAIL_PG_DSN": mail_dsn,
        "MAIL_MODEL_DIR": model_cache,
        "MAIL_FORGET_KEY": FORGET_KEY,
        "MAIL_JOBS": 1,
    }
    for name, value in settings.items():
        monkeypatch.setenv(name, str(value))
    return made


@pytest.fixture
def daemon(world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[Daemon]:
    launcher = {
        "module": "dagster._core.launcher.sync_in_memory_run_launcher",
        "class": "SyncInMemoryRunLauncher",
    }
    folder = world.home / "dagster"
    folder.mkdir()
    # no queue: a run executes in the process that submits it
    coordinator = {
        "module": "dagster._core.run_coordinator.default_run_coordinator",
        "class": "DefaultRunCoordinator",
    }
    overrides = {"run_launcher": launcher, "run_coordinator": coordinator}
    origin = InProcessCodeLocationOrigin(
        LoadableTargetOrigin(module_name="mail_assets.definitions"), location_name="mail_assets"
    )
    target = InProcessWorkspaceLoadTarget(origin)
    looks = itertools.count()
    with (
        dg.instance_for_test(overrides, temp_dir=str(folder)) as instance,
        create_test_daemon_workspace_context(target, instance) as workspace,
    ):

        def work() -> None:
            assert next(looks) < 100, "the backfill does not end"
            errors = [*execute_backfill_iteration(workspace, logging.getLogger("daemon"))]
            assert [error for error in errors if error] == []

        made = Daemon(instance, work)
        monkeypatch.setattr(daemon_module, "sleep", made.work)
        monkeypatch.setattr("mail_assets.defs.instance.use_dagster_home", lambda _: None)
        yield made


def launch(*lists: str) -> Launched:
    return launch_lists(load_settings(), BackfillRequest(lists or (HARBOR, PIER)))


@pytest.mark.slow
def test_wait_names_the_months_that_failed(world: World, daemon: Daemon) -> None:
    """One of two lists has a bad month; the other months continue to the indexes."""
    (world.folder() / f"{HARBOR}.{MARCH}.mbox").write_bytes(b"<html>please log in</html>")
    world.archive(APRIL, mail("a"), mail("b"))
    world.archive(MARCH, mail("d"), list_name=PIER)
    daemon.show_itself()
    launched = launch()
    broken, april = (ListMonth(HARBOR, month) for month in (MARCH, APRIL))
    beside = ListMonth(PIER, MARCH)
    assert launched.months == [broken, april, beside]
    assert world.rows("messages") == [], "nothing is made in this process"
    wait_for_backfill(load_settings(), launched)
    report = launched.report
    assert report.done == [april, beside]
    assert [*report.failed] == [str(broken)]
    assert "it is an HTML page" in report.failed[str(broken)]
    assert not report.interrupted
    assert {key for (key,) in world.rows("vectors", "list")} == {HARBOR, PIER}
    for run in daemon.instance.get_runs():
        ends = {run.tags[tag].partition("|")[0] for tag in RANGE}
        assert len(ends) == 1, "no run goes across lists"
        assert run.tags["dagster/backfill"] in launched.backfills


def test_launch_asks_for_nothing_when_nothing_changed(world: World, daemon: Daemon) -> None:
    daemon.show_itself()
    assert launch().backfills == {}
    assert daemon.instance.get_backfills() == []


def test_ctrl_c_leaves_a_launched_backfill_to_the_daemon(
    world: World, daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(_pause: float) -> None:
        raise KeyboardInterrupt

    world.archive(MARCH, mail("a"), list_name=PIER)
    daemon.show_itself()
    monkeypatch.setattr(daemon_module, "sleep", interrupt)
    launched = launch(PIER)
    wait_for_backfill(load_settings(), launched)
    report = launched.report
    assert (report.interrupted, report.done, report.failed) == (True, [], {})
    [backfill] = daemon.instance.get_backfills()
    assert backfill.status == BulkActionStatus.REQUESTED


def test_wait_ends_when_a_backfill_is_canceled(
    world: World, daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cancel(_pause: float) -> None:
        [backfill] = daemon.instance.get_backfills()
        canceled = backfill.with_status(BulkActionStatus.CANCELED)  # type: ignore[no-untyped-call]
        daemon.instance.update_backfill(canceled)

    world.archive(MARCH, mail("a"), list_name=PIER)
    daemon.show_itself()
    monkeypatch.setattr(daemon_module, "sleep", cancel)
    launched = launch(PIER)
    wait_for_backfill(load_settings(), launched)
    [backfill_id] = launched.backfills
    assert launched.report.failed == {
        f"backfill {backfill_id}": "it was canceled",
        f"{PIER} {MARCH}": "it was not run",
    }


@pytest.mark.parametrize("seconds_ago", [None, 600])
def test_launch_is_refused_without_a_daemon(
    world: World, daemon: Daemon, seconds_ago: float | None
) -> None:
    if seconds_ago is not None:
        daemon.show_itself(seconds_ago)
    with pytest.raises(LaunchError, match="dagster-daemon run"):
        launch()
    assert daemon.instance.get_backfills() == []
