"""A backfill in several processes has the same result as in one, also if a process dies."""

import multiprocessing
import os
import signal
from collections.abc import Sequence
from functools import partial
from itertools import count
from multiprocessing.connection import Connection
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mail_assets.defs.backfill import runs, workers
from mail_assets.defs.backfill.plan import BackfillRequest, backfill_lists
from mail_assets.defs.backfill.report import (
    Event,
    MonthRange,
    RangeFinished,
    RangeSplit,
    RangeStarted,
    Report,
    RunsPlanned,
    StageStarted,
)
from mail_assets.defs.backfill.workers import (
    RangeWorkerError,
    RangeWorkers,
    RunInterrupts,
    ThreadBuild,
    WorkerReady,
    run_worker,
)
from mail_assets.defs.instance import use_dagster_home
from mail_assets.defs.partitions import MONTHLY
from mail_assets.defs.runs import MonthFinished
from mail_assets.month import ListMonth
from mail_assets.settings.settings import Settings
from mail_assets_tests.databases import dagster_url
from mail_assets_tests.forks import FORKS
from mail_assets_tests.world import APRIL, FORGET_KEY, HARBOR, MARCH, MAY, PIER, World, mail


def month_range(first: str, last: str) -> MonthRange:
    return MonthRange(ListMonth(HARBOR, first), ListMonth(HARBOR, last))


def work_with(environ: dict[str, str], *arguments: Any) -> None:
    """Run a worker in the environment of its test, which differs from that of the fork server."""
    os.environ.clear()
    os.environ.update(environ)
    run_worker(*arguments)


@pytest.fixture
def shared(tmp_path: Path, home_dsn: str, monkeypatch: pytest.MonkeyPatch) -> World:
    """An empty world; other processes find its Dagster storage by the environment."""
    url = dagster_url(home_dsn)
    monkeypatch.setenv("DAGSTER_POSTGRES_URL", url)
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "dagster"))
    monkeypatch.setenv("MAIL_HOME", str(tmp_path))
    monkeypatch.setenv("MAIL_PG_DSN", home_dsn)
    monkeypatch.setenv("MAIL_FORGET_KEY", FORGET_KEY)
    return World(tmp_path, home_dsn)


