"""Months that a backfill passes over: they become no run, and what is due is not passed over."""

import os

import pytest

from mail_assets.cli.backfill import report_lines
from mail_assets.defs.backfill.plan import fill_index
from mail_assets.defs.backfill.report import Event, RangeStarted
from mail_assets.defs.partitions import asset_key
from mail_assets.month import ListMonth
from mail_assets.sources.folder import FolderSource
from mail_assets.sources.source import SourceError
from mail_assets.tables.mbox_archives import read_archive
from mail_assets_tests.defs.backfill.conftest import Fill
from mail_assets_tests.defs.dagster_world import DagsterWorld
from mail_assets_tests.world import APRIL, EPOCH, HARBOR, MARCH, MAY, PIER, mail


def ranges(events: list[Event]) -> list[str]:
    """Return the ranges that were run since this was asked last."""
    found = [str(event.range) for event in events if isinstance(event, RangeStarted)]
    events.clear()
    return found


@pytest.fixture
def filled(world: DagsterWorld, fill: Fill, events: list[Event]) -> DagsterWorld:
    """Two months, one between them without an archive, and a month of another list."""
    world.archive(MARCH, mail("a"), mail("b"))
    world.archive(MAY, mail("c"))
    world.archive(MARCH, mail("d"), list_name=PIER)
    assert fill().failed == {}
    events.clear()
    return world


def test_unchanged_months_are_no_run_and_are_counted(
    filled: DagsterWorld, fill: Fill, events: list[Event]
) -> None:
    runs = filled.instance.get_runs_count()
    before, first = filled.writes(), filled.rows("partitions")
    report = fill()
    assert ranges(events) == []
    assert filled.instance.get_runs_count() == runs + 1, "the threads"
    assert filled.writes() == before
    assert filled.rows("partitions") == first
    assert len(report.unchanged) == 4
    assert report.done == []
    size = sum(path.stat().st_size for path in (filled.home / "lists").rglob("*.mbox"))
    line, *counts = report_lines(report)
    assert line == "4 months: nothing changed"
    assert counts[:2] == [
        f"  mbox_archives  found 4, bytes {size}, fetched 0",
        "  messages       stored 4, duplicates 0, quarantined 0, removed 0, written 0, deleted 0",
    ]


def test_what_its_source_has_changed_is_run_alone(
    filled: DagsterWorld, fill: Fill, events: list[Event]
) -> None:
    filled.archive(MAY, mail("c"), mail("e"), at=9)
    report = fill()
    assert ranges(events) == [f"{HARBOR} {MAY} to {MAY}"]
    assert next(iter(report_lines(report))) == "1 month materialized, 3 unchanged, 0 failed"
    assert report.counts_of("messages")["stored"] == 5
    filled.archive(APRIL, mail("f"))
    fill()
    assert ranges(events) == [f"{HARBOR} {APRIL} to {APRIL}"]


def test_an_archive_that_is_gone_from_its_source_fails_again_each_time(
    filled: DagsterWorld, fill: Fill, events: list[Event]
) -> None:
    (filled.folder(PIER) / f"{PIER}.{MARCH}.mbox").unlink()
    for _ in range(2):
        report = fill()
        assert [*report.failed] == [f"{PIER} {MARCH}"]
        assert ranges(events) == [f"{PIER} {MARCH} to {MARCH}"]


def test_a_loss_that_was_accepted_and_not_worked_off_is_by_the_next_backfill(
    filled: DagsterWorld, fill: Fill, events: list[Event]
) -> None:
    (filled.folder() / f"{HARBOR}.{MAY}.mbox").unlink()
    filled.archives(MAY, allow_loss=True)
    assert fill().failed == {}
    assert ranges(events) == [f"{HARBOR} {MAY} to {MAY}"]
    assert filled.rows("messages", "message_id", "message_id = 'c@example.org'") == []
    fill()
    assert ranges(events) == []


def test_a_month_whose_check_has_failed_is_run_until_it_passes(
    filled: DagsterWorld, fill: Fill, events: list[Event]
) -> None:
    with filled.connect() as connection:
        connection.execute("update messages set body_text = 'x' where message_id = 'c@example.org'")
        connection.execute(
            "delete from passed_checks where asset = 'chunks' and (list, month) = (%s, %s)",
            [HARBOR, MAY],
        )
    for _ in range(2):
        assert [*fill().failed] == [f"{HARBOR} {MAY}"]
        assert ranges(events) == [f"{HARBOR} {MAY} to {MAY}"]


def test_a_month_that_the_ui_shows_as_failed_or_missing_is_run(
    filled: DagsterWorld, fill: Fill, events: list[Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise SourceError("down")

    with monkeypatch.context() as patch:
        patch.setattr("mail_assets.defs.assets.mail.fetch_archive", refuse)
        assert not filled.month(MAY).success
    fill()
    assert ranges(events) == [f"{HARBOR} {MAY} to {MAY}"]
    filled.instance.wipe_assets([asset_key("words")])
    fill()
    assert len(ranges(events)) == 2, "all months of both lists"
    fill()
    assert ranges(events) == []


def test_a_source_whose_listing_proves_nothing_is_asked_for_each_month(
    filled: DagsterWorld, fill: Fill, events: list[Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FolderSource, "listing_proves", False)
    path = filled.archive(MAY, mail("c", from_line="From bob@example.org Tue Mar  5 09:00:00 2024"))
    os.utime(path, (EPOCH + 9, EPOCH + 9))
    version = filled.rows("mbox_archives", "version", f"(list, month) = ('{HARBOR}', '{MAY}')")
    fill()
    assert ranges(events) == [], "other bytes, and the same messages"
    with filled.connect() as connection:
        archive = read_archive(connection, ListMonth(HARBOR, MAY))
    assert archive
    assert [(archive.version,)] != version, "next time there is nothing to read"
    filled.archive(MAY, mail("c"), mail("e"), at=19)
    fill()
    assert ranges(events) == [f"{HARBOR} {MAY} to {MAY}"]


def test_a_source_that_cannot_be_asked_is_left_to_the_runs(
    filled: DagsterWorld, fill: Fill, events: list[Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []

    def refuse(*given: object) -> None:
        asked.append(given)
        raise SourceError("down")

    monkeypatch.setattr(FolderSource, "listing_proves", False)
    monkeypatch.setattr("mail_assets.defs.backfill.plan.confirm_archive", refuse)
    fill()
    assert len(ranges(events)) == 2
    assert len(asked) == 2, "once for each list"


def test_an_index_is_filled_where_months_lack_it_only(
    filled: DagsterWorld, events: list[Event]
) -> None:
    report = fill_index(filled.settings(), events.append)
    assert ranges(events) == []
    assert len(report.unchanged) == 3
    key = filled.rows("vectors", "key", f"list = '{PIER}'")[0][0]
    filled.index.delete([key])
    assert fill_index(filled.settings(), events.append).done == [ListMonth(PIER, MARCH)]
