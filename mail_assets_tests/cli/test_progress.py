"""Progress of long work: a display where it can be redrawn, lines where it cannot."""

import logging
import os
import pty
import select
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from mail_assets.cli.backfill import follow_backfill, print_event, show_activity
from mail_assets.defs.backfill.report import (
    Event,
    MonthRange,
    RangeFinished,
    RangeSplit,
    RangeStarted,
    RunsPlanned,
)
from mail_assets.defs.runs import LogLine
from mail_assets.month import ListMonth

SPRING = MonthRange(ListMonth("dev", "2024-03"), ListMonth("dev", "2024-04"))


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (RangeStarted(SPRING), "dev 2024-03 to 2024-04\n"),
        (RangeSplit(SPRING), "dev 2024-03 to 2024-04: failed, running month by month\n"),
        (RangeFinished(SPRING), ""),
    ],
)
def test_an_event_is_a_line_on_standard_error(
    event: Event, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    print_event(event)
    assert capsys.readouterr() == ("", line)


def test_a_log_line_has_its_time_and_what_is_wrong_its_level(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_event(LogLine(0.5, logging.WARNING, "slow"))
    out, err = capsys.readouterr()
    assert out == ""
    assert err.endswith(":00 warning: slow\n")


def test_without_a_terminal_lines_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with follow_backfill() as listener:
        listener(RangeStarted(SPRING))
    with show_activity("comparing") as show:
        show("half of it")
    assert capsys.readouterr() == ("", "dev 2024-03 to 2024-04\nhalf of it\n")


@contextmanager
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], str]]:
    """Put a terminal in the place of standard error; yield what reads all that it shows."""
    master, slave = pty.openpty()
    for name, value in {"TERM": "xterm", "NO_COLOR": "", "CI": "", "COLUMNS": "100"}.items():
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


def test_on_a_terminal_a_backfill_is_a_display_that_goes_when_it_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with terminal(monkeypatch) as read:
        with follow_backfill() as listener:
            listener(RunsPlanned(4, ("messages",)))
            listener(RangeFinished(SPRING))
        shown = read()
    assert "2/4 list-months" in shown
    assert shown.endswith("\x1b[2K")  # the last line is erased


def test_on_a_terminal_an_activity_shows_what_it_is_and_then_its_progress(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with terminal(monkeypatch) as read:
        with show_activity("comparing [all] keys"):
            pass
        begun = read()
        with show_activity("comparing [all] keys") as show:
            show("[half] of it")
        shown = read()
    assert "comparing [all] keys" in begun
    assert "[half] of it" in shown
