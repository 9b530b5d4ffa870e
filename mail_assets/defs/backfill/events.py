"""What a backfill reports while it runs, as plain values: how they are shown is not its matter."""

from collections.abc import Callable
from typing import NamedTuple

from mail_assets.defs.backfill.ranges import MonthRange
from mail_assets.defs.runs import LogLine, MonthFinished


class RunsPlanned(NamedTuple):
    """All runs are known: the list-months of all ranges, and the assets made for each."""

    months: int
    assets: tuple[str, ...]


class BackfillLaunched(NamedTuple):
    """Dagster's daemon was asked for a backfill; its id, and what it makes: "12 months"."""

    backfill_id: str
    what: str


class MonthsPassed(NamedTuple):
    """So many months are as they should be: they need no run."""

    months: int


class RangeStarted(NamedTuple):
    """The run of a range begins."""

    range: MonthRange


class RangeSplit(NamedTuple):
    """The run of a range failed; its months are run one by one."""

    range: MonthRange


class RangeFinished(NamedTuple):
    """Every month of a range is done or has failed."""

    range: MonthRange


class StageStarted(NamedTuple):
    """Work that belongs to no month begins: "threads", or "indexes"."""

    name: str


Event = (
    RunsPlanned
    | BackfillLaunched
    | MonthsPassed
    | RangeStarted
    | RangeSplit
    | RangeFinished
    | StageStarted
    | MonthFinished
    | LogLine
)

#: Receives each event in the thread that runs the backfill; must return at once.
Listener = Callable[[Event], None]
