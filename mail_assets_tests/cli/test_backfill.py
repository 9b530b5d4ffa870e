"""`mail-assets backfill`: its output, its exit codes, and its progress on standard error."""

import datetime as dt
import json
import logging
import os
import pty
import select
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import Result

from mail_assets.cli.backfill import (
    check_range,
    follow_backfill,
    launch_lines,
    report_lines,
    show_activity,
)
from mail_assets.cli.backfill_display import print_event
from mail_assets.defs.backfill.daemon import Launched
from mail_assets.defs.backfill.report import (
    Event,
    MonthRange,
    RangeFinished,
    RangeSplit,
    RangeStarted,
    Report,
    RunsPlanned,
)
from mail_assets.defs.partitions import MONTHLY
from mail_assets.defs.runs import LogLine
from mail_assets.month import ListMonth
from mail_assets.settings.settings import load_settings
from mail_assets.settings.values import SettingsError
from mail_assets_tests.cli.conftest import assert_fails, invoke
from mail_assets_tests.defs.backfill.conftest import world
from mail_assets_tests.defs.dagster_world import DagsterWorld
from mail_assets_tests.world import APRIL, HARBOR, MARCH, mail

__all__ = ["world"]  # fixture


Backfill = Callable[..., Result]


@pytest.fixture
def backfill(world: DagsterWorld) -> Backfill:
    """`backfill("--launch", bounds='last_month = "2020-12"')`: the command, for one list."""

    def backfill(*options: str, bounds: str = "") -> Result:
        lists = world.home / "lists.toml"
        lists.write_text(f"{bounds}\n[{HARBOR}]\nsource = {json.dumps(str(world.folder()))}\n")
        env = {"MAIL_HOME": str(world.home), "MAIL_LISTS": str(lists)}
        return invoke("backfill", "--list", HARBOR, *options, env=env)

    return backfill


def test_backfill_prints_its_result_on_standard_output(
    world: DagsterWorld, backfill: Backfill
) -> None:
    for month in (MARCH, APRIL):
        world.archive(month, mail("a"))
    result = backfill("--from", MARCH, "--to", MARCH)
    assert result.exit_code == 0
    first, *assets, threads = result.stdout.splitlines()
    assert first == "1 month materialized, 0 failed"
    assert [line.split()[0] for line in assets] == [*MONTHLY]
    assert assets[1] == (
        "  messages       stored 1, duplicates 0, quarantined 0, removed 0, written 1, deleted 0"
    )
    assert threads == "  threads        1"
    began, *lines = result.stderr.splitlines()
    assert began == f"{HARBOR} {MARCH} to {MARCH}"
    assert any(f" messages {HARBOR} {MARCH}: found 1" in line for line in lines)
    assert "no month in this range" not in result.stderr


def test_backfill_names_a_failed_month_and_exits_1(world: DagsterWorld, backfill: Backfill) -> None:
    (world.folder() / f"{HARBOR}.{MARCH}.mbox").write_bytes(b"<html>no</html>")
    result = backfill()
    assert result.exit_code == 1
    assert result.stdout.startswith("0 months materialized, 1 failed\n")
    months, reason, remedy = result.stderr.splitlines()[-3:]
    assert months == f"mail-assets: {HARBOR} {MARCH} failed"
    assert "it is an HTML page" in reason
    assert remedy.endswith(f"run: mail-assets backfill --list {HARBOR} --from {MARCH} --to {MARCH}")
    assert "Traceback" not in result.stderr
    assert "Traceback" in backfill("--verbose").stderr


def test_backfill_names_months_that_lists_toml_leaves_out(
    world: DagsterWorld, backfill: Backfill
) -> None:
    for month in (MARCH, "1994-11", "1994-12"):
        world.archive(month, mail("a"))
    result = backfill()
    assert result.exit_code == 0
    assert result.stdout.startswith("1 month materialized, 0 failed\n")
    assert result.stderr.splitlines()[-1] == (
        f"mail-assets: {HARBOR}: 2 months of its source (1994-11 to 1994-12) left out: "
        f"{world.home / 'lists.toml'} has partitions from first_month 1995-01 on"
    )


