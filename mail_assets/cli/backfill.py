"""The command `backfill`: loads months of lists from their archives into both indexes.

Progress goes to standard error: a display on a terminal, lines otherwise. Other long commands show
their progress in the same way (follow_backfill, show_activity).
"""

import datetime as dt
import logging
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING

import click

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
from mail_assets.encoding.models import REMOTE_PRECISION, STATIC
from mail_assets.month import ListMonth, is_month
from mail_assets.settings.settings import Settings
from mail_assets.settings.values import SettingsError

if TYPE_CHECKING:
    from mail_assets.defs.backfill.daemon import Launched
    from mail_assets.defs.backfill.plan import BackfillRequest
    from mail_assets.defs.backfill.report import Listener, Report

#: Advice after Ctrl-C.
GO_ON = "run the same command again to go on"
LAUNCHED_GOES_ON = "the daemon goes on with the backfills; cancel them in the Dagster UI"

#: The assets that --only can name, in the order in which they are made.
REBUILT = (
    *("mbox_archives", "messages", "words", "patches", "chunks", "embeddings", "vectors"),
    *("commits", "threads", "thread_summaries", "patch_series", "commit_links"),
)

#: The largest offset from UTC of a time zone (Kiribati), where a month begins first.
EARLIEST = dt.timedelta(hours=14)


@click.command(
    epilog=examples(
        "mail-assets backfill",
        "mail-assets backfill --list harbor-dev --from 2024-03 --to 2024-04",
        "mail-assets backfill --launch",
    )
)
@lists_option("Only this list, repeatable; default: every list.")
@click.option("--from", "first", metavar="YYYY-MM", help="First month; default: the oldest.")
@click.option("--to", "last", metavar="YYYY-MM", help="Last month; default: the newest.")
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Processes; each runs a year of a list, and only one encodes at a time.",
)
@click.option("--fast", is_flag=True, help="Fill a static index: minutes instead of hours.")
@click.option("--stored", is_flag=True, help="Use the stored archives; fetch nothing.")
@click.option("--allow-loss", is_flag=True, help="Accept archives that lost messages.")
@click.option("--rebuild", is_flag=True, help="Make everything again, and write what differs.")
@click.option(
    "--only",
    type=click.Choice(REBUILT),
    multiple=True,
    metavar="ASSET",
    help=f"With --rebuild: only this asset, repeatable: {', '.join(REBUILT)}.",
)
@click.option("--launch", is_flag=True, help="Hand the months to Dagster's daemon and its workers.")
@click.option("--wait", is_flag=True, help="With --launch: wait until the backfill has ended.")
@click.option("--verbose", is_flag=True, help="Also print the traceback of each failure.")
@pass_settings
def backfill(  # a parameter for each option
    settings: Settings,
    lists: tuple[str, ...],
    first: str | None,
    last: str | None,
    jobs: int,
    fast: bool,
    stored: bool,
    allow_loss: bool,
    rebuild: bool,
    only: tuple[str, ...],
    launch: bool,
    wait: bool,
    verbose: bool,
) -> None:
    """Load months of mail and make them searchable.

    Each month goes from its archive to messages, chunks, embeddings and vectors. Each list and
    calendar year is one run. A month in which nothing changed needs no run. A month that fails is
    reported and does not stop the others. After Ctrl-C the same command continues where it stopped.

    --stored fills a restored home from its own archives, even if their sources are gone.

    --rebuild repairs damage: archives are fetched again, messages are read again, and every row,
    file and index entry is compared with what would be written now. Only differences are written.
    Without --from and --to, the threads and their summaries are also made again.

    --fast is for a new archive: it fills an index from a table of the model's own word vectors, and
    search encodes the best candidates of each question. Later, `mail-assets index fill --promote`
    encodes everything.

    --launch is for several machines (docs/deployment.md), and needs the daemon. This command lists
    the archives; the daemon's workers make the months. Each list is one backfill. The command
    prints the id of each and the address of its page in the Dagster UI, and ends. With --wait it
    waits until all backfills have ended, and reports the months that failed. The sensor new_threads
    then builds the threads; the job upkeep maintains the indexes.
    """
    check_range(settings, first, last, dt.datetime.now(dt.UTC))
    names = select_lists(settings, lists)
    if launch:
        _refuse_with_launch(jobs, fast, stored, only)
    elif wait:
        raise click.UsageError(
            "--wait: only with --launch; without --launch the command always waits"
        )
    if stored and (allow_loss or jobs > 1):
        raise click.UsageError("--stored: not with --allow-loss or --jobs")
    if only and not rebuild:
        raise click.UsageError("--only: only with --rebuild")
    if fast:
        settings = use_static(settings)

    from mail_assets.defs.backfill.plan import BackfillRequest, backfill_lists, load_stored

    request = BackfillRequest(names, first, last, allow_loss, jobs, rebuild, only)
    if launch:
        _launch(settings, request, wait)
        return
    with follow_backfill(verbose=verbose) as listener:
        report = (load_stored if stored else backfill_lists)(settings, request, listener)
    for line in report_lines(report):
        click.echo(line)
    _print_left_out(settings, report)
    if fast and not report.failed:
        print_note("the index is static: `mail-assets index fill --promote` encodes all of it")
    exit_by(report)


