"""The sensor for archives: what it asks for, in which portions, and when it stays silent."""

import json
from pathlib import Path

import dagster as dg
import pytest

from mail_assets.defs import sensors
from mail_assets.defs.resources.archive_source import ArchiveSourceResource
from mail_assets.defs.resources.database import DatabaseResource
from mail_assets.defs.sensors import build_new_archives
from mail_assets_tests.world import APRIL, HARBOR, MARCH, PIER, World, mail


@pytest.fixture
def world(tmp_path: Path, postgres_dsn: str) -> World:
    """An empty world."""
    return World(tmp_path, postgres_dsn)


def tick(world: World, cursor: str | None = None) -> dg.SensorResult | dg.SkipReason:
    lists = world.settings().lists
    context = dg.build_sensor_context(
        cursor=cursor,
        resources={
            "database": DatabaseResource(home=str(world.home), dsn=world.dsn),
            "archive_source": ArchiveSourceResource(
                sources={name: one.source for name, one in lists.items()},
                starts={name: one.start for name, one in lists.items()},
            ),
        },
    )
    with context:
        result = build_new_archives((*lists,), "2020-01")(context)
    assert isinstance(result, dg.SensorResult | dg.SkipReason)
    return result


def asked(result: dg.SensorResult | dg.SkipReason) -> list[str]:
    assert isinstance(result, dg.SensorResult)
    return [str(request.partition_key) for request in result.run_requests or []]


def test_new_archives_of_all_lists_are_asked_for(world: World) -> None:
    world.archive(MARCH, mail("a"))
    world.archive(APRIL, mail("b"), list_name=PIER)
    assert asked(tick(world)) == [f"{HARBOR}|{MARCH}", f"{PIER}|{APRIL}"]


def test_what_has_not_changed_is_left_alone(world: World) -> None:
    world.archive(MARCH, mail("a"))
    world.archives()
    result = tick(world)
    assert isinstance(result, dg.SkipReason)
    assert result.skip_message == "no new or changed archives"


def test_a_changed_archive_is_asked_for_under_another_run_key(world: World) -> None:
    world.archive(MARCH, mail("a"))
    first = tick(world)
    world.archives()
    world.archive(MARCH, mail("a"), mail("b"), at=1)
    second = tick(world)
    assert asked(first) == asked(second) == [f"{HARBOR}|{MARCH}"]
    assert isinstance(first, dg.SensorResult)
    assert isinstance(second, dg.SensorResult)
    [before], [after] = first.run_requests or [], second.run_requests or []
    assert before.run_key != after.run_key
    size = len(mail("a") + mail("b"))
    assert str(after.run_key).startswith(f"{HARBOR}|{MARCH}@{size}-")


def test_an_archive_of_an_old_month_that_comes_late_is_asked_for(world: World) -> None:
    world.archive(APRIL, mail("a"))
    world.archives(APRIL)
    world.archives(MARCH)  # the source had none yet
    world.archive(MARCH, mail("b"))
    assert asked(tick(world, cursor=f"{HARBOR}|{APRIL}")) == [f"{HARBOR}|{MARCH}"]


def test_a_source_that_cannot_tell_versions_is_asked_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "mail_assets.sources.folder.FolderSource.versions",
        lambda source: source.keyed({MARCH: "", APRIL: ""}),
    )
    world.archives(MARCH)
    assert asked(tick(world)) == [f"{HARBOR}|{APRIL}", f"{PIER}|{MARCH}", f"{PIER}|{APRIL}"]


def test_months_outside_the_partitions_are_passed_over(world: World) -> None:
    world.archive("2019-12", mail("a"))
    world.archive("2098-01", mail("a"))
    assert isinstance(tick(world), dg.SkipReason)


def test_a_tick_asks_for_a_portion_and_the_next_goes_on(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sensors, "BATCH", 2)
    months = ["2023-01", "2023-02", "2023-03", "2023-04", "2023-05"]
    for month in months:
        world.archive(month, mail("a"))
    portions, cursors = [], [None]
    for _ in range(4):
        result = tick(world, cursors[-1])
        portions.append([key.partition("|")[2] for key in asked(result)])
        assert isinstance(result, dg.SensorResult)
        cursors.append(result.cursor)  # type: ignore[arg-type]
    assert portions == [months[:2], months[2:4], months[4:], months[:2]]
    assert all(len(json.dumps(cursor)) < 150 for cursor in cursors)


def test_one_source_that_is_down_does_not_stop_the_others(world: World) -> None:
    world.folder(HARBOR).rmdir()
    world.archive(MARCH, mail("a"), list_name=PIER)
    assert asked(tick(world)) == [f"{PIER}|{MARCH}"]
    world.archives(list_name=PIER)
    result = tick(world)
    assert isinstance(result, dg.SkipReason)
    assert result.skip_message == f"no new or changed archives; could not list {HARBOR}"


def test_nothing_runs_until_it_is_switched_on() -> None:
    sensor = build_new_archives((HARBOR,), "2020-01")
    assert sensor.default_status == dg.DefaultSensorStatus.STOPPED
