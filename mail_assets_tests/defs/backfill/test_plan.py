"""Backfills in this process: their months, skipped months, and results."""

import signal
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import dagster as dg
import pytest

from mail_assets.defs.backfill import report as counting
from mail_assets.defs.backfill.plan import (
    find_months,
    months_archived,
)
from mail_assets.defs.backfill.report import (
    Event,
    RangeFinished,
    RangeSplit,
    RangeStarted,
    RunsPlanned,
)
from mail_assets.defs.definitions import build_defs
from mail_assets.defs.runs import PROCESS, RANGE, LogLine, MonthFinished
from mail_assets.month import ListMonth
from mail_assets.processes.machine import name_process
from mail_assets.settings.settings import Settings
from mail_assets.sources.source import SourceError
from mail_assets.steps.fetch_archive import fetch_archive
from mail_assets.words.lance import LanceWordIndex
from mail_assets_tests.defs.backfill.conftest import Fill
from mail_assets_tests.defs.dagster_world import DagsterWorld
from mail_assets_tests.processes.test_machine import child, ended_process
from mail_assets_tests.world import APRIL, HARBOR, LATER, MARCH, MAY, PIER, mail

__all__ = ["child", "ended_process"]  # fixtures


def test_backfill_fills_months_and_gaps_in_one_run_a_list(
    world: DagsterWorld, fill: Fill, events: list[Event]
) -> None:
    world.archive(MARCH, mail("a"), mail("b"), mail("a"))
    world.archive(MAY, mail("c", references="<a@example.org>"))
    world.archive(MARCH, mail("a"), list_name=PIER)
    report = fill()
    assert report.failed == {}
    assert report.done == [
        *(ListMonth(HARBOR, month) for month in (MARCH, APRIL, MAY)),
        ListMonth(PIER, MARCH),
    ]
    started = [str(event.range) for event in events if isinstance(event, RangeStarted)]
    assert started == [f"{HARBOR} {MARCH} to {MAY}", f"{PIER} {MARCH} to {MARCH}"]
    counts = report.counts_of
    assert counts("mbox_archives")["found"] == 5
    assert counts("mbox_archives")["fetched"] == 3
    messages = counts("messages")
    assert (messages["stored"], messages["duplicates"], messages["quarantined"]) == (4, 1, 0)
    assert messages["written"] == len(world.rows("messages")) == 4
    assert counts("chunks")["chunks"] == len(world.rows("chunks")) == 4
    assert (counts("embeddings")["encoded"], counts("embeddings")["reused"]) == (3, 1)
    assert counts("vectors")["chunks"] == counts("vectors")["written"] == world.index.count()
    assert report.threads == 2
    assert report.changed


def test_backfill_cancels_runs_of_killed_processes(
    world: DagsterWorld, fill: Fill, ended_process: str
) -> None:
    killed = dg.DagsterRun("any", status=dg.DagsterRunStatus.STARTED, tags={PROCESS: ended_process})
    world.instance.add_run(killed)
    world.archive(MARCH, mail("a"))
    fill(HARBOR)
    runs = {run.run_id: run for run in world.instance.get_runs()}
    assert runs.pop(killed.run_id).status == dg.DagsterRunStatus.CANCELED
    assert {run.tags[PROCESS] for run in runs.values()} == {name_process()}


def test_index_with_few_changes_is_not_maintained(
    world: DagsterWorld, fill: Fill, monkeypatch: pytest.MonkeyPatch
) -> None:
    mails = [mail("a"), mail("b")]
    world.archive(MARCH, *mails)
    fill()
    done = []
    monkeypatch.setattr(LanceWordIndex, "maintain", lambda index: done.append(index))
    for share, maintained in ((1.0, 0), (0.01, 1)):
        monkeypatch.setattr(counting, "SHARE_CHANGED", share)
        mails.append(mail(f"c{maintained}", from_line=LATER))
        world.archive(MARCH, *mails, at=9 + maintained)
        assert fill().counts_of("words")["written"] == 1
        assert len(done) == maintained
    assert world.mail_words.index.count() == 4


