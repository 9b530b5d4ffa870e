"""The sensor for archives: what it asks for, in which portions, and when it stays silent."""

import datetime as dt
import io
import json
import logging
import socket
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.remote_origin import (
    RegisteredCodeLocationOrigin,
    RemoteJobOrigin,
    RemoteRepositoryOrigin,
)

from mail_assets.defs import sensors
from mail_assets.defs.partitions import list_months
from mail_assets.defs.resources.archive_source import ArchiveSourceResource
from mail_assets.defs.resources.database import DatabaseResource
from mail_assets.defs.sensors import Patience, build_new_archives
from mail_assets_tests.world import APRIL, HARBOR, MARCH, PIER, World, mail

NOW = dt.datetime.now(dt.UTC)

#: Where a job is loaded from: Dagster queues no run without.
ORIGIN = RemoteJobOrigin(
    RemoteRepositoryOrigin(RegisteredCodeLocationOrigin("mail_assets"), "__repository__"), "any"
)


@pytest.fixture
def world(tmp_path: Path, postgres_dsn: str) -> World:
    """An empty world."""
    return World(tmp_path, postgres_dsn)


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    """An instance without runs."""
    with dg.DagsterInstance.ephemeral() as made:
        yield made


class Tick:
    """One tick of the sensor after the other, as the daemon evaluates them."""

    def __init__(self, world: World, instance: dg.DagsterInstance) -> None:
        self.world, self.instance = world, instance
        self.sources: dict[str, str] = {}
        self.last_month: str | None = None
        self.patience = Patience()
        self.now = NOW
        self.log = io.StringIO()

    def __call__(self, cursor: str | None = None) -> dg.SensorResult | dg.SkipReason:
        lists = self.world.settings().lists
        context = dg.build_sensor_context(
            instance=self.instance,
            cursor=cursor,
            resources={
                "database": DatabaseResource(home=str(self.world.home), dsn=self.world.dsn),
                "archive_source": ArchiveSourceResource(
                    sources={name: one.source for name, one in lists.items()} | self.sources,
                    starts={name: one.start for name, one in lists.items()},
                ),
            },
        )
        sensor = build_new_archives(
            list_months((*lists,), "2020-01", self.last_month), self.patience, lambda: self.now
        )
        with context:
            context.log.addHandler(logging.StreamHandler(self.log))
            result = sensor(context)
            self.cursor = context.cursor
        assert isinstance(result, dg.SensorResult | dg.SkipReason)
        return result


@pytest.fixture
def tick(world: World, instance: dg.DagsterInstance) -> Tick:
    return Tick(world, instance)


def asked(result: dg.SensorResult | dg.SkipReason) -> list[str]:
    assert isinstance(result, dg.SensorResult)
    return [str(request.partition_key) for request in result.run_requests or []]


def test_new_archives_of_all_lists_are_asked_for(world: World, tick: Tick) -> None:
    world.archive(MARCH, mail("a"))
    world.archive(APRIL, mail("b"), list_name=PIER)
    assert asked(tick()) == [f"{HARBOR}|{MARCH}", f"{PIER}|{APRIL}"]


def test_archives_behind_the_last_month_are_left_alone(world: World, tick: Tick) -> None:
    world.archive(MARCH, mail("a"))
    world.archive(APRIL, mail("b"))
    tick.last_month = MARCH
    assert asked(tick()) == [f"{HARBOR}|{MARCH}"]


def test_what_has_not_changed_is_left_alone(world: World, tick: Tick) -> None:
    world.archive(MARCH, mail("a"))
    world.archives()
    result = tick()
    assert isinstance(result, dg.SkipReason)
    assert result.skip_message == "no new or changed archives"


def test_a_changed_archive_is_asked_for_under_another_run_key(world: World, tick: Tick) -> None:
    world.archive(MARCH, mail("a"))
    first = tick()
    world.archives()
    world.archive(MARCH, mail("a"), mail("b"), at=1)
    second = tick()
    assert asked(first) == asked(second) == [f"{HARBOR}|{MARCH}"]
    assert isinstance(first, dg.SensorResult)
    assert isinstance(second, dg.SensorResult)
    [before], [after] = first.run_requests or [], second.run_requests or []
    assert before.run_key != after.run_key
    size = len(mail("a") + mail("b"))
    assert str(after.run_key).startswith(f"{HARBOR}|{MARCH}@{size}-")


def test_an_archive_of_an_old_month_that_comes_late_is_asked_for(world: World, tick: Tick) -> None:
    world.archive(APRIL, mail("a"))
    world.archives(APRIL)
    world.archives(MARCH)  # the source had none yet
    world.archive(MARCH, mail("b"))
    assert asked(tick(cursor=f"{HARBOR}|{APRIL}")) == [f"{HARBOR}|{MARCH}"]