@pytest.fixture
def forked(shared: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Forked instead of spawned workers: importing Dagster takes longer than their work."""
    monkeypatch.setattr(workers, "_PROCESSES", FORKS)
    monkeypatch.setattr(workers, "run_worker", partial(work_with, {**os.environ}))


@pytest.mark.slow
@pytest.mark.usefixtures("forked")
def test_two_processes_make_the_same_as_one(shared: World) -> None:
    for name in (HARBOR, PIER):
        shared.archive(MARCH, mail("a"), mail("b", references="<a@example.org>"), list_name=name)
        shared.archive(MAY, mail("c"), mail("c"), list_name=name)
    (shared.folder(PIER) / f"{PIER}.{APRIL}.mbox").write_bytes(b"<html>please log in</html>")
    events: list[Event] = []
    request = BackfillRequest((HARBOR, PIER), jobs=2)
    report = backfill_lists(shared.settings(), request, events.append)
    filled = shared.holds()
    assert [*report.failed] == [f"{PIER} {APRIL}"]
    assert report.done == [
        *(ListMonth(HARBOR, month) for month in (MARCH, APRIL, MAY)),
        *(ListMonth(PIER, month) for month in (MARCH, MAY)),
    ]
    assert report.counts_of("messages")["stored"] == 6
    assert report.counts_of("vectors")["written"] == 6
    started = {str(event.range) for event in events if isinstance(event, RangeStarted)}
    assert started == {f"{name} {MARCH} to {MAY}" for name in (HARBOR, PIER)}
    assert not any(isinstance(event, RangeSplit) for event in events), "the run names the month"
    assert len([event for event in events if isinstance(event, MonthFinished)]) >= 5 * len(MONTHLY)
    before = shared.writes()
    again = backfill_lists(shared.settings(), BackfillRequest((HARBOR, PIER)), events.append)
    assert again.unchanged == report.done
    assert [*again.failed] == [*report.failed]
    assert not again.changed
    assert shared.writes() == before
    assert shared.holds() == filled


@pytest.mark.slow
def test_process_ends_with_its_backfill(shared: World) -> None:
    use_dagster_home(shared.settings())
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=run_worker, args=(theirs, shared.settings(), MONTHLY, False))
    process.start()
    theirs.close()
    assert ours.recv() == WorkerReady()
    ours.close()
    process.join()
    assert process.exitcode == 1


class Fakes:
    """Processes that follow the protocol of workers, but run nothing."""

    def __init__(self, home: Path) -> None:
        self.events: list[Event] = []
        self.report = Report()
        self._settings = Settings(home, home, MARCH, {}, "", "", "", "", "")

    def run(self, *ranges: MonthRange) -> None:
        workers = RangeWorkers(self._settings, MONTHLY, 2, self.events.append, self.report)
        workers.run_ranges(ranges)


def start_fake(
    connection: Connection, settings: Settings, assets: Sequence[str], allow_loss: bool
) -> None:
    """Finish every month at once, but die in April, and in May interrupt the backfill.

    It ends with its pipe. The backfill forwards Ctrl-C only to processes that reported ready.
    """
    backfill = multiprocessing.parent_process()
    assert backfill
    assert backfill.pid
    os.setpgid(0, 0)
    interrupts = RunInterrupts()
    signal.signal(signal.SIGINT, interrupts)
    connection.send(WorkerReady())
    while (one := connection.recv()) is not None:
        report = Report()
        if isinstance(one, ThreadBuild):
            connection.send(StageStarted("threads"))
            connection.send(report)
            continue
        if APRIL in {month.month for month in one.months}:
            os.kill(os.getpid(), signal.SIGKILL)
        try:
            interrupts.start_run()
            if one.first.month == MAY:
                os.kill(backfill.pid, signal.SIGINT)
                while not connection.poll(0.01):  # a signal just before does not interrupt it
                    pass
            report.done = one.months
        except KeyboardInterrupt:
            report.interrupted = True
        interrupts.is_running = False
        connection.send(report)


def die_at_start(*_: object) -> None:
    """Die before the first message, as if a library were missing."""
    os._exit(3)


@pytest.fixture
def fakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fakes:
    monkeypatch.setattr(workers, "_PROCESSES", FORKS)
    monkeypatch.setattr(workers, "run_worker", start_fake)
    return Fakes(tmp_path)


def test_month_that_kills_its_process_fails_alone(fakes: Fakes) -> None:
    whole = month_range("2024-02", "2024-04")
    fakes.run(whole, month_range("2024-06", "2024-07"))
    assert fakes.report.done == [
        ListMonth(HARBOR, month) for month in ("2024-02", "2024-03", "2024-06", "2024-07")
    ]
    [(month, reason)] = fakes.report.failed.items()
    assert month == f"{HARBOR} {APRIL}"
    assert reason.startswith("its process was killed by SIGKILL")
    assert RangeSplit(whole) in fakes.events
    assert RangeFinished(month_range(APRIL, APRIL)) in fakes.events


def test_one_process_builds_threads_when_it_is_time(
    fakes: Fakes, monkeypatch: pytest.MonkeyPatch
) -> None:
    ranges = [month_range(month, month) for month in ("2024-01", "2024-02", "2024-03")]
    fakes.run(*ranges)
    assert fakes.events == [RunsPlanned(3, MONTHLY)]
    passing = count(step=1_000.0)
    monkeypatch.setattr(workers, "time", SimpleNamespace(monotonic=lambda: next(passing)))
    fakes.run(*ranges)
    assert StageStarted("threads") in fakes.events
    assert fakes.report.done == sorted([one.first for one in ranges] * 2)


@pytest.mark.slow
@pytest.mark.usefixtures("forked")
@pytest.mark.parametrize("jobs", [1, 2])
def test_long_backfill_builds_threads_in_between(
    shared: World, monkeypatch: pytest.MonkeyPatch, jobs: int
) -> None:
    for module in (runs, workers):
        monkeypatch.setattr(module, "REFRESH_THREADS", 0.5)
    shared.archive("2024-12", mail("a"))
    shared.archive("2025-01", mail("b", references="<a@example.org>"))  # a separate range
    shared.archive(MARCH, mail("c"), list_name=PIER)
    events: list[Event] = []
    request = BackfillRequest((HARBOR, PIER), jobs=jobs)
    report = backfill_lists(shared.settings(), request, events.append)
    assert events.count(StageStarted("threads")) >= 2
    assert (report.failed, report.threads) == ({}, 2)


def test_ctrl_c_stops_the_runs_and_keeps_the_result(fakes: Fakes) -> None:
    with pytest.raises(KeyboardInterrupt):
        fakes.run(month_range(MARCH, MARCH), month_range(MAY, MAY))
    assert fakes.report.interrupted
    assert fakes.report.failed == {}
    assert multiprocessing.active_children() == []


def test_process_that_cannot_start_ends_the_backfill(
    fakes: Fakes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "run_worker", die_at_start)
    with pytest.raises(RangeWorkerError, match="exit code 3 while it was starting"):
        fakes.run(month_range(MARCH, MARCH))
    assert multiprocessing.active_children() == []