def test_broken_month_of_a_backfill_fails_alone(
    world: DagsterWorld, fill: Fill, events: list[Event]
) -> None:
    world.archive(MARCH, mail("a"))
    (world.folder() / f"{HARBOR}.{APRIL}.mbox").write_bytes(b"<html>please log in</html>")
    world.archive(MAY, mail("b"))
    report = fill(HARBOR)
    assert report.done == [ListMonth(HARBOR, MARCH), ListMonth(HARBOR, MAY)]
    assert [*report.failed] == [f"{HARBOR} {APRIL}"]
    assert "it is an HTML page" in report.failed[f"{HARBOR} {APRIL}"]
    assert len(world.instance.get_runs(dg.RunsFilter(tags={RANGE[0]: f"{HARBOR}|{MARCH}"}))) == 1
    assert report.counts_of("mbox_archives")["fetched"] == 2, "by the run of the whole year"
    assert report.counts_of("mbox_archives")["found"] == 2
    assert report.counts_of("vectors")["written"] == 2
    assert report.threads == 2


def test_blocking_check_fails_a_month_by_its_name(world: DagsterWorld, fill: Fill) -> None:
    world.archive(MARCH, mail("a"))
    world.spoil_chunks()
    report = fill(HARBOR)
    assert report.done == []
    [(month, reason)] = report.failed.items()
    assert month == f"{HARBOR} {MARCH}"
    assert reason == "check spans_point_into_bodies failed: wrong 1"


def test_unforeseen_error_of_a_month_is_reported(world: DagsterWorld, fill: Fill) -> None:
    world.archive(MARCH, mail("a"))
    with world.connect() as connection:
        connection.execute(
            "create function refuse() returns trigger language plpgsql as"
            " $$ begin raise 'the pump is broken' using errcode = 'io_error'; end $$;"
            "create trigger refused before insert on messages execute function refuse()"
        )
    report = fill(HARBOR)
    reason = report.failed[f"{HARBOR} {MARCH}"]
    assert reason.startswith("the pump is broken")


def test_list_whose_source_is_down_fails_alone(
    world: DagsterWorld, fill: Fill, events: list[Event]
) -> None:
    world.archive(MARCH, mail("a"), list_name=PIER)
    world.folder(HARBOR).rmdir()
    report = fill()
    assert report.done == [ListMonth(PIER, MARCH)]
    assert [*report.failed] == [f"list {HARBOR}"]
    assert "cannot be read" in report.failed[f"list {HARBOR}"]