def _launch(settings: Settings, request: "BackfillRequest", wait: bool) -> None:
    from mail_assets.defs.backfill.daemon import launch_lists, wait_for_backfill

    launched = launch_lists(settings, request)
    for line in launch_lines(settings, launched):
        click.echo(line)
    _print_left_out(settings, launched.report)
    if wait and launched.backfills:
        wait_for_backfill(settings, launched)
        done, failed = len(launched.report.done), len(launched.report.failed)
        click.echo(f"{plural(done, 'month')} materialized, {failed} failed")
    exit_by(launched.report, LAUNCHED_GOES_ON)


def launch_lines(settings: Settings, launched: "Launched") -> Iterator[str]:
    """Yield lines about each launched backfill: its id, its months, and its page in the UI."""
    unchanged = len(launched.report.unchanged)
    if not launched.backfills:
        yield f"{plural(unchanged, 'month')} unchanged: nothing to launch"
        return
    for backfill_id, months in launched.backfills.items():
        yield f"backfill {backfill_id}: {months[0].list_name}, {plural(len(months), 'month')}"
        page = f"/runs/b/{backfill_id}"
        if settings.ui_url:
            yield f"{settings.ui_url}{page}"
        else:
            yield f"its page in the UI that `dagster-webserver` serves: {page}"
    if unchanged:
        yield f"{plural(unchanged, 'month')} unchanged"


def check_range(settings: Settings, first: str | None, last: str | None, now: dt.datetime) -> None:
    """Refuse a range of months that is reversed, or in which no list can have a month.

    The current month is allowed even if it has no mail yet: a nightly job requests it. A month that
    has begun in some time zone but not in UTC is allowed too.

    Raises:
        SettingsError: a month is not written YYYY-MM, or the range cannot contain a month.
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


def _refuse_with_launch(jobs: int, fast: bool, stored: bool, only: Sequence[str]) -> None:
    if jobs > 1:
        raise click.UsageError(
            "--jobs: not with --launch: the workers decide how many runs go on in parallel"
        )
    if fast:
        raise click.UsageError(
            "--fast: not with --launch: set MAIL_PRECISION=static for the workers"
        )
    if stored:
        raise click.UsageError("--stored: not with --launch: it makes the months in this process")
    if only:
        raise click.UsageError("--only: not with --launch: materialize the asset in the Dagster UI")


def report_lines(report: "Report") -> Iterator[str]:
    """Yield the result of a backfill: months first, then the counts of each asset."""
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
    if report.commits:
        counts = ", ".join(f"{name} {count}" for name, count in report.commits.items())
        yield f"  {'commit_links':<14} {counts}"


def _print_left_out(settings: Settings, report: "Report") -> None:
    outside = _outside_lines(settings, report.outside)
    for line in (*report.remarks, *outside, *_beyond_lines(report)):
        print_error(line)


def _outside_lines(settings: Settings, outside: Sequence[ListMonth]) -> Iterator[str]:
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


def _beyond_lines(report: "Report") -> Iterator[str]:
    """Yield a line about the months of each list if all are outside the given range."""
    if report.done or report.unchanged or report.failed or report.outside:
        return
    for list_name, months in groupby(report.beyond, key=lambda month: month.list_name):
        there = [month.month for month in months]
        all_there = f"{plural(len(there), 'month')} from {there[0]} to {there[-1]}"
        yield f"{list_name}: no month in this range of its {all_there}"


def exit_by(report: "Report", after_interrupt: str = GO_ON) -> None:
    """Print the failures; exit with code 1 if there are any, or if Ctrl-C ended the command."""
    for line in failure_lines(report.failed):
        print_note(line)
    if report.interrupted:
        exit_with(f"interrupted: {after_interrupt}")
    if report.failed:
        sys.exit(FAILED)


def failure_lines(failed: Mapping[str, str]) -> Iterator[str]:
    """Yield lines about failures: three for all months with the same reason, else one."""
    from mail_assets.defs.failures import describe_failed

    reasons: dict[ListMonth, str] = {}
    for subject, reason in failed.items():
        list_name, _, month = subject.rpartition(" ")
        if is_month(month):
            reasons[ListMonth(list_name, month)] = reason
        else:
            yield f"mail-assets: {subject} failed: {reason}"
    lines = iter(describe_failed(reasons).splitlines())
    for months, reason, remedy in zip(lines, lines, lines, strict=True):
        yield f"mail-assets: {months} failed"
        yield f"  {reason}"
        yield f"  {remedy}"


def use_static(settings: Settings) -> Settings:
    """Return settings with which runs fill the static index of the configured model.

    Raises:
        SettingsError: the model is on a server, or an index of the model is already live.
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


@contextmanager
def follow_backfill(*, verbose: bool = False) -> Iterator["Listener"]:
    """Yield a function that shows the events of a backfill; `verbose` adds tracebacks."""
    from rich.console import Console

    from mail_assets.cli.backfill_display import BackfillDisplay, print_event

    if verbose or not shows_progress():
        yield partial(print_event, least=logging.DEBUG if verbose else logging.INFO)
        return
    # a duplicate: during a run Dagster redirects file descriptor 2 to capture what steps print
    with (
        os.fdopen(os.dup(sys.stderr.fileno()), "w", encoding="utf-8") as terminal,
        BackfillDisplay(Console(file=terminal)) as display,
    ):
        yield display.show


@contextmanager
def show_activity(text: str) -> Iterator[Callable[[str], None]]:
    """Show that work is under way; yield a function that shows a line of its progress."""
    if not shows_progress():
        yield print_note
        return
    from rich.console import Console
    from rich.markup import escape

    with Console(stderr=True).status(escape(text)) as status:
        yield lambda line: status.update(escape(line))
