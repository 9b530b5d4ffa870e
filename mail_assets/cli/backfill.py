"""backfill: months of lists brought from their archives to the vector bucket.

[backfill_display] The display of a backfill on a terminal: one bar, rates, time left, and what is being done.

[progress] Progress of long work on standard error: a display on a terminal, lines elsewhere.

[static_index] Which index a command fills: the static one that is there in minutes, or the model's own.
"""

import datetime as dt
import logging
import os
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import groupby
from types import TracebackType
from typing import TYPE_CHECKING, Self

import click
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.text import Text

from mail_assets.cli.command import (
    FAILED,
    check_month,
    examples,
    exit_with,
    lists_option,
    pass_settings,
    plural,
    print_error,
    print_note,
    select_lists,
    shows_progress,
)
from mail_assets.defs.backfill.report import (
    BackfillLaunched,
    Event,
    MonthsPassed,
    RangeFinished,
    RangeSplit,
    RangeStarted,
    RunsPlanned,
    StageStarted,
)
from mail_assets.defs.runs import LogLine, MonthFinished
from mail_assets.encoding.models import DEFAULT_PRECISION, REMOTE_PRECISION, STATIC
from mail_assets.month import ListMonth
from mail_assets.settings.settings import Settings
from mail_assets.settings.values import SettingsError

if TYPE_CHECKING:
    from mail_assets.defs.backfill.report import Event, Listener, Report


#: Seconds over which the time left is estimated: several runs of a list-year.
_ESTIMATE_OVER = 1_800

#: Which count of which asset is shown per second, and under which name.
_RATES = {"messages": ("found", "messages/s"), "embeddings": ("encoded", "chunks/s")}


class BackfillDisplay:
    """Shows the events of a backfill while it is entered as a context."""

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
        """Bring the display up to date."""
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
            case BackfillLaunched(backfill_id, what):
                self._print(f"backfill {backfill_id}: {what}")
            case RangeSplit(months):
                self._print(f"{months}: failed, running month by month")
            case RangeFinished(months):
                self._finished |= {(a, month) for a in self._plan.assets for month in months.months}
            case StageStarted(name):
                self._now.plain = name
            case LogLine():
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
        """Return what is shown now."""
        return Group(self._progress, self._now)


@contextmanager
def follow_backfill() -> Iterator["Listener"]:
    """Yield what shows the events of a backfill."""
    if not shows_progress():
        yield print_event
        return
    from rich.console import Console

    pass

    # Dagster redirects file descriptor 2 while a run lasts, to keep what its steps print
    with (
        os.fdopen(os.dup(sys.stderr.fileno()), "w", encoding="utf-8") as terminal,
        BackfillDisplay(Console(file=terminal)) as display,
    ):
        yield display.show


@contextmanager
def show_activity(text: str) -> Iterator[Callable[[str], None]]:
    """Show that work is under way; yield what shows a line of its progress."""
    if not shows_progress():
        yield print_note
        return
    from rich.console import Console
    from rich.markup import escape

    with Console(stderr=True).status(escape(text)) as status:
        yield lambda line: status.update(escape(line))


def print_event(event: "Event") -> None:
    """Print what a log file should have of an event, as a line."""
    from mail_assets.defs.backfill.report import (
        BackfillLaunched,
        MonthsPassed,
        RangeSplit,
        RangeStarted,
    )
    from mail_assets.defs.runs import LogLine

    match event:
        case LogLine():
            print_note(str(event))
        case MonthsPassed(count) if count:
            print_note(f"{plural(count, 'list-month')} unchanged")
        case RangeStarted(months):
            print_note(str(months))
        case BackfillLaunched(backfill_id, what):
            print_note(f"backfill {backfill_id}: {what}")
        case RangeSplit(months):
            print_note(f"{months}: failed, running month by month")


