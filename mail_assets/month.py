"""A month of a mailing list, the unit of work and of partitions in all parts of the pipeline.

No code here uses Dagster, SQL or files. A partition key, two columns of a row, and a number in a
vector's metadata are forms of this value.
"""

import datetime as dt
import functools
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

#: The form of a month, from 1970-01 to 2099-12.
PATTERN = r"(19[7-9][0-9]|20[0-9][0-9])-(0[1-9]|1[0-2])"
_MONTH = re.compile(PATTERN)


@dataclass(frozen=True, order=True, slots=True)
class ListMonth:
    """One month of one mailing list; `month` is "YYYY-MM", from 1970-01 to 2099-12.

    Raises:
        ValueError: the month has another format.
    """

    list_name: str
    month: str

    def __post_init__(self) -> None:
        require_month(self.month)

    @classmethod
    def parse(cls, key: str) -> Self:
        """Parse a partition key, "LIST|YYYY-MM".

        Raises:
            ValueError: the key has another format.
        """
        list_name, bar, month = key.rpartition("|")
        if not bar or not list_name:
            raise ValueError(f"{key!r} is not a partition key, written LIST|YYYY-MM")
        return cls(list_name, month)

    @property
    def key(self) -> str:
        """The partition key, "LIST|YYYY-MM"."""
        return f"{self.list_name}|{self.month}"

    @property
    def columns(self) -> dict[str, str]:
        """The columns `list` and `month` of a partition's rows, as parameters of a statement."""
        return {"list": self.list_name, "month": self.month}

    @property
    def year(self) -> str:
        """The calendar year, "YYYY"."""
        return self.month[:4]

    def __str__(self) -> str:
        """Return "LIST YYYY-MM", as in log and error messages."""
        return f"{self.list_name} {self.month}"


def columns_of(months: Iterable[ListMonth]) -> dict[str, list[str]]:
    """Return the columns of several months, as parameters of a statement."""
    some = [*months]
    return {"lists": [one.list_name for one in some], "months": [one.month for one in some]}


#: Cached constructor of `ListMonth`: a search reads hundreds of rows of few months.
known_month = functools.lru_cache(maxsize=4_096)(ListMonth)


def month_number(month: str) -> int:
    """Return "2024-05" as 202405, because vector buckets compare numbers only."""
    return int(month.replace("-", ""))


def is_month(text: str) -> bool:
    """Return whether a text is a month from 1970-01 to 2099-12, written YYYY-MM."""
    return _MONTH.fullmatch(text) is not None


def require_month(text: str) -> None:
    """Raise ValueError if a text is not a month from 1970-01 to 2099-12, written YYYY-MM."""
    if not is_month(text):
        raise ValueError(f"{text!r} is not a month from 1970-01 to 2099-12, written YYYY-MM")


def months_between(first: str, last: str) -> list[str]:
    """Return every month from `first` to `last`, inclusive; none if `last` is earlier.

    Raises:
        ValueError: one of them is not a month.
    """
    low, high = _count(first), _count(last)
    return [_month(count) for count in range(low, high + 1)]


def next_month(month: str) -> str:
    """Return the month after `month`; after 2099-12 it is 2100-01, which no list has.

    Raises:
        ValueError: `month` is not a month.
    """
    return _month(_count(month) + 1)


def _month(count: int) -> str:
    return f"{count // 12:04d}-{count % 12 + 1:02d}"


def _count(month: str) -> int:
    require_month(month)
    year, number = month.split("-")
    return int(year) * 12 + int(number) - 1


def utc(moment: dt.datetime) -> str:
    """Return a moment as ISO 8601 in UTC, to the second."""
    return moment.astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
