"""Arguments and results that steps share."""

from typing import NamedTuple

from mail_assets.errors import MonthError
from mail_assets.tables.partitions import Counts


class ListDefaults(NamedTuple):
    """Language and charset that a list's mail is loaded with, and whether it may be shown.

    `language` is a text search configuration of PostgreSQL. `charset` is that of mail that names
    none; where it is "", the parser takes windows-1252.
    """

    language: str
    charset: str = ""
    published: bool = True

    def __str__(self) -> str:
        """Return language and charset as one word, which stands in the inputs of a month."""
        return f"{self.language}/{self.charset}" if self.charset else self.language


class Outcome(NamedTuple):
    """Result of one step for one partition.

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
    """Return an amount per second, rounded to one digit."""
    return round(amount / seconds, 1) if seconds > 0 else 0.0
