"""The display of a backfill: a progress bar on a terminal, lines otherwise.

It is not in backfill.py, because the module of the events imports Dagster.
"""

import logging
from collections import defaultdict
from types import TracebackType
from typing import Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.text import Text

from mail_assets.cli.command import plural, print_note
from mail_assets.defs.backfill.report import (
    Event,
    MonthsPassed,
    RangeFinished,
    RangeSplit,
    RangeStarted,
    RunsPlanned,
    StageStarted,
)
from mail_assets.defs.runs import LogLine, MonthFinished
from mail_assets.month import ListMonth


def print_event(event: Event, least: int = logging.INFO) -> None:
    """Print an event as a line; lines of the log below the level `least` are left out."""
    match event:
        case LogLine() if event.level >= least:
            print_note(str(event))
        case MonthsPassed(count) if count:
            print_note(f"{plural(count, 'list-month')} unchanged")
        case RangeStarted(months):
            print_note(str(months))
        case RangeSplit(months):
            print_note(f"{months}: failed, running month by month")


#: Seconds of the past used to estimate the time left; several runs of list-years fit into it.
_ESTIMATE_OVER = 1_800

#: Asset -> the count shown per second, and its unit.
_RATES = {"messages": ("found", "messages/s"), "embeddings": ("encoded", "chunks/s")}


class BackfillDisplay:
    """A bar on a terminal, shown inside its `with` block: rates, time left, the last log line."""

    def __init__(self, console: Console) -> None:
        self._progress = Progress(
            TextColumn("{task.fields[months]}"),
            BarColumn(),
            TaskProgressColumn(),
            TextColumn("{task.fields[rates]}"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[left]}"),
            console=console,
            speed_estimate_period=_ESTIMATE_OVER,
        )
        self._task = self._progress.add_task("", total=None, months="", rates="", left="")
        self._now = Text("listing the archives", style="dim", no_wrap=True, overflow="ellipsis")
        self._live = Live(console=console, get_renderable=self.__rich__, transient=True)
        self._plan = RunsPlanned(0, ())
        self._finished: set[tuple[str, ListMonth]] = set()
        self._amounts: defaultdict[str, float] = defaultdict(float)
        self._seconds: defaultdict[str, float] = defaultdict(float)

    def __enter__(self) -> Self:
        self._live.start(refresh=True)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._live.stop()

    def show(self, event: Event) -> None:
        """Update the display."""
        match event:
            case RunsPlanned():
                self._plan = event
            case MonthFinished(asset, month):
                self._finished.add((asset, month))
                if event.changed:
                    self._measure(event)
            case MonthsPassed(count) if count:
                self._print(f"{plural(count, 'list-month')} unchanged")
            case RangeStarted(months):
                self._now.plain = str(months)
            case RangeSplit(months):
                self._print(f"{months}: failed, running month by month")
            case RangeFinished(months):
                self._finished |= {(a, month) for a in self._plan.assets for month in months.months}
            case StageStarted(name):
                self._now.plain = name
            case LogLine() if event.level >= logging.INFO:
                self._log(event)
        self._update()

    def _measure(self, finished: MonthFinished) -> None:
        if finished.asset in _RATES:
            count, _ = _RATES[finished.asset]
            self._amounts[finished.asset] += finished.counts[count]
            self._seconds[finished.asset] += finished.counts["seconds"]

    def _log(self, line: LogLine) -> None:
        if line.level > logging.INFO:
            self._print(str(line))
        else:
            self._now.plain = line.text

    def _print(self, line: str) -> None:
        self._live.console.print(Text(line))

    def _update(self) -> None:
        assets, months = self._plan.assets, self._plan.months
        done = sum(1 for asset, _ in self._finished if asset == assets[-1]) if assets else 0
        self._progress.update(
            self._task,
            total=months * len(assets) or None,
            completed=len(self._finished),
            left="left",
            months=f"{done:,}/{months:,} list-months",
            rates="  ".join(
                f"{self._amounts[asset] / self._seconds[asset]:,.0f} {unit}"
                for asset, (_, unit) in _RATES.items()
                if self._seconds[asset]
            ),
        )

    def __rich__(self) -> RenderableType:
        return Group(self._progress, self._now)
