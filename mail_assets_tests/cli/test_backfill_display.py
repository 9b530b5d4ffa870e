"""The display of a backfill on a terminal."""

import io
import logging

import pytest
from rich.console import Console

from mail_assets.cli.backfill_display import BackfillDisplay
from mail_assets.defs.backfill.report import (
    Event,
    MonthRange,
    RangeFinished,
    RangeSplit,
    RangeStarted,
    RunsPlanned,
    StageStarted,
)
from mail_assets.defs.runs import LogLine, MonthFinished
from mail_assets.month import ListMonth

MARCH, APRIL = ListMonth("dev", "2024-03"), ListMonth("dev", "2024-04")
SPRING = MonthRange(MARCH, APRIL)
ASSETS = ("messages", "embeddings")


def finished(asset: str, month: ListMonth, amount: int, changed: bool = True) -> MonthFinished:
    counts = {"found": amount, "encoded": amount, "seconds": 2.0}
    return MonthFinished(asset, month, counts, changed)


def shown(*events: Event) -> str:
    """Return the last state of the display, and the lines printed above."""
    console = Console(file=io.StringIO(), force_terminal=True, width=120, color_system=None)
    display = BackfillDisplay(console)
    with console.capture() as capture:
        for event in events:
            display.show(event)
        console.print(display)
    return capture.get()


def test_display_has_a_bar_with_rates_and_the_last_line() -> None:
    bar, now = shown(
        RunsPlanned(4, ASSETS),
        RangeStarted(SPRING),
        finished("messages", MARCH, 600),
        finished("messages", APRIL, 400),
        finished("embeddings", MARCH, 50),
        LogLine(0, logging.INFO, "embeddings dev 2024-03: texts 50"),
    ).splitlines()
    assert bar.startswith("1/4 list-months ")
    assert " 38% " in bar  # 3 of 8: 4 months, 2 assets
    assert "250 messages/s  25 chunks/s" in bar
    assert bar.rstrip().endswith(" left")
    assert now.rstrip() == "embeddings dev 2024-03: texts 50"


def test_unchanged_month_is_done_and_has_no_rate() -> None:
    bar, _ = shown(
        RunsPlanned(2, ASSETS),
        finished("messages", MARCH, 600, changed=False),
        finished("embeddings", MARCH, 600, changed=False),
    ).splitlines()
    assert bar.startswith("1/2 list-months ")
    assert "/s" not in bar


def test_failed_range_counts_once_its_months_were_tried() -> None:
    begun = (RunsPlanned(4, ASSETS), RangeStarted(SPRING), finished("messages", MARCH, 5))
    failed, bar, _ = shown(*begun, RangeSplit(SPRING), finished("messages", MARCH, 5)).splitlines()
    assert failed.rstrip() == "dev 2024-03 to 2024-04: failed, running month by month"
    assert " 12% " in bar
    assert " 50% " in shown(*begun, RangeFinished(SPRING))


@pytest.mark.parametrize("level", [logging.WARNING, logging.ERROR])
def test_warning_stays_above_the_display(level: int) -> None:
    line, bar, now = shown(LogLine(0, level, "dev 2024-03: [no] mbox")).splitlines()
    assert line.rstrip().endswith(f" {logging.getLevelName(level).lower()}: dev 2024-03: [no] mbox")
    assert bar.startswith("0/0 list-months")
    assert now.rstrip() == "listing the archives"


def test_stage_without_months_is_named() -> None:
    assert shown(StageStarted("threads")).splitlines()[1].rstrip() == "threads"