def test_definitions_and_partitions_are_made_once(
    world: DagsterWorld, fill: Fill, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed, built = [], []

    def build(settings: Settings) -> dg.Definitions:
        built.append(settings)
        return build_defs(settings)

    monkeypatch.setattr("mail_assets.defs.backfill.plan.build_defs", build)
    list_months = dg.MonthlyPartitionsDefinition.get_partition_keys

    def count(months: dg.MonthlyPartitionsDefinition, *args: Any, **named: Any) -> Sequence[str]:
        listed.append(months)
        return list_months(months, *args, **named)

    monkeypatch.setattr(dg.MonthlyPartitionsDefinition, "get_partition_keys", count)
    world.archive(MARCH, mail("a"))
    world.archive(MARCH, mail("b"), list_name=PIER)
    assert len(fill().done) == 2
    assert len(listed) <= 4, "not once for each check"
    assert len(built) == 1


def test_events_have_the_plan_and_what_is_done(
    world: DagsterWorld, fill: Fill, events: list[Event]
) -> None:
    world.archive(MARCH, mail("a"))
    world.archive(APRIL, mail("b"))
    fill()
    march, april = ListMonth(HARBOR, MARCH), ListMonth(HARBOR, APRIL)
    [planned] = [event for event in events if isinstance(event, RunsPlanned)]
    finished = [event for event in events if isinstance(event, MonthFinished)]
    assert planned.months == 2
    made = [(event.asset, event.month) for event in finished]
    assert made[:6] == [(one, month) for one in planned.assets[:3] for month in (march, april)]
    assert {*made} == {(one, month) for one in planned.assets for month in (march, april)}
    assert len(made) == 2 * len(planned.assets)
    assert {event.asset for event in finished if not event.changed} == {"patches"}
    lines = [str(event) for event in events if isinstance(event, LogLine)]
    assert any(f" messages {march}: found 1" in line for line in lines)
    assert not any(isinstance(event, RangeSplit) for event in events)
    assert [type(event) for event in events].count(RangeFinished) == 1


def test_month_of_a_retried_step_is_counted_once(
    world: DagsterWorld, fill: Fill, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.archive(MARCH, mail("a"), mail("b"))
    world.archive(APRIL, mail("c"))
    failures = [SourceError("busy", retryable=True)]

    def fetch_later(*arguments: object) -> object:
        if ListMonth(HARBOR, APRIL) in arguments and failures:
            raise failures.pop()
        return fetch_archive(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr("mail_assets.defs.assets.mail.fetch_archive", fetch_later)
    report = fill(HARBOR)
    assert failures == []
    assert report.failed == {}
    assert len(report.done) == 2
    assert report.counts_of("mbox_archives")["found"] == 3
    assert report.counts_of("mbox_archives")["fetched"] == 2


@pytest.mark.parametrize("step", ["assets.mail.fetch_archive", "assets.index.cut_chunks"])
def test_ctrl_c_ends_a_backfill_and_keeps_its_result(
    world: DagsterWorld, fill: Fill, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """The first step has a retry policy; Dagster retries it also after Ctrl-C."""
    world.archive(MARCH, mail("a"), list_name=HARBOR)
    world.archive(MARCH, mail("b"), list_name=PIER)
    interrupts = []

    def interrupt(*arguments: object, **options: object) -> None:
        interrupts.append(arguments)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(f"mail_assets.defs.{step}", interrupt)
    report = fill()
    assert report.interrupted
    assert (report.done, report.failed) == ([], {})
    assert len(interrupts) == 1
    assert report.counts_of("mbox_archives")["fetched"] == ("chunk" in step)
    assert world.rows("threads") == []


def of_harbor(*months: str) -> list[ListMonth]:
    return [ListMonth(HARBOR, month) for month in months]


def test_months_are_those_of_source_and_archive(world: DagsterWorld) -> None:
    world.archive(MARCH, mail("a")).unlink()
    world.archive(MARCH, mail("a"))
    world.archives(MARCH)
    (world.folder() / f"{HARBOR}.{MARCH}.mbox").unlink()
    world.archive(MAY, mail("b"))
    world.archive("2024-06", mail("c"))
    for month in ("2023-12", "2098-01"):
        world.archive(month, mail("x"))
    settings = world.settings()
    assert find_months(settings, HARBOR).partitions == of_harbor(MARCH, MAY, "2024-06")
    of_spring = find_months(settings, HARBOR, APRIL, MAY)
    assert of_spring.partitions == of_harbor(MAY)
    assert of_spring.beyond == of_harbor("2023-12", MARCH, "2024-06", "2098-01")
    nothing = find_months(settings, PIER)
    assert (nothing.partitions, nothing.outside) == ([], [])
    early = replace(settings, first_month="2023-01")
    assert find_months(early, HARBOR, None, MARCH).partitions == of_harbor("2023-12", MARCH)
    assert months_archived(settings, HARBOR) == of_harbor(MARCH)


def test_months_outside_of_partitions_exclude_future_ones(world: DagsterWorld) -> None:
    for month in ("2023-12", MARCH, MAY, "2098-01"):
        world.archive(month, mail("x"))
    settings = world.settings()
    assert find_months(settings, HARBOR).outside == of_harbor("2023-12")
    closed = replace(settings, last_month=APRIL)
    known = find_months(closed, HARBOR)
    assert known.partitions == of_harbor(MARCH)
    assert known.outside == of_harbor("2023-12", MAY, "2098-01")
    assert find_months(closed, HARBOR, MARCH, APRIL).outside == []
