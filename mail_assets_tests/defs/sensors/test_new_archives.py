"""The sensor for archives: requests, ignored archives, and failed months."""

import datetime as dt
import io
import json
import logging
import socket
from collections.abc import Iterator

import dagster as dg
import pytest
from dagster._core.remote_origin import (
    RegisteredCodeLocationOrigin,
    RemoteJobOrigin,
    RemoteRepositoryOrigin,
)

from mail_assets.defs import sensors
from mail_assets.defs.partitions import asset_key, list_months
from mail_assets.defs.resources import ArchiveSourceResource, DatabaseResource
from mail_assets.defs.runs import IN_FLIGHT
from mail_assets.defs.sensors import Patience, build_new_archives, next_batch
from mail_assets.month import ListMonth
from mail_assets.settings.lists import LoadedLists
from mail_assets_tests.defs.dagster_world import range_tags
from mail_assets_tests.sources.time_limits import end_time_after
from mail_assets_tests.waits import LONG
from mail_assets_tests.world import APRIL, HARBOR, MARCH, PIER, World, mail


class Tick:
    """Function that ticks in a world; `log` has the output, `now` is the time."""

    def __init__(self, world: World, instance: dg.DagsterInstance) -> None:
        self.world, self.instance = world, instance
        self.sources: dict[str, str] = {}
        self.last_month: str | None = None
        self.patience = Patience()
        self.now = dt.datetime.now(dt.UTC)
        self.log = io.StringIO()
        self.loaded: LoadedLists | None = None

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
                    cache=str(self.world.home / "cache"),
                ),
            },
        )
        sensor = build_new_archives(
            list_months((*lists,), "2020-01", self.last_month),
            self.patience,
            lambda: self.now,
            self.loaded,
        )
        with context:
            context.log.addHandler(logging.StreamHandler(self.log))
            result = sensor(context)
            self.cursor = context.cursor
        assert isinstance(result, dg.SensorResult | dg.SkipReason)
        return result


def asked(result: dg.SensorResult | dg.SkipReason) -> list[str]:
    assert isinstance(result, dg.SensorResult)
    return [str(request.partition_key) for request in result.run_requests or []]


def run_keys(result: dg.SensorResult | dg.SkipReason) -> list[str | None]:
    assert isinstance(result, dg.SensorResult)
    return [request.run_key for request in result.run_requests or []]


@pytest.fixture
def tick(world: World, instance: dg.DagsterInstance) -> Tick:
    return Tick(world, instance)


def test_new_archives_of_all_lists_are_requested(world: World, tick: Tick) -> None:
    world.archive(MARCH, mail("a"))
    world.archive(APRIL, mail("b"), list_name=PIER)
    assert asked(tick()) == [f"{HARBOR}|{MARCH}", f"{PIER}|{APRIL}"]


def test_archives_after_the_last_month_are_ignored(world: World, tick: Tick) -> None:
    world.archive(MARCH, mail("a"))
    world.archive(APRIL, mail("b"))
    tick.last_month = MARCH
    assert asked(tick()) == [f"{HARBOR}|{MARCH}"]


def test_new_messages_of_a_maildir_are_requested(world: World, tick: Tick) -> None:
    folder = world.home / "Mail"
    for name in ("cur", "new", "tmp"):
        (folder / name).mkdir(parents=True)
    tick.sources[HARBOR] = str(folder)
    for number, month in enumerate((MARCH, MARCH, APRIL)):
        raw = mail(f"m{number}", date=f"{month}-05 10:00:00 +0000")
        (folder / "new" / f"{number}.x").write_bytes(raw)
    assert asked(tick()) == [f"{HARBOR}|{MARCH}", f"{HARBOR}|{APRIL}"]


def test_unchanged_archive_is_not_requested(world: World, tick: Tick) -> None:
    world.load(mail("a"), last="vectors")
    result = tick()
    assert isinstance(result, dg.SkipReason)
    assert result.skip_message == "no new or changed archives"


@pytest.mark.parametrize("last", ["archives", "messages", "words", "chunks", "embeddings"])
def test_month_behind_its_archive_is_requested(world: World, tick: Tick, last: str) -> None:
    world.load(mail("a"), last="vectors")
    world.load(mail("a"), mail("b"), at=1, last=last)
    before = run_keys(tick())
    assert before == run_keys(tick()), "a run that mends nothing is not repeated"
    assert asked(tick()) == [f"{HARBOR}|{MARCH}"]
    world.chain()
    assert isinstance(tick(), dg.SkipReason)


def test_changed_archive_gets_another_run_key(world: World, tick: Tick) -> None:
    world.archive(MARCH, mail("a"))
    first = tick()
    world.archives()
    world.archive(MARCH, mail("a"), mail("b"), at=1)
    second = tick()
    assert asked(first) == asked(second) == [f"{HARBOR}|{MARCH}"]
    [before], [after] = run_keys(first), run_keys(second)
    assert before != after
    size = len(mail("a") + mail("b"))
    assert str(after).startswith(f"{HARBOR}|{MARCH}@{size}-")


