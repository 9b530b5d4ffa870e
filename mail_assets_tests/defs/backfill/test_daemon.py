"""Backfills that the daemon's workers make: the same end as in one process, followed as they go.

Instead of waiting, the follower of a test lets the daemon work: its own code, in this process, and
runs one after another.
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
from mail_assets.defs.backfill.daemon import LaunchError, launch_lists, split_neighbours
from mail_assets.defs.backfill.plan import BackfillRequest
from mail_assets.defs.backfill.report import (
    BackfillLaunched,
    Event,
    RangeFinished,
    RangeStarted,
    Report,
)
from mail_assets.defs.runs import LogLine, MonthFinished
from mail_assets.month import ListMonth, months_between
from mail_assets.settings.settings import load_settings
from mail_assets_tests.world import APRIL, FORGET_KEY, HARBOR, MARCH, MAY, PIER, World, mail

pytestmark = [
    # Dagster reads it itself, of each schedule of a code location
    pytest.mark.filterwarnings(
        "ignore:Property `ScheduleDefinition.environment_vars` is deprecated:DeprecationWarning"
    ),
    # its daemon leaves coroutines behind whose answers it did not need
    pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


class Daemon:
    """Dagster's daemon, which works when it is told to."""

    def __init__(self, instance: dg.DagsterInstance, work: Callable[[], None]) -> None:
        self.instance, self._work = instance, work

    def show_itself(self, seconds_ago: float = 0) -> None:
        """Record a heartbeat, as a daemon does that works."""
        beat = DaemonHeartbeat(time.time() - seconds_ago, "BACKFILL", None)
        self.instance.add_daemon_heartbeat(beat)

    def work(self, _pause: float) -> None:
        """Do what there is to do, once."""
        self._work()


@pytest.fixture
def world(
    tmp_path: Path, mail_dsn: str, model_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> World:
    """A world whose settings are in the environment, where the code location reads them."""
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
    """A daemon on the instance that a launched backfill opens."""
    launcher = {
        "module": "dagster._core.launcher.sync_in_memory_run_launcher",
        "class": "SyncInMemoryRunLauncher",
    }
    folder = world.home / "dagster"
    folder.mkdir()
    # not queued: a run is executed where it is submitted
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


def launch(events: list[Event], *lists: str) -> Report:
    request = BackfillRequest(lists or (HARBOR, PIER))
    return launch_lists(load_settings(), request, events.append)


@pytest.mark.slow
def test_a_month_that_cannot_be_made_fails_alone_and_all_else_is_made(
    world: World, daemon: Daemon
) -> None:
    world.archive(MARCH, mail("a"), mail("b"))
    (world.folder() / f"{HARBOR}.{APRIL}.mbox").write_bytes(b"<html>please log in</html>")
    world.archive(MAY, mail("c", references="<a@example.org>"))
    world.archive(MARCH, mail("d"), list_name=PIER)
    daemon.show_itself()
    events: list[Event] = []
    report = launch(events)
    assert report.done == [
        *(ListMonth(HARBOR, month) for month in (MARCH, MAY)),
        ListMonth(PIER, MARCH),
    ]
    assert [*report.failed] == [f"{HARBOR} {APRIL}"]
    assert f"{HARBOR} {APRIL}: " in report.failed[f"{HARBOR} {APRIL}"]
    assert not report.interrupted
    assert report.counts_of("messages")["written"] == len(world.rows("messages")) == 4
    assert report.counts_of("vectors")["written"] == world.index.count() == 4
    assert report.threads == len(world.rows("thread_summaries")) == 3
    launched = [event.what for event in events if isinstance(event, BackfillLaunched)]
    whole = ["threads", "summaries of threads"]
    assert launched == ["4 list-months", "1 list-month", "2 list-months", *whole]
    assert f"{HARBOR} {MARCH} to {MAY}" in [
        str(event.range) for event in events if isinstance(event, RangeStarted)
    ]
    finished = [event for event in events if isinstance(event, MonthFinished)]
    encoded = [event.counts for event in finished if event.asset == "embeddings"]
    assert encoded
    assert all("seconds" in counts for counts in encoded)
    assert any(isinstance(event, RangeFinished) for event in events)
    lines = [str(event) for event in events if isinstance(event, LogLine)]
    assert any(f" messages {HARBOR} {MARCH}: found 2" in line for line in lines)


@pytest.mark.slow
def test_its_runs_have_the_tag_that_queues_limit_and_ctrl_c_leaves_them_to_the_daemon(
    world: World, daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(_pause: float) -> None:
        raise KeyboardInterrupt

    world.archive(MARCH, mail("a"), list_name=PIER)
    daemon.show_itself()
    monkeypatch.setattr(daemon_module, "sleep", interrupt)
    report = launch([], PIER)
    assert (report.interrupted, report.done, report.failed) == (True, [], {})
    daemon.work(0)
    [run] = daemon.instance.get_runs()
    assert run.status == dg.DagsterRunStatus.SUCCESS
    assert run.tags["dagster/backfill"]
    assert len(world.rows("messages")) == 1


def test_a_backfill_that_is_canceled_ends_it(
    world: World, daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cancel(_pause: float) -> None:
        [backfill] = daemon.instance.get_backfills()
        canceled = backfill.with_status(BulkActionStatus.CANCELED)  # type: ignore[no-untyped-call]
        daemon.instance.update_backfill(canceled)

    world.archive(MARCH, mail("a"), list_name=PIER)
    daemon.show_itself()
    monkeypatch.setattr(daemon_module, "sleep", cancel)
    report = launch([], PIER)
    assert [*report.failed.values()] == ["it was canceled"]
    assert len(daemon.instance.get_backfills()) == 1


@pytest.mark.parametrize("seconds_ago", [None, 600])
def test_nothing_is_launched_that_no_daemon_would_run(
    world: World, daemon: Daemon, seconds_ago: float | None
) -> None:
    if seconds_ago is not None:
        daemon.show_itself(seconds_ago)
    with pytest.raises(LaunchError, match="dagster-daemon run"):
        launch([])
    assert daemon.instance.get_backfills() == []


def test_months_of_one_part_are_no_neighbours() -> None:
    winter = months_between("2023-11", "2024-02")
    months = [ListMonth(name, month) for name in "abc" for month in winter]
    parts = split_neighbours(months, ["c", "a", "b"])
    assert sorted(month for part in parts for month in part) == months
    for part in parts:
        for one in part:
            near = [m for m in part if m.list_name == one.list_name and m != one]
            assert all(len(months_between(*sorted((m.month, one.month)))) > 2 for m in near)
            beside = {m.list_name for m in part if m.month == one.month}
            assert beside in ({"a", "c"}, {"b"})
    assert split_neighbours([], ["a"]) == []
