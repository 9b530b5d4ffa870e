"""Figures for the checks of months: one statement each for all months that are asked for.

A class of figures has the columns of the statement of its name in sql/checks.sql.
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
        """Return whether an archive with bytes gave no message at all."""
        return self.archived and self.unpacked_bytes > 0 and self.found == 0


class Tokens(NamedTuple):
    """Token statistics of a month's chunks."""

    least: int
    mean: float
    most: int
    chunks: int


class PatchCounts(NamedTuple):
    """The patches of a month, and its messages that have lines of a diff or an attached patch.

    `without_row` have none, `without_patch` were read by the step and hold none.
    """

    rows: int
    malformed: int
    messages: int
    without_row: int
    without_patch: int

    @property
    def balanced(self) -> bool:
        """Return whether every message with lines of a diff has a row or holds no patch."""
        return self.without_row == self.without_patch


class CommitCounts(NamedTuple):
    """The commits of a month: those that are stored, and those that were read."""

    rows: int
    recorded: int


class SeriesCounts(NamedTuple):
    """The patches of a month, and those that are in no series and not waiting to be grouped."""

    patches: int
    without_series: int


class LinkCounts(NamedTuple):
    """The links of the commits of a month, their number when they were made, and to lost mail.

    `waiting`: the next run makes them again.
    """

    links: int
    recorded: int
    without_message: int
    waiting: bool

    @property
    def right(self) -> bool:
        """Return whether no link was lost and each leads to a message, or they are made again."""
        return self.waiting or (self.links == self.recorded and not self.without_message)


class Dialects(NamedTuple):
    """The dialect that the archive of a month is read in, and the one that was found in it."""

    dialect: str
    better: str


class WrongSpans(NamedTuple):
    """The chunks of a month whose text differs from their spans."""

    wrong: int


class Undated(NamedTuple):
    """The messages of a month whose Date had to be replaced, and all its messages."""

    undated: int
    messages: int


class Unthreaded(NamedTuple):
    """Messages of a month: answers without reference or thread to join, not in threads, and all."""

    replies_without_reference: int
    not_in_threads: int
    messages: int


class SummarySentences(NamedTuple):
    """Sentences in the summaries of a month's threads, and those that are in no message."""

    sentences: int
    wrong: int


class SummaryAges(NamedTuple):
    """Threads of a month: with an outdated summary, without one, waiting for one, and all."""

    outdated: int
    missing: int
    waiting: int
    threads: int


def statement_name(figures: Callable[..., Any]) -> str:
    """Return the name of the statement in sql/checks.sql with the columns of a class of figures.

    That of `PatchCounts` is patch_counts.
    """
    return re.sub("(?<!^)(?=[A-Z])", "_", figures.__name__).lower()


def count_months(
    connection: psycopg.Connection,
    months: Sequence[ListMonth],
    figures: Callable[..., _Figures],
) -> dict[ListMonth, _Figures]:
    """Return the figures of months, in their order, by one statement; `figures` is their class.

    A month that was never made has zeros.
    """
    rows = connection.execute(statement("checks", statement_name(figures)), columns_of(months))
    found = {ListMonth(list_name, month): figures(*row) for list_name, month, *row in rows}
    return {month: found[month] for month in months}


def chunk_keys(connection: psycopg.Connection, month: ListMonth) -> set[str]:
    """Return the keys of a month's chunks."""
    return {*read_column(connection, statement("checks", "chunk_keys"), month.columns)}
