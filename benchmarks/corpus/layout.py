"""Layout of a corpus: the epochs that make each month of each list.

`density` epochs share a month, so that a month holds as many messages as those of a busy list. Such
a *group* of epochs lies in the newest years, the next in those before, as far back as FIRST_YEAR;
then more lists begin. Every size has the same density, and its months lie as closely.
"""

from collections.abc import Iterator, Sequence
from itertools import count
from typing import NamedTuple

from benchmarks.corpus.source import SourceList

#: Mail of earlier years has other dates than those that a program wrote.
FIRST_YEAR = 1996


class CorpusMonth(NamedTuple):
    """One month of a list of the corpus.

    Made of `source_month` of a source list, `years` later, once in each of `epochs`.
    """

    list_name: str
    month: str
    source: SourceList
    source_month: str
    years: int
    epochs: range


def plan_months(lists: Sequence[SourceList], density: int) -> Iterator[CorpusMonth]:
    """Yield months without end, group after group; within one those of all lists evenly mixed."""
    newest = max(one.last for one in lists)
    span = max(-(-_months(one.first, one.last) // 12) for one in lists)
    eras = max(1, (_year(newest) - FIRST_YEAR) // span)
    order = [
        (place / len(one.months), one, month)
        for one in lists
        for place, month in enumerate(sorted(one.months))
    ]
    order.sort(key=lambda entry: (entry[0], entry[1].name))
    for group in count():
        copy, era = divmod(group, eras)
        epochs = range(group * density, (group + 1) * density)
        for _, one, month in order:
            name = one.name if copy == 0 else f"{one.name}-{copy + 1}"
            years = _years_to(one.last, newest) - era * span
            yield CorpusMonth(name, _shift(month, years), one, month, years, epochs)


def _months(first: str, last: str) -> int:
    return 12 * (_year(last) - _year(first)) + int(last[5:]) - int(first[5:]) + 1


def _years_to(last: str, newest: str) -> int:
    """Return the years that a list can be moved on without being newer than all others."""
    return _year(newest) - _year(last) - (last[5:] > newest[5:])


def _shift(month: str, years: int) -> str:
    return f"{_year(month) + years}{month[4:]}"


def _year(month: str) -> int:
    return int(month[:4])
