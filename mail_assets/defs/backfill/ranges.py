"""Months of a list cut into ranges, each of them one run."""

import itertools
from collections.abc import Iterable
from typing import NamedTuple

from mail_assets.month import ListMonth, months_between


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
    """Return one range for each calendar year, from its first month to its last; gaps included."""
    years = itertools.groupby(sorted(months), key=lambda month: month.year)
    groups = [[*group] for _, group in years]
    return [MonthRange(group[0], group[-1]) for group in groups]


def contiguous_ranges(months: Iterable[ListMonth]) -> list[MonthRange]:
    """Return ranges without gaps, none longer than a calendar year."""
    ranges: list[MonthRange] = []
    for month in sorted(months):
        if ranges and _follows(ranges[-1], month):
            ranges[-1] = MonthRange(ranges[-1].first, month)
        else:
            ranges.append(MonthRange(month, month))
    return ranges


def _follows(before: MonthRange, month: ListMonth) -> bool:
    next_month = len(months_between(before.last.month, month.month)) == 2
    return next_month and before.first.year == month.year