def test_a_source_that_cannot_tell_versions_is_asked_once(
    world: World, tick: Tick, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "mail_assets.sources.folder.FolderSource.versions",
        lambda source: source.by_list_month({MARCH: "", APRIL: ""}),
    )
    world.archives(MARCH)
    assert asked(tick()) == [f"{HARBOR}|{APRIL}", f"{PIER}|{MARCH}", f"{PIER}|{APRIL}"]


def test_months_outside_the_partitions_are_passed_over(world: World, tick: Tick) -> None:
    world.archive("2019-12", mail("a"))
    world.archive("2098-01", mail("a"))
    assert isinstance(tick(), dg.SkipReason)


def test_a_tick_asks_for_a_portion_and_the_next_goes_on(
    world: World, tick: Tick, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sensors, "BATCH", 2)
    months = ["2023-01", "2023-02", "2023-03", "2023-04", "2023-05"]
    for month in months:
        world.archive(month, mail("a"))
    portions, cursors = [], [None]
    for _ in range(4):
        result = tick(cursors[-1])
        portions.append([key.partition("|")[2] for key in asked(result)])
        assert isinstance(result, dg.SensorResult)
        cursors.append(result.cursor)  # type: ignore[arg-type]
    assert portions == [months[:2], months[2:4], months[4:], months[:2]]
    assert all(len(json.dumps(cursor)) < 150 for cursor in cursors)


def test_one_source_that_is_down_does_not_stop_the_others(world: World, tick: Tick) -> None:
    world.folder(HARBOR).rmdir()
    world.archive(MARCH, mail("a"), list_name=PIER)
    assert asked(tick()) == [f"{PIER}|{MARCH}"]
    world.archives(list_name=PIER)
    result = tick()
    assert isinstance(result, dg.SkipReason)
    assert result.skip_message == f"no new or changed archives; could not list {HARBOR}"


def test_nothing_runs_until_it_is_switched_on() -> None:
    sensor = build_new_archives(list_months((HARBOR,), "2020-01"))
    assert sensor.default_status == dg.DefaultSensorStatus.STOPPED


@dg.op(config_schema={"fails": bool})
def work(context: dg.OpExecutionContext) -> None:
    if context.op_config["fails"]:
        raise dg.Failure("the archive is broken")


@dg.job
def refresh_archives() -> None:
    """A run of a month, with no more of it than how it ends."""
    work()


def run_month(instance: dg.DagsterInstance, month: str, *, fails: bool) -> str:
    """Run a month of harbor to its end; return the id of the run."""
    return refresh_archives.execute_in_process(
        instance=instance,
        tags={"dagster/partition": f"{HARBOR}|{month}"},
        run_config={"ops": {"work": {"config": {"fails": fails}}}},
        raise_on_error=False,
    ).run_id


def run_keys(result: dg.SensorResult | dg.SkipReason) -> list[str | None]:
    assert isinstance(result, dg.SensorResult)
    return [request.run_key for request in result.run_requests or []]


def test_a_month_whose_run_failed_is_asked_for_again_under_another_run_key(
    world: World, tick: Tick
) -> None:
    world.archive(MARCH, mail("a"))
    [before] = run_keys(tick())
    run = run_month(tick.instance, MARCH, fails=True)
    tick.now = dt.datetime.now(dt.UTC) + dt.timedelta(minutes=10)
    assert run_keys(tick()) == [f"{before} after {run}"]


def test_a_month_that_failed_behind_its_fetch_is_asked_for_again(world: World, tick: Tick) -> None:
    world.archive(MARCH, mail("a"))
    world.archives()  # known, so no news
    run = run_month(tick.instance, MARCH, fails=True)
    tick.now = dt.datetime.now(dt.UTC) + dt.timedelta(minutes=10)
    [key] = run_keys(tick())
    assert str(key).endswith(f" after {run}")


def test_the_pause_after_a_failure_doubles_up_to_a_day(world: World, tick: Tick) -> None:
    world.archive(MARCH, mail("a"))
    for minutes in [10, 20, 40, 80, 160, 320, 640, 1280, 1440, 1440]:
        run_month(tick.instance, MARCH, fails=True)
        ended = dt.datetime.now(dt.UTC)
        tick.now = ended + dt.timedelta(minutes=minutes - 1)
        assert isinstance(tick(), dg.SkipReason)
        tick.now = ended + dt.timedelta(minutes=minutes)
        assert asked(tick()) == [f"{HARBOR}|{MARCH}"]


