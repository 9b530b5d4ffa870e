"""Figures for the checks of months, and rows that are not those that were recorded.

The figures come by one statement each for all months that are asked for. Damaged rows are found by
comparing them with the states of their months (tables/partitions.py) and with each other;
operations/damage.py compares files and indexes.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import psycopg

from mail_assets.month import ListMonth, columns_of
from mail_assets.postgres.statements import read_column, read_value, statement
from mail_assets.tables import commits, patch_series
from mail_assets.tables.commits import COMMITS_VERSION
from mail_assets.tables.partitions import State, read_state, read_states
from mail_assets.tables.removals import LOAD_AGAIN
from mail_assets.tables.threads import CORPUS, count_aliases, summarize_threads

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


#: Figures -> their statement in sql/checks.sql, which has a row for each month that is asked for.
STATEMENTS: Mapping[Callable[..., Any], str] = {
    Dialects: "dialects",
    MessageCounts: "message_counts",
    Undated: "undated",
    Unthreaded: "unthreaded",
    SummarySentences: "summary_sentences",
    SummaryAges: "summary_ages",
    PatchCounts: "patches",
    SeriesCounts: "series",
    CommitCounts: "commits",
    LinkCounts: "links",
    WrongSpans: "wrong_spans",
    Tokens: "tokens",
}


def count_months(
    connection: psycopg.Connection,
    months: Sequence[ListMonth],
    figures: Callable[..., _Figures],
) -> dict[ListMonth, _Figures]:
    """Return the figures of months, in their order, by one statement; `figures` is their class.

    A month that was never made has zeros.
    """
    rows = connection.execute(statement("checks", STATEMENTS[figures]), columns_of(months))
    found = {ListMonth(list_name, month): figures(*row) for list_name, month, *row in rows}
    return {month: found[month] for month in months}


def chunk_keys(connection: psycopg.Connection, month: ListMonth) -> set[str]:
    """Return the keys of a month's chunks."""
    return {*read_column(connection, statement("checks", "chunk_keys"), month.columns)}


class DamagedRows(NamedTuple):
    """Rows of an asset's month that are not as recorded; `month` is None for the whole corpus."""

    asset: str
    problem: str
    month: ListMonth | None


def find_missing_tables(connection: psycopg.Connection, tables: Collection[str]) -> list[str]:
    """Return the tables that the database lacks."""
    query = statement("damage", "missing_tables")
    return read_column(connection, query, {"tables": sorted(tables)})


def find_damaged_rows(connection: psycopg.Connection, list_name: str) -> Iterator[DamagedRows]:
    """Yield the months of a list whose rows are not those that its steps recorded."""
    states = read_states(connection, [list_name])

    def read(name: str) -> dict[str, tuple[Any, ...]]:  # the figures of each month
        rows = connection.execute(statement("damage", name), {"list": list_name})
        return {month: tuple(figures) for month, *figures in rows.fetchall()}

    messages, chunks, patches = read("messages"), read("chunks"), read("patches")
    commits = read("commits")
    entries, quarantined, removed = read("entries"), read("quarantined"), read("removed")
    senders, archives = {*read("wrong_senders")}, {*read("wrong_archives")}
    chunked = [month for month in states if "chunks" in states[month]]
    spans = count_months(connection, chunked, WrongSpans)
    found = {
        *states,
        *(ListMonth(list_name, one) for one in (*messages, *chunks, *patches, *commits, *entries)),
    }
    for month in sorted(found):
        made, key = states.get(month, {}), month.month
        if key in archives:
            yield DamagedRows("mbox_archives", "rows of mbox_archives", month)
        rows = messages.get(key, (0, None, 0))
        if fault := _fault_of_messages(made.get("messages"), rows):
            yield DamagedRows("messages", f"rows of messages {fault}", month)
        account = (*entries.get(key, (0, 0, 0, 0, 0)), *quarantined.get(key, (0,)))
        if _has_other_entries(made.get("messages"), account, removed.get(key, (0,))[0]):
            yield DamagedRows("messages", "rows of archive_entries or quarantine", month)
        if key in senders:
            yield DamagedRows("messages", "rows of senders", month)
        if fault := _fault_of_patches(made, patches.get(key, (0, None))):
            yield DamagedRows("patches", f"rows of patches {fault}", month)
        if fault := _fault_of_commits(made.get("commits"), commits.get(key, (0, None))):
            yield DamagedRows("commits", f"rows of commits {fault}", month)
        if fault := _fault_of_chunks(made, chunks.get(key, (0, None, 0, 0))):
            yield DamagedRows("chunks", f"rows of chunks {fault}", month)
        elif month in spans and spans[month].wrong:
            yield DamagedRows("chunks", "rows of chunks are not the text of their messages", month)


def _fault_of_messages(state: State | None, rows: tuple[Any, ...]) -> str:
    number, digest, altered = rows
    if altered:
        return "were changed"
    if state is None:
        return "have no record" if number else ""
    if LOAD_AGAIN in state.inputs:  # some have no hash until they are loaded again
        return ""
    if number != state.counts["stored"]:
        return "are missing or too many"
    return "" if not number or digest == state.digest else "are not those that were loaded"