@pytest.mark.parametrize(
    ("options", "bounds", "says"),
    [
        ("--from 2024-05 --to 2024-01", "", "--from='2024-05': must not be after --to 2024-01"),
        ("--from 2099-01", "", "--from='2099-01': is after every month: "),
        ("--to 1994-12", "", "--to='1994-12': is before every month: "),
        ("--from 2021-01", 'last_month = "2020-12"', "has months from 1995-01 to 2020-12\n"),
        ("--to 2019-12", 'first_month = "2020-01"', "has months from 2020-01 to "),
    ],
)
def test_backfill_refuses_a_range_that_can_hold_no_month(
    backfill: Backfill, options: str, bounds: str, says: str
) -> None:
    assert_fails(backfill(*options.split(), bounds=bounds), 2, says)


def test_month_is_accepted_once_it_has_begun_anywhere(tmp_path: Path) -> None:
    lists = tmp_path / "lists.toml"
    lists.write_text(f'[{HARBOR}]\nsource = "{tmp_path}"\n')
    settings = load_settings({"MAIL_HOME": str(tmp_path), "MAIL_LISTS": str(lists)})
    midnight_of_tokyo = dt.datetime(2024, 4, 30, 15, tzinfo=dt.UTC)
    check_range(settings, "2024-05", None, midnight_of_tokyo)
    with pytest.raises(SettingsError, match="is after every month"):
        check_range(settings, "2024-05", None, midnight_of_tokyo - dt.timedelta(hours=5, seconds=1))
    with pytest.raises(SettingsError, match="is after every month"):
        check_range(settings, "2024-06", None, midnight_of_tokyo)


@pytest.mark.parametrize("options", [("--from", "2024-05"), ("--to", "2024-02")])
def test_empty_range_names_the_months_there_are(
    world: DagsterWorld, backfill: Backfill, options: tuple[str, str]
) -> None:
    for month in (MARCH, APRIL):
        world.archive(month, mail("a"))
    result = backfill(*options)
    # asked for every night, the current month of a quiet list is no error
    assert (result.exit_code, result.stdout.splitlines()[0]) == (0, "0 months: nothing changed")
    assert result.stderr.splitlines()[-1] == (
        f"mail-assets: {HARBOR}: no month in this range of its 2 months from {MARCH} to {APRIL}"
    )


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--launch --fast", "--fast: not with --launch: "),
        ("--launch --jobs 2", "--jobs: not with --launch: "),
        ("--launch --stored", "--stored: not with --launch: "),
        ("--wait", "--wait: only with --launch"),
    ],
)
def test_options_that_contradict_launch_are_refused(
    backfill: Backfill, options: str, said: str
) -> None:
    assert_fails(backfill(*options.split()), 2, f"Error: {said}")


@pytest.mark.parametrize(("backfill_id", "ui_url", "lines"), [
    ("", "", ["3 months unchanged: nothing to launch"]),
    ("qwerty", "", [f"backfill qwerty: {HARBOR}, 1 month",
                    "its page in the UI that `dagster-webserver` serves: /runs/b/qwerty",
                    "3 months unchanged"]),
    (
        "qwerty",
        "https://dagster.example.org",
        [
            f"backfill qwerty: {HARBOR}, 1 month",
            "https://dagster.example.org/runs/b/qwerty",
            "3 months unchanged",
        ],
    ),
])  # fmt: skip
def test_launch_prints_the_page_of_the_backfill(
    world: DagsterWorld, backfill_id: str, ui_url: str, lines: list[str]
) -> None:
    months = [ListMonth(HARBOR, month) for month in (MARCH, APRIL, "2024-05", "2024-06")]
    backfills = {backfill_id: months[:1]} if backfill_id else {}
    launched = Launched(backfills, Report(unchanged=months[1:]))
    assert [*launch_lines(replace(world.settings(), ui_url=ui_url), launched)] == lines