def test_a_pause_is_told_with_its_reason_and_its_end(world: World, tick: Tick) -> None:
    world.archive(MARCH, mail("a"))
    runs = [run_month(tick.instance, MARCH, fails=True) for _ in range(2)]
    result = tick()
    assert isinstance(result, dg.SkipReason)
    [ended] = {r.end_time for r in tick.instance.get_run_records(dg.RunsFilter(run_ids=runs[1:]))}
    again = dt.datetime.fromtimestamp(ended or 0, dt.UTC) + dt.timedelta(minutes=20)
    assert result.skip_message == (
        f"no new or changed archives; paused after failures: {HARBOR} {MARCH} (failed 2 times, "
        f"last in run {runs[1][:8]}, again after {again:%Y-%m-%d %H:%M} UTC)"
    )
    assert f"last in run {runs[1][:8]}" in tick.log.getvalue()


def test_a_success_ends_the_failures_before_it(world: World, tick: Tick) -> None:
    world.archive(MARCH, mail("a"))
    world.archives()
    run_month(tick.instance, MARCH, fails=True)
    run_month(tick.instance, MARCH, fails=False)
    tick.now = dt.datetime.now(dt.UTC) + dt.timedelta(days=2)
    assert isinstance(tick(), dg.SkipReason)


@pytest.mark.parametrize(
    "status",
    [
        dg.DagsterRunStatus.QUEUED,
        dg.DagsterRunStatus.NOT_STARTED,
        dg.DagsterRunStatus.STARTING,
        dg.DagsterRunStatus.STARTED,
        dg.DagsterRunStatus.CANCELING,
    ],
)
@pytest.mark.parametrize(
    "tags",
    [
        {"dagster/partition": f"{HARBOR}|{MARCH}"},
        {
            "dagster/asset_partition_range_start": f"{HARBOR}|2023-11",
            "dagster/asset_partition_range_end": f"{PIER}|{MARCH}",
        },
    ],
    ids=["month", "range"],
)
def test_a_month_in_a_run_is_not_asked_for(
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


def test_a_failed_month_of_a_list_that_is_gone_is_passed_over(tick: Tick) -> None:
    refresh_archives.execute_in_process(
        instance=tick.instance,
        tags={"dagster/partition": f"gone|{MARCH}"},
        run_config={"ops": {"work": {"config": {"fails": True}}}},
        raise_on_error=False,
    )
    tick.now = dt.datetime.now(dt.UTC) + dt.timedelta(days=2)
    assert isinstance(tick(), dg.SkipReason)


@pytest.fixture
def hanging_server() -> Iterator[str]:
    """The URL of a server that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/"


def test_a_server_that_hangs_is_asked_once_and_named_and_the_others_go_on(
    world: World, tick: Tick, hanging_server: str
) -> None:
    world.archive(MARCH, mail("a"), list_name=PIER)
    tick.sources[HARBOR] = hanging_server
    tick.patience = Patience(answer=0.05)
    assert asked(tick()) == [f"{PIER}|{MARCH}"]
    assert f"list {HARBOR}: {hanging_server}: ReadTimeout" in tick.log.getvalue()
    assert ", 1 times" in tick.log.getvalue()
    assert f"could not list {HARBOR}\n" in tick.log.getvalue()


def test_a_tick_ends_in_time_whatever_a_server_does(
    world: World, tick: Tick, hanging_server: str
) -> None:
    world.archive(MARCH, mail("a"), list_name=PIER)
    tick.sources[HARBOR] = hanging_server
    tick.patience = Patience(answer=1.0, all=0.2)
    assert asked(tick()) == [f"{PIER}|{MARCH}"]
    assert f"list {HARBOR}: no answer within 0.2 s" in tick.log.getvalue()


def test_a_list_whose_turn_did_not_come_is_first_in_the_next_tick(
    world: World, tick: Tick, hanging_server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mail_assets.sources.listing.WORKERS", 1)
    world.archive(MARCH, mail("a"), list_name=PIER)
    tick.sources[HARBOR] = hanging_server
    tick.patience = Patience(answer=1.0, all=0.2)
    assert isinstance(tick(), dg.SkipReason)
    assert f"no time left to list {PIER}: first in the next tick" in tick.log.getvalue()
    assert asked(tick(tick.cursor)) == [f"{PIER}|{MARCH}"]


@pytest.mark.parametrize("cursor", [f"{HARBOR}|{APRIL}", "5", '{"x": 1}', "{}"])
def test_a_cursor_of_another_release_begins_again(world: World, tick: Tick, cursor: str) -> None:
    world.archive(MARCH, mail("a"))
    assert asked(tick(cursor)) == [f"{HARBOR}|{MARCH}"]
