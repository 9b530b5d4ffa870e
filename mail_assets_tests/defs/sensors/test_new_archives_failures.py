"""The sensor for archives requests failed months again, but no month in a run."""

import datetime as dt

import dagster as dg
import pytest
from dagster._core.remote_origin import (
    RegisteredCodeLocationOrigin,
    RemoteJobOrigin,
    RemoteRepositoryOrigin,
)

from mail_assets.defs.partitions import asset_key
from mail_assets.defs.runs import IN_FLIGHT
from mail_assets_tests.defs.dagster_world import range_tags
from mail_assets_tests.defs.sensor_tick import Tick, asked, run_keys
from mail_assets_tests.world import APRIL, HARBOR, MARCH, PIER, World, mail

#: Where a job is loaded from: Dagster queues no run without.
ORIGIN = RemoteJobOrigin(
    RemoteRepositoryOrigin(RegisteredCodeLocationOrigin("mail_assets"), "__repository__"), "any"
)


@dg.op(config_schema={"fails": bool})
def work(context: dg.OpExecutionContext) -> None:
    if context.op_config["fails"]:
        raise dg.Failure("the archive is broken")
    context.log_event(
        dg.AssetMaterialization(
            asset_key("vectors"), partition=context.run.tags["dagster/partition"]
        )
    )


@dg.job
def refresh_archives() -> None:
    """A run of a month that only ends well or badly."""
    work()


def run_month(
    instance: dg.DagsterInstance, month: str, *, fails: bool, list_name: str = HARBOR
) -> str:
    return refresh_archives.execute_in_process(
        instance=instance,
        tags={"dagster/partition": f"{list_name}|{month}"},
        run_config={"ops": {"work": {"config": {"fails": fails}}}},
        raise_on_error=False,
    ).run_id


def test_failed_month_gets_another_run_key(world: World, tick: Tick) -> None:
    world.archive(MARCH, mail("a"))
    [before] = run_keys(tick())
    run = run_month(tick.instance, MARCH, fails=True)
    tick.now = dt.datetime.now(dt.UTC) + dt.timedelta(minutes=10)
    assert run_keys(tick()) == [f"{before} after {run}"]


def test_month_that_failed_after_its_fetch_is_requested(world: World, tick: Tick) -> None:
    world.archive(MARCH, mail("a"))
    world.archives()  # known, so no news
    [before] = run_keys(tick())
    run = run_month(tick.instance, MARCH, fails=True)
    assert isinstance(tick(), dg.SkipReason)
    tick.now = dt.datetime.now(dt.UTC) + dt.timedelta(minutes=10)
    assert run_keys(tick()) == [f"{before} after {run}"]


def test_pause_grows_with_the_failures(world: World, tick: Tick) -> None:
    world.archive(MARCH, mail("a"))
    for minutes in [10, 20]:
        run_month(tick.instance, MARCH, fails=True)
        ended = dt.datetime.now(dt.UTC)
        tick.now = ended + dt.timedelta(minutes=minutes - 1)
        assert isinstance(tick(), dg.SkipReason)
        tick.now = ended + dt.timedelta(minutes=minutes)
        assert asked(tick()) == [f"{HARBOR}|{MARCH}"]


def test_pause_is_reported_with_reason_and_end(world: World, tick: Tick) -> None:
    world.archive(MARCH, mail("a"))
    runs = [run_month(tick.instance, MARCH, fails=True) for _ in range(2)]
    result = tick()
    assert isinstance(result, dg.SkipReason)
    [ended] = {r.end_time for r in tick.instance.get_run_records(dg.RunsFilter(run_ids=runs[1:]))}
    again = dt.datetime.fromtimestamp(ended or 0, dt.UTC) + dt.timedelta(minutes=20)
    assert result.skip_message == (
        f"no new or changed archives; paused after failures: {HARBOR} {MARCH} (failures: 2, "
        f"last run {runs[1][:8]}, again after {again:%Y-%m-%d %H:%M} UTC)"
    )
    assert f"last run {runs[1][:8]}" in tick.log.getvalue()


def test_success_ends_the_failures_before_it(world: World, tick: Tick) -> None:
    world.load(mail("a"), last="vectors")
    run_month(tick.instance, MARCH, fails=True)
    run_month(tick.instance, MARCH, fails=False)
    tick.now = dt.datetime.now(dt.UTC) + dt.timedelta(days=2)
    assert isinstance(tick(), dg.SkipReason)


@pytest.mark.parametrize(
    ("status", "tags"),
    [
        *((status, {"dagster/partition": f"{HARBOR}|{MARCH}"}) for status in IN_FLIGHT),
        (IN_FLIGHT[0], range_tags(f"{HARBOR}|2023-11", f"{PIER}|{MARCH}")),
    ],
)
def test_month_in_a_run_is_not_requested(
    world: World, tick: Tick, status: dg.DagsterRunStatus, tags: dict[str, str]
) -> None:
    run_month(tick.instance, MARCH, fails=True)
    tick.now = dt.datetime.now(dt.UTC) + dt.timedelta(hours=1)
    world.archive(MARCH, mail("a"))
    world.archive(APRIL, mail("b"))
    tick.instance.add_run(
        dg.DagsterRun(job_name="any", status=status, tags=tags, remote_job_origin=ORIGIN)
    )
    assert asked(tick()) == [f"{HARBOR}|{APRIL}"]
    assert f"in a run already: {HARBOR} {MARCH}\n" in tick.log.getvalue()
    assert f"requested: {HARBOR} {APRIL}\n" in tick.log.getvalue()


def test_failed_month_of_a_removed_list_is_ignored(tick: Tick) -> None:
    run_month(tick.instance, MARCH, fails=True, list_name="gone")
    tick.now = dt.datetime.now(dt.UTC) + dt.timedelta(days=2)
    assert isinstance(tick(), dg.SkipReason)
