"""Figures for the checks of months; one statement reads the figures of all given months.

Each class of figures has the columns of the statement with its name in sql/checks.sql.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import psycopg

from mail_assets.month import ListMonth, columns_of
from mail_assets.postgres.statements import read_column, statement

_Figures = TypeVar("_Figures")


class MessageCounts(NamedTuple):
    """The messages of an archive by outcome, counted from the tables.

    `unpacked_bytes` is the length of the decompressed archive: an empty file has about 20 bytes
    when compressed.
    """

    found: int
    unpacked_bytes: int
    archived: bool
    stored: int
    duplicates: int
    quarantined: int
    removed: int
    suspicious: int

    @property
    def balanced(self) -> bool:
        """Return whether every message found is stored, a duplicate, quarantined or removed."""
        return self.found == self.accounted

    @property
    def accounted(self) -> int:
        """Return how many messages are stored, duplicates, quarantined or removed."""
        return self.stored + self.duplicates + self.quarantined + self.removed

    @property
    def empty(self) -> bool:
        """Return whether an archive has bytes but no message."""
        return self.archived and self.unpacked_bytes > 0 and self.found == 0


class Tokens(NamedTuple):
    """Token statistics of a month's chunks."""

    least: int
    mean: float
    most: int
    chunks: int


class PatchCounts(NamedTuple):
    """The patches of a month, and its messages with lines of a diff or an attached patch.

    `without_row` counts messages without a row of patches. `without_patch` counts those in which
    the step found no patch.
    """

    rows: int
    malformed: int
    messages: int
    without_row: int
    without_patch: int

    @property
    def balanced(self) -> bool:
        """Return whether every message with lines of a diff has a row or contains no patch."""
        return self.without_row == self.without_patch


class CommitCounts(NamedTuple):
    """Numbers of commits of a month: stored now, and recorded by the run that read them."""

    rows: int
    recorded: int


class SeriesCounts(NamedTuple):
    """Patches of a month. `without_series`: in no series, and not waiting to be grouped."""

    patches: int
    without_series: int


class LinkCounts(NamedTuple):
    """A month's links of commits: now, recorded, to missing mail; `waiting`: to be made again."""

    links: int
    recorded: int
    without_message: int
    waiting: bool

    @property
    def right(self) -> bool:
        """Return whether all links are there and lead to messages, or will be made again."""
        return self.waiting or (self.links == self.recorded and not self.without_message)


class Dialects(NamedTuple):
    """The dialect used to read the archive of a month, and the one detected in it."""

    dialect: str
    better: str


class WrongSpans(NamedTuple):
    """Number of chunks of a month whose text differs from their spans in the body."""

    wrong: int


class Undated(NamedTuple):
    """Numbers of messages of a month: with a replaced Date, and all."""

    undated: int
    messages: int


class Unthreaded(NamedTuple):
    """Numbers of messages of a month: replies that join no thread, not in threads, and all."""

    replies_without_reference: int
    not_in_threads: int
    messages: int


class SummarySentences(NamedTuple):
    """Numbers of sentences in the summaries of a month's threads: all, and found in no message."""

    sentences: int
    wrong: int


class SummaryAges(NamedTuple):
    """Numbers of threads of a month by the state of their summary, and of all threads."""

    outdated: int
    missing: int
    waiting: int
    threads: int


def statement_name(figures: Callable[..., Any]) -> str:
    """Return the name in sql/checks.sql of a class of figures: patch_counts for `PatchCounts`."""
    return re.sub("(?<!^)(?=[A-Z])", "_", figures.__name__).lower()


def count_months(
    connection: psycopg.Connection,
    months: Sequence[ListMonth],
    figures: Callable[..., _Figures],
) -> dict[ListMonth, _Figures]:
    """Return figures, of a class of this module, for months in order; zeros if never made."""
    rows = connection.execute(statement("checks", statement_name(figures)), columns_of(months))
    found = {ListMonth(list_name, month): figures(*row) for list_name, month, *row in rows}
    return {month: found[month] for month in months}


def chunk_keys(connection: psycopg.Connection, month: ListMonth) -> set[str]:
    """Return the keys of a month's chunks."""
    return {*read_column(connection, statement("checks", "chunk_keys"), month.columns)}