def use_static(settings: Settings) -> Settings:
    """Return settings whose runs fill the static index of the configured model.

    Raises:
        SettingsError: the model is on a server, or search asks an index of the model already.
    """
    from mail_assets.tables.indexes import live_index

    if settings.precision == REMOTE_PRECISION:
        raise SettingsError("--fast", settings.encoder, "needs a model that computes here")
    with settings.database.connect("index") as connection:
        live = live_index(connection, settings.vectors)
    if live and live.precision != STATIC:
        raise SettingsError(
            "--fast", live.name, "is live already, and ranks better: leave --fast out"
        )
    return replace(settings, precision=STATIC)


def use_model(settings: Settings) -> Settings:
    """Return settings whose runs fill the index that a static one stands in for."""
    if settings.precision != STATIC:
        return settings
    return replace(settings, precision=DEFAULT_PRECISION)


#: What happens after Ctrl-C.
GO_ON = "run the same command again to go on"
LAUNCHED_GOES_ON = "the daemon goes on with the backfill; cancel it in the Dagster UI"

#: How much earlier than in UTC a month begins somewhere (Kiribati).
EARLIEST = dt.timedelta(hours=14)


@click.command(
    epilog=examples(
        "mail-assets backfill",
        "mail-assets backfill --list harbor-dev --from 2024-03 --to 2024-04",
        "mail-assets backfill --launch",
    )
)
@lists_option("Only this list, repeatable; default: every list.")
@click.option("--from", "first", metavar="YYYY-MM", help="First month; default: all there are.")
@click.option("--to", "last", metavar="YYYY-MM", help="Last month; default: all there are.")
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Processes that run years of lists at once; one encodes at a time.",
)
@click.option("--fast", is_flag=True, help="Fill a static index: minutes instead of hours.")
@click.option("--stored", is_flag=True, help="From the archives stored here; no source is asked.")
@click.option("--allow-loss", is_flag=True, help="Accept archives that lost messages.")
@click.option("--launch", is_flag=True, help="Have Dagster's daemon and its workers do it.")
@pass_settings
def backfill(
    settings: Settings,
    lists: tuple[str, ...],
    first: str | None,
    last: str | None,
    jobs: int,
    fast: bool,
    stored: bool,
    allow_loss: bool,
    launch: bool,
) -> None:
    """Load months of mail and make them searchable.

    Each month goes from its archive to messages, chunks, embeddings and vectors. Each list and
    calendar year is one run. Months in which nothing changed need none; what
    fails is named and does not stop the rest. Ctrl-C ends it, and the same command goes on
    where it ended.

    --stored is for a home that was restored: sources that are gone do not matter.

    --fast is for a new archive: its index is made from a table of the model's own word vectors, and
    search encodes the best candidates of each question. `mail-assets index fill --promote` encodes
    all of it behind.

    --launch is for several machines (docs/deployment.md), and needs the daemon: its workers make
    the months, and the Dagster UI shows the backfill by the id that is printed. Here the archives
    are listed, the progress is shown, and the indexes are kept up when all is done. Ctrl-C ends the
    showing and not the backfill, which is canceled in the UI.
    """
    check_range(settings, first, last, dt.datetime.now(dt.UTC))
    names = select_lists(settings, lists)
    if launch:
        refuse_with_launch(jobs, fast, stored)
    if fast:
        settings = use_static(settings)

    if stored and (first or last or allow_loss or jobs > 1):
        raise click.UsageError("--stored takes all months that are stored, one after the other")

    from mail_assets.defs.backfill.daemon import launch_lists
    from mail_assets.defs.backfill.plan import BackfillRequest, backfill_lists, load_stored

    request = BackfillRequest(names, first, last, allow_loss, jobs)
    with follow_backfill() as listener:
        fill = launch_lists if launch else load_stored if stored else backfill_lists
        report = fill(settings, request, listener)
    for line in report_lines(report):
        click.echo(line)
    for line in (*outside_lines(settings, report.outside), *beyond_lines(report)):
        print_error(line)
    if fast and not report.failed:
        print_note("the index is static: `mail-assets index fill --promote` encodes all of it")
    exit_by(report, LAUNCHED_GOES_ON if launch else GO_ON)


