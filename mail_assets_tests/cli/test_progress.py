"""Progress of long work: a display where it can be redrawn, lines where it cannot."""

import logging

import pytest

from mail_assets.cli.progress import follow_backfill, print_event, show_activity
from mail_assets.defs.backfill.events import Event, RangeFinished, RangeSplit, RangeStarted
from mail_assets.defs.backfill.ranges import MonthRange
from mail_assets.defs.run_log import LogLine
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