def test_archive_with_a_former_version_is_requested(world: World, tick: Tick) -> None:
    versions = [[mail("a")], [mail("a"), mail("b")]] * 3
    keys = []
    for at, mails in enumerate(versions):
        world.archive(MARCH, *mails, at=at % 2)
        asked_twice = [run_keys(tick()) for _ in range(2)]
        assert asked_twice[0] == asked_twice[1], "one version is launched once"
        keys += asked_twice[0]
        world.archives(allow_loss=True)
    assert len({*keys}) == len(keys) == len(versions)


def test_late_archive_of_an_old_month_is_requested(world: World, tick: Tick) -> None:
    world.load(mail("a"), month=APRIL, last="vectors")
    world.archives(MARCH)  # the source had no archive yet
    world.archive(MARCH, mail("b"))
    assert asked(tick(cursor=f"{HARBOR}|{APRIL}")) == [f"{HARBOR}|{MARCH}"]


def test_source_without_versions_is_requested_once(
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


def test_tick_requests_a_batch_and_the_next_goes_on(
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


def test_batches_in_a_row_have_every_month(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sensors, "BATCH", 2)
    # in the order of keys the longer name comes first: "dev-users|" before "dev|"
    months = [ListMonth(name, month) for name in ("dev", "dev-users") for month in (MARCH, APRIL)]
    first = next_batch(months, "")
    second = next_batch(months, first[-1].key)
    assert {*first, *second} == {*months}


def test_one_source_that_is_down_does_not_stop_the_others(world: World, tick: Tick) -> None:
    world.folder(HARBOR).rmdir()
    world.archive(MARCH, mail("a"), list_name=PIER)
    assert asked(tick()) == [f"{PIER}|{MARCH}"]
    world.chain(list_name=PIER)
    result = tick()
    assert isinstance(result, dg.SkipReason)
    assert result.skip_message == f"no new or changed archives; could not list {HARBOR}"


def test_a_changed_lists_file_is_reported(world: World, tick: Tick) -> None:
    path = world.home / "lists.toml"
    harbor, pier = (f'[{name}]\nsource = "{world.folder(name)}"\n' for name in (HARBOR, PIER))
    path.write_text(harbor)
    tick.loaded = LoadedLists(path, {HARBOR: "english"})
    assert "newer" not in str(tick())
    path.write_text(f"{harbor}published = false\n{pier}")
    result = tick()
    assert isinstance(result, dg.SkipReason)
    said = f"{path} has changed since it was loaded (new: {PIER}; changed: {HARBOR}): reload"
    assert said in str(result.skip_message)
    assert said in tick.log.getvalue()
    assert world.rows("lists", "list, published") == [(HARBOR, False), (PIER, True)]
    path.write_text("[harbor")
    assert "cannot be read" in str(tick())
    path.write_text(harbor)
    assert "newer" not in str(tick())


def test_sensor_requests_nothing_until_switched_on() -> None:
    sensor = build_new_archives(list_months((HARBOR,), "2020-01"))
    assert sensor.default_status == dg.DefaultSensorStatus.STOPPED


@pytest.fixture
def hanging_server() -> Iterator[str]:
    """The URL of a server that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/"


def test_hanging_server_is_asked_once_and_named(
    world: World, tick: Tick, hanging_server: str
) -> None:
    world.archive(MARCH, mail("a"), list_name=PIER)
    tick.sources[HARBOR] = hanging_server
    tick.patience = Patience(answer=0.05)
    assert asked(tick()) == [f"{PIER}|{MARCH}"]
    assert f"list {HARBOR}: {hanging_server}: ReadTimeout" in tick.log.getvalue()
    assert ", 1 times" in tick.log.getvalue()
    assert f"could not list {HARBOR}\n" in tick.log.getvalue()


def test_tick_ends_in_time_with_a_slow_server(
    world: World, tick: Tick, hanging_server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.archive(MARCH, mail("a"), list_name=PIER)
    tick.sources[HARBOR] = hanging_server
    tick.patience = Patience(answer=LONG, all=0.2)
    end_time_after(monkeypatch, PIER)
    assert asked(tick()) == [f"{PIER}|{MARCH}"]
    assert f"list {HARBOR}: no answer within 0.2 s" in tick.log.getvalue()


def test_skipped_list_is_first_in_the_next_tick(
    world: World, tick: Tick, hanging_server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mail_assets.sources.source.WORKERS", 1)
    world.archive(MARCH, mail("a"), list_name=PIER)
    tick.sources[HARBOR] = hanging_server
    tick.patience = Patience(answer=LONG, all=0.2)
    end_time_after(monkeypatch)
    assert isinstance(tick(), dg.SkipReason)
    assert f"no time left to list {PIER}: first in the next tick" in tick.log.getvalue()
    end_time_after(monkeypatch, PIER)
    assert asked(tick(tick.cursor)) == [f"{PIER}|{MARCH}"]


@pytest.mark.parametrize("cursor", [f"{HARBOR}|{APRIL}", "5", '{"x": 1}', "{}"])
def test_cursor_of_another_release_begins_again(world: World, tick: Tick, cursor: str) -> None:
    world.archive(MARCH, mail("a"))
    assert asked(tick(cursor)) == [f"{HARBOR}|{MARCH}"]


# --- failed months are requested again -----------------------------------------------------------

#: Origin of the code of a job, without which Dagster queues no run.
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
    """A job that only succeeds or fails."""
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
    world.archives()  # known, so not new
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
