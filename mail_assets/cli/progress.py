"""Progress of long work on standard error: a display on a terminal, lines elsewhere."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from mail_assets.cli.output import plural, print_note
from mail_assets.cli.terminal import shows_progress

if TYPE_CHECKING:
    from mail_assets.defs.backfill.events import Event, Listener


@contextmanager
def follow_backfill() -> Iterator["Listener"]:
    """Yield what shows the events of a backfill."""
    if not shows_progress():
        yield print_event
        return
    from rich.console import Console

    from mail_assets.cli.backfill_display import BackfillDisplay

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
    from mail_assets.defs.backfill.events import (
        BackfillLaunched,
        MonthsPassed,
        RangeSplit,
        RangeStarted,
    )
    from mail_assets.defs.run_log import LogLine

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
