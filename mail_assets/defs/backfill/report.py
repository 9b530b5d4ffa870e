"""The values of a backfill: ranges of months, events while it runs, and the report.

The command line decides how to show them.
"""

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from mail_assets.defs.runs import LogLine, MonthFinished
from mail_assets.month import ListMonth, months_between, next_month
from mail_assets.steps.unchanged_months import UnchangedMonth

#: Asset -> counts of the content of a month after its step.
STATE_COUNTS: Mapping[str, tuple[str, ...]] = {
    "mbox_archives": ("found", "bytes"),
    "messages": ("stored", "duplicates", "quarantined", "removed"),
    "words": ("documents",),
    "patches": ("rows", "malformed"),
    "chunks": ("chunks", "tokens"),
    "embeddings": ("texts",),
    "vectors": ("chunks",),
}

#: Asset -> counts of the work of its step; if a step runs twice, they are added.
WORK_COUNTS: Mapping[str, tuple[str, ...]] = {
    "mbox_archives": ("fetched",),
    "messages": ("written", "deleted"),
    "words": ("written", "deleted"),
    "patches": ("written", "deleted"),
    "chunks": ("written", "deleted"),
    "embeddings": ("encoded",),
    "vectors": ("written", "deleted"),
}

#: Number and share of changed entries from which an index is maintained at the end of a backfill.
#: With 1,000 messages that are not indexed yet, each full-text search takes 13 ms longer.
MUCH_CHANGED, SHARE_CHANGED = 1_000, 0.01


@dataclass
class Report:
    """Result of a backfill so far.

    Attributes:
        done: months that were made.
        unchanged: months that needed no run.
        failed: reasons by subject: "LIST YYYY-MM", "list LIST" if its source cannot be listed,
            "threads", "indexes" or "backfill ID".
        outside: months that were left out because they have no partitions.
        beyond: months before or after the requested range.
        remarks: what the listing of each source has left out or had to guess.
        threads: number of threads of the whole corpus.
        commits: numbers of commits of all repositories, and of commits linked to mail.
        interrupted: Ctrl-C ended the backfill.
    """

    done: list[ListMonth] = field(default_factory=list)
    unchanged: list[ListMonth] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    outside: list[ListMonth] = field(default_factory=list)
    beyond: list[ListMonth] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    threads: int = 0
    commits: dict[str, int] = field(default_factory=dict)
    interrupted: bool = False
    _months: dict[str, dict[ListMonth, Counter[str]]] = field(default_factory=dict)

    @property
    def assets(self) -> tuple[str, ...]:
        """The assets that are counted, in the order of the chain."""
        return tuple(self._months)

    @property
    def changed(self) -> bool:
        """True if anything was written or deleted anywhere."""
        return any(self.changed_in(asset) for asset in self._months)

    def changed_in(self, asset: str) -> bool:
        """Return whether rows or vectors of an asset were written or deleted."""
        counts = self.counts_of(asset)
        return bool(counts["written"] or counts["deleted"])

    def changed_much_in(self, asset: str) -> bool:
        """Return whether enough of an asset's index changed to maintain it."""
        counts = self.counts_of(asset)
        held = sum(counts[name] for name in STATE_COUNTS[asset])
        return counts["written"] + counts["deleted"] >= min(MUCH_CHANGED, held * SHARE_CHANGED)

    def expect(self, assets: Iterable[str]) -> None:
        """Start counting these assets from 0."""
        for asset in assets:
            self._months.setdefault(asset, {})

    def add(self, asset: str, month: ListMonth, counts: Mapping[str, int]) -> None:
        """Add the counts that a step recorded for a month.

        A step that is retried, or run again in a smaller range, records the month again. Then
        counts of content replace the earlier ones, and counts of work are added.
        """
        kept = self._months.setdefault(asset, {}).setdefault(month, Counter())
        for name in STATE_COUNTS[asset]:
            kept[name] = counts[name]
        for name in WORK_COUNTS[asset]:
            kept[name] += counts[name]

    def add_unchanged(self, months: Mapping[ListMonth, UnchangedMonth]) -> None:
        """Add months that need no run, with their recorded counts."""
        self.unchanged += months
        for month, kept in months.items():
            for asset in self.assets:
                counts = kept.states[asset].counts
                held = {name: int(counts[name]) for name in STATE_COUNTS[asset]}
                self.add(asset, month, held | dict.fromkeys(WORK_COUNTS[asset], 0))

    def merge(self, other: "Report") -> None:
        """Add the months and failures of another report."""
        self.done += other.done
        self.failed.update(other.failed)
        self.interrupted |= other.interrupted
        for asset, months in other._months.items():
            for month, counts in months.items():
                self.add(asset, month, counts)

    def counts_of(self, asset: str) -> Counter[str]:
        """Return the summed counts of an asset, by name, including zeros."""
        names = STATE_COUNTS[asset] + WORK_COUNTS[asset]
        totals = Counter(dict.fromkeys(names, 0))
        for counts in self._months.get(asset, {}).values():
            totals.update(counts)
        if asset == "embeddings":
            # the recorded count is wrong after a retry, which reuses the texts of the first attempt
            totals["reused"] = totals["texts"] - totals["encoded"]
        return totals


class MonthRange(NamedTuple):
    """The first and the last month of a run, of the same list, both included."""

    first: ListMonth
    last: ListMonth

    @property
    def months(self) -> list[ListMonth]:
        """Every month of the range, in order."""
        between = months_between(self.first.month, self.last.month)
        return [ListMonth(self.first.list_name, month) for month in between]

    def __str__(self) -> str:
        """Return "LIST YYYY-MM to YYYY-MM"."""
        return f"{self.first} to {self.last.month}"


def calendar_year_ranges(months: Iterable[ListMonth]) -> list[MonthRange]:
    """Return one range per calendar year, from its first to its last month, gaps included."""
    years = itertools.groupby(sorted(months), key=lambda month: month.year)
    groups = [[*group] for _, group in years]
    return [MonthRange(group[0], group[-1]) for group in groups]


def contiguous_ranges(months: Iterable[ListMonth]) -> list[MonthRange]:
    """Return ranges of one list each, without gaps, none longer than a calendar year."""
    ranges: list[MonthRange] = []
    for month in sorted(months):
        last = ranges[-1].last if ranges else month
        following = last.list_name, next_month(last.month)
        if (month.list_name, month.month) == following and month.year == last.year:
            ranges[-1] = MonthRange(ranges[-1].first, month)
        else:
            ranges.append(MonthRange(month, month))
    return ranges


class RunsPlanned(NamedTuple):
    """All runs are planned: number of list-months of all ranges, and the assets to make."""

    months: int
    assets: tuple[str, ...]


class MonthsPassed(NamedTuple):
    """Months that need no run were skipped."""

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
    """Work on the whole corpus begins: "threads", "commits" or "indexes"."""

    name: str


Event = (
    RunsPlanned
    | MonthsPassed
    | RangeStarted
    | RangeSplit
    | RangeFinished
    | StageStarted
    | MonthFinished
    | LogLine
)

#: Receives each event, in the thread that runs the backfill; must return at once.
Listener = Callable[[Event], None]