def _has_other_entries(state: State | None, account: tuple[Any, ...], removed: int) -> bool:
    if state is None:
        return False
    found, duplicates, marked, without_row, altered, quarantined = account
    counts = state.counts
    return bool(
        without_row
        or altered
        or (found, duplicates, quarantined)
        != tuple(counts[name] for name in ("found", "duplicates", "quarantined"))
        or marked != quarantined
        or removed != counts["removed"]
    )


def _fault_of_patches(made: dict[str, State], rows: tuple[Any, ...]) -> str:
    number, digest = rows
    state, messages = made.get("patches"), made.get("messages")
    if state is None:
        return "have no record" if number else ""
    if messages and not state.inputs.startswith(f"{messages.digest} "):
        return ""  # they are read again by the next run
    if number != state.counts["rows"]:
        return "are missing or too many"
    return "" if not number or digest == state.digest else "are not those that were read"


def _fault_of_commits(state: State | None, rows: tuple[Any, ...]) -> str:
    number, digest = rows
    if state is None:
        return "have no record" if number else ""
    if not state.inputs.startswith(f"commits {COMMITS_VERSION} "):
        return ""  # they are read again by the next run
    if number != state.counts["commits"]:
        return "are missing or too many"
    return "" if not number or digest == state.digest else "are not those that were read"


def _fault_of_chunks(made: dict[str, State], rows: tuple[Any, ...]) -> str:
    number, digest, tokens, misplaced = rows
    state, messages = made.get("chunks"), made.get("messages")
    if state is None:
        return "have no record" if number else ""
    if misplaced:
        return "were changed"
    if messages and not state.inputs.startswith(f"{messages.digest} "):
        return ""  # they are cut again by the next run
    if number != state.counts["chunks"]:
        return "are missing or too many"
    if number and digest != state.digest:
        return "are not those that were cut"
    # forgetting does not count tokens again
    return "were changed" if tokens and tokens > state.counts["tokens"] else ""


def find_wrong_contested(connection: psycopg.Connection) -> list[ListMonth]:
    """Return the months with rows of contested_texts that are not what their messages say."""
    with connection.transaction(force_rollback=True):
        before = {*connection.execute(statement("damage", "contested"))}
        connection.execute(statement("damage", "settle_contested"))
        after = {*connection.execute(statement("damage", "contested"))}
    return sorted({ListMonth(list_name, month) for list_name, month, *_ in before ^ after})


def find_unowned_rows(connection: psycopg.Connection) -> list[tuple[str, str]]:
    """Return (table, list) of the rows of months that no run has made."""
    return connection.execute(statement("damage", "unowned")).fetchall()


def find_damaged_threads(connection: psycopg.Connection) -> Iterator[DamagedRows]:
    """Yield what is wrong with the rows of threads, and summaries without a thread."""
    state = read_state(connection, CORPUS)
    if state is None:
        return
    with connection.transaction():
        digest, _figures = summarize_threads(connection)
        aliases = count_aliases(connection)
        unthreaded = read_value(connection, statement("damage", "unthreaded"))
        summaries = read_value(connection, statement("damage", "wrong_summaries")) or read_value(
            connection, statement("damage", "missing_summaries")
        )
    if unthreaded or digest != state.digest:
        yield DamagedRows("threads", "rows of threads", None)
    elif aliases != state.counts.get("aliases", aliases):
        yield DamagedRows("threads", "rows of thread_aliases", None)
    if summaries:
        yield DamagedRows("thread_summaries", "rows of thread_summaries", None)


def find_damaged_series(connection: psycopg.Connection) -> Iterator[DamagedRows]:
    """Yield what is wrong with the rows of patch_series, and with what they are made from."""
    state = read_state(connection, patch_series.CORPUS)
    with connection.transaction():
        if patch_series.has_changes(connection):
            return  # they are grouped again by the next run
        digest, counts = patch_series.summarize_rows(connection)
        is_wrong = read_value(connection, statement("damage", "wrong_series"))
    recorded = int(state.digest, 16) if state else 0
    if is_wrong or digest % patch_series.MODULUS != recorded:
        yield DamagedRows("patch_series", "rows of patch_series", None)
    elif state and any(state.counts.get(name) != counts[name] for name in patch_series.FIGURES):
        yield DamagedRows("patch_series", "figures of patch_series", None)


def find_damaged_links(connection: psycopg.Connection) -> Iterator[DamagedRows]:
    """Yield what is wrong with the links of commits: those of each month are counted again.

    Else with the states of patches, which are made of links and series.
    """
    state = read_state(connection, commits.CORPUS)
    if commits.has_changes(connection):
        return  # they are made again by the next run
    months = {*commits.read_months(connection), *commits.find_linked(connection)}
    with connection.transaction(force_rollback=True):
        others = commits.settle_months(connection, months)
    is_wrong = others or read_value(connection, statement("damage", "wrong_links"))
    if is_wrong or (state and commits.sum_months(connection)[0] != state.digest):
        yield DamagedRows("commit_links", "rows of commit_links", None)
    elif patch_series.has_wrong_states(connection):
        yield DamagedRows("patch_series", "rows of patch_states", None)