def test_launch_exits_1_only_if_it_waits_and_a_month_fails(
    backfill: Backfill, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed: dict[str, str] = {}
    launched = Launched({"qwerty": [ListMonth(HARBOR, MARCH)]}, Report())
    name = "mail_assets.defs.backfill.daemon"
    monkeypatch.setattr(f"{name}.launch_lists", lambda *_: launched)
    monkeypatch.setattr(
        f"{name}.wait_for_backfill", lambda *_: launched.report.failed.update(failed)
    )
    assert backfill("--launch", "--wait").exit_code == 0
    failed[f"{HARBOR} {MARCH}"] = "no memory"
    assert backfill("--launch").exit_code == 0
    waited = backfill("--launch", "--wait")
    assert waited.exit_code == 1
    assert waited.stdout.splitlines()[-1] == "0 months materialized, 1 failed"
    assert f"mail-assets: {HARBOR} {MARCH} failed\n  no memory\n" in waited.stderr


def test_interrupted_backfill_says_how_to_continue(
    world: DagsterWorld, backfill: Backfill, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    world.archive(MARCH, mail("a"))
    monkeypatch.setattr("mail_assets.defs.assets.index.cut_chunks", interrupt)
    result = backfill()
    assert result.exit_code == 1
    assert "messages       stored 1" in result.stdout
    assert result.stderr.endswith("mail-assets: interrupted: run the same command again to go on\n")


@pytest.mark.parametrize(
    ("written", "failed", "line"),
    [
        (3, {}, "1 month materialized, 0 failed"),
        (0, {}, "1 month: nothing changed"),
        (0, {"threads": "no memory"}, "1 month materialized, 1 failed"),
    ],
)
def test_report_begins_with_its_months(written: int, failed: dict[str, str], line: str) -> None:
    month = ListMonth(HARBOR, MARCH)
    report = Report(done=[month], failed=failed)
    report.add("messages", month, Counter(stored=3, written=written))
    assert next(report_lines(report)) == line


SPRING = MonthRange(ListMonth("dev", "2024-03"), ListMonth("dev", "2024-04"))


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (RangeStarted(SPRING), "dev 2024-03 to 2024-04\n"),
        (RangeSplit(SPRING), "dev 2024-03 to 2024-04: failed, running month by month\n"),
        (RangeFinished(SPRING), ""),
    ],
)
def test_event_is_a_line_on_standard_error(
    event: Event, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    print_event(event)
    assert capsys.readouterr() == ("", line)


def test_log_line_has_its_time_and_level(capsys: pytest.CaptureFixture[str]) -> None:
    print_event(LogLine(0.5, logging.WARNING, "slow"))
    out, err = capsys.readouterr()
    assert out == ""
    assert err.endswith(":00 warning: slow\n")


def test_progress_is_lines_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with follow_backfill() as listener:
        listener(RangeStarted(SPRING))
    with show_activity("comparing") as show:
        show("half of it")
    assert capsys.readouterr() == ("", "dev 2024-03 to 2024-04\nhalf of it\n")


@contextmanager
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], str]]:
    """Replace standard error by a terminal; yield a function that reads its output."""
    master, slave = pty.openpty()
    for name, value in {"TERM": "xterm", "NO_COLOR": "", "COLUMNS": "100"}.items():
        monkeypatch.setenv(name, value)

    def read() -> str:
        shown = b""
        while select.select([master], [], [], 0)[0]:
            shown += os.read(master, 65_536)
        return shown.decode()

    with os.fdopen(slave, "w", encoding="utf-8") as stderr:
        monkeypatch.setattr("sys.stderr", stderr)
        yield read
    os.close(master)


def test_progress_is_a_display_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    with terminal(monkeypatch) as read:
        with follow_backfill() as listener:
            listener(RunsPlanned(4, ("messages",)))
            listener(RangeFinished(SPRING))
        shown = read()
    assert "2/4 list-months" in shown
    assert shown.endswith("\x1b[2K")  # the last line is erased


def test_activity_shows_its_progress_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    with terminal(monkeypatch) as read:
        with show_activity("comparing [all] keys"):
            pass
        begun = read()
        with show_activity("comparing [all] keys") as show:
            show("[half] of it")
        shown = read()
    assert "comparing [all] keys" in begun
    assert "[half] of it" in shown
