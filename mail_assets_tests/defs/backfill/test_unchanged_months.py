"""A second backfill skips unchanged months, and runs the others again."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mail_assets.cli.backfill import report_lines
from mail_assets.defs.backfill.plan import (
    BackfillRequest,
    backfill_lists,
    fill_index,
    plan_ranges,
)
from mail_assets.defs.backfill.report import Event, RangeStarted, Report
from mail_assets.defs.definitions import CONTENT_CHECKS
from mail_assets.defs.partitions import MONTHLY, asset_key
from mail_assets.month import ListMonth
from mail_assets.sources.folder import FolderSource
from mail_assets.sources.source import SourceError
from mail_assets.tables.mbox_archives import read_archive
from mail_assets.words.index import WordsError
from mail_assets_tests.defs.backfill.conftest import Fill, use_instance
from mail_assets_tests.defs.dagster_world import DagsterWorld, KeptDagster, kept_dagster
from mail_assets_tests.world import APRIL, EPOCH, HARBOR, MARCH, MAY, PIER, mail

JUNE = "2024-06"

#: Function that names the ranges that a backfill of both lists would run now.
Planned = Callable[[], list[str]]


def fill_lists(world: DagsterWorld, patch: pytest.MonkeyPatch) -> None:
    """Fill two months of a list, with an empty month between them, and a month of another list."""
    use_instance(world, patch)
    world.archive(MARCH, mail("a"), mail("b"))
    world.archive(MAY, mail("c"))
    world.archive(MARCH, mail("d"), list_name=PIER)
    request = BackfillRequest((HARBOR, PIER))
    assert backfill_lists(world.settings(), request, lambda _: None).failed == {}


filled = kept_dagster(fill_lists)


@pytest.fixture
def world(
    filled: KeptDagster, model_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[DagsterWorld]:
    with filled.copied(model_cache, monkeypatch) as made:
        use_instance(made, monkeypatch)
        yield made


@pytest.fixture
def planned(world: DagsterWorld) -> Planned:
    def plan() -> list[str]:
        request = BackfillRequest((HARBOR, PIER))
        return [*map(str, plan_ranges(world.settings(), world.instance, request, Report()))]

    return plan


def ranges(events: list[Event]) -> list[str]:
    """Return the ranges that have run since the last call."""
    found = [str(event.range) for event in events if isinstance(event, RangeStarted)]
    events.clear()
    return found


def test_only_changed_months_are_run_and_all_counted(
    world: DagsterWorld, fill: Fill, events: list[Event]
) -> None:
    runs = world.instance.get_runs_count()
    before, first = world.writes(), world.rows("partitions")
    report = fill()
    assert ranges(events) == []
    assert world.instance.get_runs_count() == runs + 1, "the threads"
    assert world.writes() == before
    assert world.rows("partitions") == first
    assert len(report.unchanged) == 4
    assert (report.done, report.changed) == ([], False)
    size = sum(path.stat().st_size for path in (world.home / "lists").rglob("*.mbox"))
    line, *counts = report_lines(report)
    assert line == "4 months: nothing changed"
    assert counts[:2] == [
        f"  mbox_archives  found 4, bytes {size}, fetched 0",
        "  messages       stored 4, duplicates 0, quarantined 0, removed 0, written 0, deleted 0",
    ]
    world.archive(MAY, mail("c"), mail("e"), at=9)
    world.archive(APRIL, mail("f"))
    report = fill()
    assert ranges(events) == [f"{HARBOR} {APRIL} to {MAY}"]
    assert next(iter(report_lines(report))) == "2 months materialized, 2 unchanged, 0 failed"
    assert report.counts_of("messages")["stored"] == 6


def test_vanished_archive_fails_until_the_loss_is_accepted(
    world: DagsterWorld, fill: Fill, planned: Planned
) -> None:
    (world.folder(PIER) / f"{PIER}.{MARCH}.mbox").unlink()
    assert [*fill().failed] == [f"{PIER} {MARCH}"]
    assert planned() == [f"{PIER} {MARCH} to {MARCH}"]
    world.archives(MARCH, list_name=PIER, allow_loss=True)
    assert planned() == [f"{PIER} {MARCH} to {MARCH}"]
    assert fill().failed == {}
    assert world.rows("messages", "message_id", "message_id = 'd@example.org'") == []
    assert planned() == []


def test_month_that_a_check_has_not_looked_at_is_run(world: DagsterWorld, planned: Planned) -> None:
    """A killed run can have made all rows, and checked none."""
    place = "where asset = %s and check_name = %s and (list, month) = (%s, %s)"
    for asset, check in (one for one in CONTENT_CHECKS if one[0] in MONTHLY):
        row = [asset, check, HARBOR, MAY]
        with world.connect() as connection:
            connection.execute(f"update month_checks set month = '' {place}".encode(), row)
        assert planned() == [f"{HARBOR} {MAY} to {MAY}"], row
        with world.connect() as connection:
            connection.execute("update month_checks set month = %s where month = ''", [MAY])
    assert planned() == []


def test_month_with_a_failed_check_is_run_until_it_passes(
    world: DagsterWorld, fill: Fill, planned: Planned
) -> None:
    with world.connect() as connection:
        connection.execute("update messages set body_text = 'x' where message_id = 'c@example.org'")
        connection.execute(
            "delete from month_checks where asset = 'chunks' and (list, month) = (%s, %s)",
            [HARBOR, MAY],
        )
    assert planned() == [f"{HARBOR} {MAY} to {MAY}"]
    assert [*fill().failed] == [f"{HARBOR} {MAY}"]
    assert planned() == [f"{HARBOR} {MAY} to {MAY}"]


@pytest.mark.parametrize(("part", "error"), [
    ("assets.mail.fetch_archive", SourceError("down")),
    ("checks.index.compare_months", WordsError("the connection was lost")),
], ids=["before", "after"])  # fmt: skip
def test_month_shown_as_failed_is_run(
    world: DagsterWorld,
    fill: Fill,
    planned: Planned,
    monkeypatch: pytest.MonkeyPatch,
    part: str,
    error: Exception,
) -> None:
    def fail(*_: object) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(f"mail_assets.defs.{part}", fail)
        assert not world.month(MAY).success
    assert planned() == [f"{HARBOR} {MAY} to {MAY}"]
    assert fill().failed == {}
    assert planned() == []


def test_months_missing_in_the_ui_are_run(
    world: DagsterWorld, fill: Fill, planned: Planned, events: list[Event]
) -> None:
    world.instance.wipe_assets([asset_key("words")])
    fill()
    assert len(ranges(events)) == 2, "all months of both lists"
    assert planned() == []


def test_empty_months_that_failed_are_run_alone(
    world: DagsterWorld, events: list[Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise WordsError("damaged")

    empty = (APRIL, JUNE)  # between months with mail, and after them
    with monkeypatch.context() as patch:
        patch.setattr("mail_assets.defs.assets.index.write_words", fail)
        for month in empty:
            assert not world.month(month).success
    request = BackfillRequest((HARBOR,), APRIL, JUNE)
    for expected in ([f"{HARBOR} {month} to {month}" for month in empty], []):
        assert backfill_lists(world.settings(), request, events.append).failed == {}
        assert ranges(events) == expected


def test_source_with_a_weak_listing_is_asked_by_month(
    world: DagsterWorld, planned: Planned, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FolderSource, "listing_proves", False)
    path = world.archive(MAY, mail("c", from_line="From bob@example.org Tue Mar  5 09:00:00 2024"))
    os.utime(path, (EPOCH + 9, EPOCH + 9))
    version = world.rows("mbox_archives", "version", f"(list, month) = ('{HARBOR}', '{MAY}')")
    assert planned() == [], "other bytes, and the same messages"
    with world.connect() as connection:
        archive = read_archive(connection, ListMonth(HARBOR, MAY))
    assert archive
    assert [(archive.version,)] != version, "next time there is nothing to read"
    world.archive(MAY, mail("c"), mail("e"), at=19)
    assert planned() == [f"{HARBOR} {MAY} to {MAY}"]


def test_months_of_an_unreachable_source_are_run(
    planned: Planned, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []

    def refuse(*given: object) -> None:
        asked.append(given)
        raise SourceError("down")

    monkeypatch.setattr(FolderSource, "listing_proves", False)
    monkeypatch.setattr("mail_assets.defs.backfill.plan.confirm_archive", refuse)
    assert len(planned()) == 2
    assert len(asked) == 2, "once for each list"


def test_index_is_filled_only_for_missing_months(world: DagsterWorld, events: list[Event]) -> None:
    report = fill_index(world.settings(), events.append)
    assert ranges(events) == []
    assert len(report.unchanged) == 3
    key = world.rows("vectors", "key", f"list = '{PIER}'")[0][0]
    world.index.delete([key])
    assert fill_index(world.settings(), events.append).done == [ListMonth(PIER, MARCH)]