def check_range(settings: Settings, first: str | None, last: str | None, now: dt.datetime) -> None:
    """Refuse a range of months that is reversed, or that no list can have a month in.

    A range that holds nothing now may hold a month tomorrow, as the current one does, which is
    asked for every night: that is no error (beyond_lines). Nor is it where the night of the asker
    is that of a month which has not begun in UTC.

    Raises:
        SettingsError: a month is written otherwise, or the range cannot hold one.
    """
    check_month("--from", first)
    check_month("--to", last)
    if first and last and first > last:
        raise SettingsError("--from", first, f"must not be after --to {last}")
    newest = min(f"{now + EARLIEST:%Y-%m}", settings.last_month or "9999")
    place = f"{settings.lists_file} has months from {settings.first_month} to {newest}"
    if first and first > newest:
        raise SettingsError("--from", first, f"is after every month: {place}")
    if last and last < settings.first_month:
        raise SettingsError("--to", last, f"is before every month: {place}")


def refuse_with_launch(jobs: int, fast: bool, stored: bool) -> None:
    """Refuse options that change this process, where the months are made by others.

    Raises:
        click.UsageError: one is given.
    """
    if jobs > 1:
        raise click.UsageError("--jobs: not with --launch: runs are as many as workers")
    if fast:
        raise click.UsageError("--fast: not with --launch: set MAIL_PRECISION of the workers")
    if stored:
        raise click.UsageError("--stored: not with --launch: months are made here, one by one")


def report_lines(report: "Report") -> Iterator[str]:
    """Yield what a backfill did: months first, then the counts of each asset."""
    unchanged, failed = len(report.unchanged), len(report.failed)
    if not report.changed and not failed:
        yield f"{plural(len(report.done) + unchanged, 'month')}: nothing changed"
    else:
        passed = f"{unchanged} unchanged, " if unchanged else ""
        yield f"{plural(len(report.done), 'month')} materialized, {passed}{failed} failed"
    for asset in report.assets:
        counts = ", ".join(f"{name} {count}" for name, count in report.counts_of(asset).items())
        yield f"  {asset:<14} {counts}"
    yield f"  {'threads':<14} {report.threads}"


def outside_lines(settings: Settings, outside: Sequence[ListMonth]) -> Iterator[str]:
    """Yield for each list how many of its months lists.toml leaves out, and how to change that."""
    bounds = f"from first_month {settings.first_month} on"
    if settings.last_month:
        bounds = f"from first_month {settings.first_month} to last_month {settings.last_month}"
    for list_name, months in groupby(outside, key=lambda month: month.list_name):
        left_out = [month.month for month in months]
        yield (
            f"{list_name}: {plural(len(left_out), 'month')} of its source "
            f"({left_out[0]} to {left_out[-1]}) left out: "
            f"{settings.lists_file} has partitions {bounds}"
        )


def beyond_lines(report: "Report") -> Iterator[str]:
    """Yield which months each list has, where the range that was asked for holds none of them."""
    if report.done or report.unchanged or report.failed or report.outside:
        return
    for list_name, months in groupby(report.beyond, key=lambda month: month.list_name):
        there = [month.month for month in months]
        all_there = f"{plural(len(there), 'month')} from {there[0]} to {there[-1]}"
        yield f"{list_name}: no month in this range of its {all_there}"


def exit_by(report: "Report", after_interrupt: str = GO_ON) -> None:
    """Print what failed, and end with exit code 1 if anything did or Ctrl-C ended it."""
    for what, reason in report.failed.items():
        print_error(f"{what} failed: {reason}")
    if report.interrupted:
        exit_with(f"interrupted: {after_interrupt}")
    if report.failed:
        sys.exit(FAILED)
