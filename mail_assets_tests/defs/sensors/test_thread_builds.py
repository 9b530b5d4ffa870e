"""The sensor for threads requests one run after all changed months."""

import datetime as dt

import dagster as dg
import pytest
from dagster._core.execution.backfill import BulkActionStatus

from mail_assets.defs.backfill.daemon import launch_months
from mail_assets.defs.jobs import build_threads, refresh_archives
from mail_assets.defs.partitions import asset_key, list_months
from mail_assets.defs.resources import DatabaseResource
from mail_assets.defs.sensors import build_new_threads
from mail_assets.month import ListMonth
from mail_assets_tests.defs.dagster_world import DagsterWorld
from mail_assets_tests.world import HARBOR, MARCH, PIER, mail

HOUR = dt.timedelta(hours=1)


class Ticks:
    """Function that ticks the sensor with the cursor of the tick before."""

    def __init__(self, world: DagsterWorld) -> None:
        self._world, self._cursor = world, ""
        self.now = dt.datetime.now(dt.UTC)

    def __call__(self) -> str:
        """Return "run", or the reason for no run."""
        world = self._world
        sensor = build_new_threads(list_months((HARBOR, PIER), "2020-01"), lambda: self.now)
        with dg.build_sensor_context(
            instance=world.instance,
            cursor=self._cursor,
            resources={"database": DatabaseResource(home=str(world.home), dsn=world.dsn)},
        ) as context:
            result = sensor(context)
            self._cursor = context.cursor or ""
        if isinstance(result, dg.RunRequest):
            return "run"
        assert isinstance(result, dg.SkipReason)
        return result.skip_message or ""


@pytest.fixture
def ticks(world: DagsterWorld) -> Ticks:
    return Ticks(world)


def record_run(world: DagsterWorld, job: str, status: dg.DagsterRunStatus, **tags: str) -> None:
    world.instance.add_run(
        dg.DagsterRun(
            job_name=job,
            status=status,
            tags={f"dagster/{name}": value for name, value in tags.items()},
        )
    )


def _checked_months(result: dg.ExecuteInProcessResult) -> object:
    """Return the number of months read by the check of threads."""
    found = {one.asset_key: one for one in result.get_asset_check_evaluations()}
    return found[asset_key("threads")].metadata["checked_months"].value


def test_threads_are_not_requested_without_mail(ticks: Ticks) -> None:
    assert "no message has changed" in ticks()


def test_threads_are_requested_once_after_months(world: DagsterWorld, ticks: Ticks) -> None:
    world.load(mail("a"), mail("b", references="<a@example.org>"))
    started = dg.DagsterRunStatus.STARTED
    record_run(world, refresh_archives.name, started, partition=f"{HARBOR}|{MARCH}")
    assert "months are in a run" in ticks()
    [run] = world.instance.get_runs()
    world.instance.report_run_failed(run)
    assert ticks() == "run"
    record_run(world, build_threads.name, dg.DagsterRunStatus.STARTING)
    assert "a run builds the threads" in ticks()
    job = world.defs.resolve_job_def(build_threads.name)
    result = job.execute_in_process(instance=world.instance)
    assert _checked_months(result) == 1
    assert len(world.rows("threads")) == 2
    assert len(world.rows("thread_summaries")) == 1
    assert "no message has changed" in ticks()
    result = job.execute_in_process(instance=world.instance)
    assert _checked_months(result) == 0


def test_changed_text_requests_its_summary(world: DagsterWorld, ticks: Ticks) -> None:
    world.load(mail("a"))
    world.threads()
    assert ticks() == "run", "none was ever made"
    world.summaries()
    assert "no message has changed" in ticks()
    with world.connect() as connection:
        connection.execute("update messages set body_text = 'Something else.'")
    assert ticks() == "run"
    with world.connect() as connection:
        connection.execute("update partitions set updated_at = now()")
    assert "no message has changed" in ticks()


def test_threads_do_not_wait_for_long_runs_of_months(world: DagsterWorld, ticks: Ticks) -> None:
    world.load(mail("a"))
    started = dg.DagsterRunStatus.STARTED
    record_run(world, refresh_archives.name, started, partition=f"{PIER}|{MARCH}")
    assert "months are in a run" in ticks()
    ticks.now += HOUR - dt.timedelta(minutes=1)
    assert "months are in a run" in ticks()
    ticks.now += dt.timedelta(minutes=1)
    assert ticks() == "run"
    assert "months are in a run" in ticks(), "the next hour begins"


def test_threads_wait_for_a_backfill_and_its_own_build(world: DagsterWorld, ticks: Ticks) -> None:
    """Between two runs of a backfill no month is in flight, but its last run builds the threads."""
    world.load(mail("a"))
    backfill_id = launch_months(world.instance, world.defs, [ListMonth(HARBOR, MARCH)])
    assert "a backfill is running" in ticks()
    threads = frozenset({asset_key("threads")})
    run = dg.DagsterRun("__ASSET_JOB", status=dg.DagsterRunStatus.STARTED, asset_selection=threads)
    world.instance.add_run(run)
    assert "a run builds the threads" in ticks()
    world.instance.report_run_canceled(run)
    backfill = world.instance.get_backfill(backfill_id)
    assert backfill
    ended = backfill.with_status(BulkActionStatus.COMPLETED_FAILED)  # type: ignore[no-untyped-call]
    world.instance.update_backfill(ended)
    assert ticks() == "run", "the backfill has left the threads out"


def test_failed_thread_build_is_retried_after_growing_pause(
    world: DagsterWorld, ticks: Ticks
) -> None:
    world.load(mail("a"))
    record_run(world, build_threads.name, dg.DagsterRunStatus.FAILURE)
    assert "failed; again after" in ticks()
    ticks.now = dt.datetime.now(dt.UTC) + dt.timedelta(minutes=10)
    assert ticks() == "run"
    record_run(world, build_threads.name, dg.DagsterRunStatus.FAILURE)
    assert "failed; again after" in ticks()


def test_unchanged_threads_are_built_daily(world: DagsterWorld, ticks: Ticks) -> None:
    world.instance.report_runless_asset_event(dg.AssetMaterialization(asset_key("threads")))
    assert "no message has changed" in ticks()
    ticks.now += 25 * HOUR
    assert ticks() == "run"
