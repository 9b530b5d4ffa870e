"""Find damaged or missing rows, and missing tables.

Rows are compared with the recorded states of their months (tables/partitions.py) and with each
other. operations/damage.py compares files and indexes.
"""

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any, NamedTuple

import psycopg

from mail_assets.month import ListMonth
from mail_assets.postgres.statements import read_column, read_value, statement
from mail_assets.tables import commits, patch_series
from mail_assets.tables.checks import WrongSpans, count_months
from mail_assets.tables.commits import COMMITS_VERSION
from mail_assets.tables.kept_rows import KEPT, REMADE
from mail_assets.tables.partitions import State, read_state, read_states
from mail_assets.tables.removals import LOAD_AGAIN
from mail_assets.tables.threads import CORPUS, count_aliases, summarize_threads

#: Asset -> the figure in a month's state that counts its rows, and the verb for the message.
_RECORDED = {
    "messages": ("stored", "loaded"),
    "patches": ("rows", "read"),
    "commits": ("commits", "read"),
    "chunks": ("chunks", "cut"),
}


class _Rows(NamedTuple):
    """Figures of a month's rows; `altered` is the number of rows that were changed."""

    number: int = 0
    digest: str | None = None
    altered: int = 0
    tokens: int | None = None


class DamagedRows(NamedTuple):
    """Damaged rows of an asset in a month; `month` is None for the whole corpus."""

    asset: str
    problem: str
    month: ListMonth | None


def find_missing_tables(connection: psycopg.Connection) -> list[str]:
    """Return the tables that the database lacks."""
    query = statement("damage", "missing_tables")
    return read_column(connection, query, {"tables": sorted(KEPT | REMADE)})


def find_damaged_rows(connection: psycopg.Connection, list_name: str) -> Iterator[DamagedRows]:
    """Yield the months of a list whose rows differ from what its steps recorded."""
    states = read_states(connection, [list_name])

    def read(name: str) -> dict[str, tuple[Any, ...]]:  # the figures of each month
        rows = connection.execute(statement("damage", name), {"list": list_name})
        return {month: tuple(figures) for month, *figures in rows.fetchall()}

    rows = {asset: read(asset) for asset in _RECORDED}
    entries, quarantined, removed = read("entries"), read("quarantined"), read("removed")
    senders, archives = {*read("wrong_senders")}, {*read("wrong_archives")}
    chunked = [month for month in states if "chunks" in states[month]]
    spans = count_months(connection, chunked, WrongSpans)
    named = {*chain.from_iterable(rows.values()), *entries}
    found = {*states, *(ListMonth(list_name, month) for month in named)}
    for month in sorted(found):
        made, key = states.get(month, {}), month.month
        if key in archives:
            yield DamagedRows("mbox_archives", "rows of mbox_archives", month)
        faults = {
            asset: _find_fault(asset, made, _Rows(*of_months.get(key, ())))
            for asset, of_months in rows.items()
        }
        if not faults["chunks"] and month in spans and spans[month].wrong:
            faults["chunks"] = "are not the text of their messages"
        for asset, fault in faults.items():
            if fault:
                yield DamagedRows(asset, f"rows of {asset} {fault}", month)
        account = (*entries.get(key, (0, 0, 0, 0, 0)), *quarantined.get(key, (0,)))
        if _has_other_entries(made.get("messages"), account, removed.get(key, (0,))[0]):
            yield DamagedRows("messages", "rows of archive_entries or quarantine", month)
        if key in senders:
            yield DamagedRows("messages", "rows of senders", month)


def _find_fault(asset: str, made: Mapping[str, State], rows: _Rows) -> str:
    """Return the difference between the rows of a month and its record, "" if there is none."""
    state, (counted, verb) = made.get(asset), _RECORDED[asset]
    if state is None:
        return "have no record" if rows.number else ""
    if rows.altered:
        return "were changed"
    if not _is_current(asset, made):
        return ""  # the next run makes them again
    if rows.number != state.counts[counted]:
        return "are missing or too many"
    if rows.number and rows.digest != state.digest:
        return f"are not those that were {verb}"
    # fewer tokens are no fault: forgetting deletes chunks but does not count tokens again
    return "were changed" if rows.tokens and rows.tokens > state.counts["tokens"] else ""


def _is_current(asset: str, made: Mapping[str, State]) -> bool:
    inputs = made[asset].inputs
    if asset == "messages":  # rows marked to be loaded again may have no hash
        return LOAD_AGAIN not in inputs
    if asset == "commits":
        return inputs.startswith(f"commits {COMMITS_VERSION} ")
    return "messages" not in made or inputs.startswith(f"{made['messages'].digest} ")


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


def find_wrong_contested(connection: psycopg.Connection) -> list[ListMonth]:
    """Return the months whose rows of contested_texts do not follow from their messages."""
    with connection.transaction(force_rollback=True):
        before = {*connection.execute(statement("damage", "contested"))}
        connection.execute(statement("damage", "settle_contested"))
        after = {*connection.execute(statement("damage", "contested"))}
    return sorted({ListMonth(list_name, month) for list_name, month, *_ in before ^ after})


def find_unowned_rows(connection: psycopg.Connection) -> list[tuple[str, str]]:
    """Return (table, list) of rows whose month no run has recorded."""
    return connection.execute(statement("damage", "unowned")).fetchall()


def find_damaged_threads(connection: psycopg.Connection) -> Iterator[DamagedRows]:
    """Yield the damaged rows of threads, aliases and summaries."""
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
    """Yield the damaged rows and figures of patch_series."""
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
    """Yield the damaged links of commits; the links of each month are counted again.

    If they are right, yield damaged states of patches, which are made from links and series.
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
