"""Figures for the checks of months: one statement each for all months that are asked for."""

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

import psycopg

from mail_assets.month import ListMonth
from mail_assets.postgres.statements import read_column, statement

_T = TypeVar("_T")


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


class Undated(NamedTuple):
    """The messages of a month whose Date had to be replaced, and all its messages."""

    undated: int
    total: int


class Unthreaded(NamedTuple):
    """Messages of a month: replies by subject without reference, not in threads, and all."""

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


def read_message_counts(
    connection: psycopg.Connection, months: Sequence[ListMonth]
) -> dict[ListMonth, MessageCounts]:
    """Count the messages of months; all counts are zero for a month that was never fetched."""
    return _by_month(connection, "message_counts", months, MessageCounts)


def count_patches(
    connection: psycopg.Connection, months: Sequence[ListMonth]
) -> dict[ListMonth, PatchCounts]:
    """Count the patches of months, and the messages that may have some."""
    return _by_month(connection, "patches", months, PatchCounts)


def count_commits(
    connection: psycopg.Connection, months: Sequence[ListMonth]
) -> dict[ListMonth, CommitCounts]:
    """Count the commits of months."""
    return _by_month(connection, "commits", months, CommitCounts)


def count_in_series(
    connection: psycopg.Connection, months: Sequence[ListMonth]
) -> dict[ListMonth, SeriesCounts]:
    """Count the patches of months, and those that are in no series."""
    return _by_month(connection, "series", months, SeriesCounts)


def count_links(
    connection: psycopg.Connection, months: Sequence[ListMonth]
) -> dict[ListMonth, LinkCounts]:
    """Count the links of the commits of months."""
    return _by_month(connection, "links", months, LinkCounts)


def read_dialects(
    connection: psycopg.Connection, months: Sequence[ListMonth]
) -> dict[ListMonth, tuple[str, str]]:
    """Return the dialect that the archive of each month is read in, and the one that was found."""
    return _by_month(connection, "dialects", months, lambda dialect, found: (dialect, found))


def count_undated(
    connection: psycopg.Connection, months: Sequence[ListMonth]
) -> dict[ListMonth, Undated]:
    """Count the messages of months whose Date had to be replaced."""
    return _by_month(connection, "undated", months, Undated)


def count_unthreaded(
    connection: psycopg.Connection, months: Sequence[ListMonth]
) -> dict[ListMonth, Unthreaded]:
    """Count the messages of months that are in no thread, or are replies without a reference."""
    return _by_month(connection, "unthreaded", months, Unthreaded)


def count_wrong_sentences(
    connection: psycopg.Connection, months: Sequence[ListMonth]
) -> dict[ListMonth, SummarySentences]:
    """Count sentences of summaries that are not in their message, for the threads of months."""
    return _by_month(connection, "summary_sentences", months, SummarySentences)


def read_summary_ages(
    connection: psycopg.Connection, months: Sequence[ListMonth]
) -> dict[ListMonth, SummaryAges]:
    """Count the threads of months whose summary is outdated, missing or due."""
    return _by_month(connection, "summary_ages", months, SummaryAges)


def count_wrong_spans(
    connection: psycopg.Connection, months: Sequence[ListMonth]
) -> dict[ListMonth, int]:
    """Count the chunks of months whose text differs from their spans."""
    return _by_month(connection, "wrong_spans", months, int)


def read_tokens(
    connection: psycopg.Connection, months: Sequence[ListMonth]
) -> dict[ListMonth, Tokens]:
    """Return the token statistics of months."""
    return _by_month(connection, "tokens", months, Tokens)


def chunk_keys(connection: psycopg.Connection, month: ListMonth) -> set[str]:
    """Return the keys of a month's chunks."""
    return {*read_column(connection, statement("checks", "chunk_keys"), month.columns)}


def _by_month(
    connection: psycopg.Connection,
    name: str,
    months: Sequence[ListMonth],
    make: Callable[..., _T],
) -> dict[ListMonth, _T]:
    """Return what `make` returns for the row of each month, in the order of `months`."""
    wanted = {"lists": [m.list_name for m in months], "months": [m.month for m in months]}
    rows = connection.execute(statement("checks", name), wanted).fetchall()
    found = {ListMonth(list_name, month): make(*row) for list_name, month, *row in rows}
    return {month: found[month] for month in months}
