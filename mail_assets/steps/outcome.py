"""The result of a step.

[wording] What the mail of a list is written in, as its rows depend on it.
"""

from typing import NamedTuple

from mail_assets.errors import MonthError
from mail_assets.tables.partitions import Counts


class Outcome(NamedTuple):
    """The result of one step for one partition.

    `counts` are plain numbers under stable names, `digest` identifies what the partition
    holds now, `changed` says whether anything was written.
    """

    counts: Counts
    digest: str
    changed: bool
    note: str = ""


class StepError(MonthError):
    """A partition that cannot be made: names the list, the month, the reason, the remedy."""


def rate(amount: float, seconds: float) -> float:
    """Return an amount per second, rounded to what is worth reading."""
    return round(amount / seconds, 1) if seconds > 0 else 0.0


class Wording(NamedTuple):
    """A text search configuration, and the charset of mail that names none; "": not known."""

    language: str
    charset: str = ""

    def __str__(self) -> str:
        """Return it as it stands in the inputs of a month: one word."""
        return f"{self.language}/{self.charset}" if self.charset else self.language
