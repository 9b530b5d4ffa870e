"""Upkeep of a LanceDB table that grows: new rows are moved into one fragment, and indexed anew.

For one process at a time, while others write, to whom it gives way. LanceDB's own upkeep merges new
rows into the indexes: quickly where the index is of vectors and gets few segments by it; otherwise
it writes all of an index again, and compacts all rows that are indexed (fragments.py has the
figures). Which indexes a table has, and how much may wait for them, is not said here:
vectors/lance/maintenance.py, words/lance/maintenance.py.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import NamedTuple

from lancedb.table import Table

from mail_assets.lance.conflicts import run_between_writers
from mail_assets.lance.fragments import (
    Fragment,
    count_rows,
    find_rest,
    find_unindexed,
    move_rows,
    read_fragments,
)
from mail_assets.lance.index_state import IndexState, read_index_states, read_size
from mail_assets.lance.versions import AT_ONCE, cleanup_age
from mail_assets.processes.memory import release_freed_memory

#: What a month is found by: made anew in a microsecond a row, and so more often than the others.
FINDERS = ("list", "month")


class Upkeep(Enum):
    """What upkeep is due: each is more work, and includes the one before."""

    FINDERS = auto()  # the indexes that a month is found by are made anew
    FRAGMENTS = auto()  # rows that are not indexed are moved into one fragment
    INDEXES = auto()  # all indexes are made anew, but those that are postponed
    WHOLE = auto()  # the table is maintained


class Indexes(NamedTuple):
    """The indexed columns of a table.

    `main` is the one whose index searches ask: of vectors it keeps `bits` of each number, and has
    up to `segments`, to which new ones are quickly merged; 0 where that is slow. `postponed` wait
    for the table to be maintained. `merged` is quickly merged, and therefore not made anew then:
    LanceDB compacts only fragments that the same indexes have, so that those which this one lacks
    stay apart from the others.
    """

    columns: Sequence[str]
    main: str
    bits: int | None = None
    segments: int = 0
    postponed: Sequence[str] = ()
    merged: str | None = None


class Limits(NamedTuple):
    """How much may wait: rows that an index lacks, and fragments.

    Fewer than `least` rows always may; more than that for as long as `old` (`finders_old`), or
    until they are a share of the table (`share`, `finders_share`). Fragments may be `fragments`,
    and more of a large table, one for each `fragment_rows`, so that moving their rows stays
    proportional to what was added. A table of fewer rows than `indexed_from` has no indexes.
    """

    least: int
    share: float
    old: dt.timedelta
    finders_share: float
    finders_old: dt.timedelta
    fragments: int
    fragment_rows: int
    indexed_from: int = 0

    def has_many_fragments(self, fragments: int, rows: int) -> bool:
        """Tell whether a table of so many rows is to have fewer fragments."""
        return fragments > max(self.fragments, rows // self.fragment_rows)


@dataclass(frozen=True)
class TableUpkeep:
    """The upkeep of a table; `label` names it in errors of the kind `errors`.

    `create_index` makes the index of a column, in place of the one that there is.
    """

    table: Table
    indexes: Indexes
    limits: Limits
    create_index: Callable[[str], None]
    label: str
    errors: type[RuntimeError]

    def find_due(self) -> Upkeep | None:
        """Return the upkeep that is due, None where little was written since the last one."""
        limits = self.limits
        rows, fragments = read_size(self.table)
        many = limits.has_many_fragments(fragments, rows)
        if rows < limits.least:
            return Upkeep.WHOLE if many else None
        states = read_index_states(self.table)
        if self._is_outdated(states):
            return Upkeep.WHOLE
        if states[self.indexes.main].lacks(rows, limits.share, limits.least):
            return Upkeep.INDEXES
        if many:
            return Upkeep.FRAGMENTS
        return Upkeep.FINDERS if self._is_slow_to_find(states, rows) else None

    def catch_up(self) -> None:
        """Do what is due while the table is being filled.

        What is not indexed is moved into one fragment before it is; until then searches read it row
        by row. The files of replaced indexes stay until the table is maintained.

        Raises:
            RuntimeError: of the kind `errors`, where writers kept interrupting; nothing is lost,
                run it again.
        """
        due = self.find_due()
        if due is None:
            return
        if due is Upkeep.FINDERS:
            self._index_new((), self._finders())
            return
        new = None if due is Upkeep.WHOLE else self._find_unindexed()
        if new is None:
            self.maintain()
        elif due is Upkeep.FRAGMENTS:
            self._index_new(new, self._finders())
        else:
            postponed = self.indexes.postponed
            self._index_new(new, [one for one in self.indexes.columns if one not in postponed])

    def maintain(self, *, erase: bool = False) -> None:
        """Index what is new, compact, and delete the versions that no reader needs any more.

        What was added since the last time is moved into one fragment, and the indexes that lack it
        are made anew; LanceDB, which deletes old versions only with compacting, finds nothing to
        compact then. What it merges quickly is left to it. `erase` leaves nothing of deleted rows
        in any file: every row is moved, and every index made anew, since an index keeps what it has
        of a fragment that is gone.

        Raises:
            RuntimeError: of the kind `errors`, where writers kept interrupting; nothing is lost,
                run it again.
        """

        def work() -> None:
            if erase or not self._is_quickly_merged():
                self._write_anew(erase)
            age = AT_ONCE if erase else cleanup_age(self.table)
            self.table.optimize(cleanup_older_than=age)

        run_between_writers(work, self.label, self.errors)

    def create_missing_indexes(self) -> None:
        """Create the indexes that the table lacks."""
        states = read_index_states(self.table)
        self._index_anew(column for column in self.indexes.columns if column not in states)

    def _index_new(self, new: Sequence[Fragment], columns: Sequence[str]) -> None:
        def work() -> None:
            move_rows(self.table, new)
            self._index_anew(columns)

        run_between_writers(work, self.label, self.errors)

    def _is_quickly_merged(self) -> bool:
        """Tell whether LanceDB is to merge what is new into the indexes, which are all there."""
        rows, _ = read_size(self.table)
        if rows < self.limits.indexed_from:
            return True
        states = read_index_states(self.table)
        if any(column not in states for column in self.indexes.columns):
            return False
        main = states[self.indexes.main]
        segments = main.segments + bool(main.unindexed_rows)
        much = main.lacks(rows, self.limits.share, self.limits.least)
        return segments <= self.indexes.segments and not much and not self._has_other_bits(main)

    def _write_anew(self, erase: bool) -> None:
        """Move what was added, or every row, and make the indexes that lack it anew."""
        fragments = read_fragments(self.table)
        move_rows(self.table, fragments if erase else find_rest(fragments))
        if count_rows(fragments) >= self.limits.indexed_from:
            self._index_anew(self.indexes.columns if erase else self._find_lacking())

    def _is_outdated(self, states: Mapping[str, IndexState]) -> bool:
        """Tell whether the table is to be maintained: for long much was not indexed, or never."""
        main, limits = self.indexes.main, self.limits
        waiting = [states[one] for one in (main, *self.indexes.postponed) if one in states]
        return main not in states or any(
            one.is_outdated(limits.old, limits.least) for one in waiting
        )

    def _is_slow_to_find(self, states: Mapping[str, IndexState], rows: int) -> bool:
        limits = self.limits
        finders = [states[column] for column in self._finders() if column in states]
        return any(
            one.lacks(rows, limits.finders_share, limits.least)
            or one.is_outdated(limits.finders_old, limits.least)
            for one in finders
        )

    def _find_unindexed(self) -> Sequence[Fragment] | None:
        """Return the fragments that searches read row by row, None where the others are many."""
        fragments = read_fragments(self.table)
        main = read_index_states(self.table)[self.indexes.main]
        new = find_unindexed(fragments, main.unindexed_rows)
        others = len(fragments) - len(new)
        return None if self.limits.has_many_fragments(others, count_rows(fragments)) else new

    def _find_lacking(self) -> list[str]:
        """Return the columns whose indexes are missing, of another version, or lack rows."""
        states = read_index_states(self.table)
        return [
            column
            for column in self.indexes.columns
            if (state := states.get(column)) is None
            or (state.unindexed_rows and column != self.indexes.merged)
            or self._has_other_bits(state)
        ]

    def _has_other_bits(self, state: IndexState) -> bool:
        return None not in (state.bits, self.indexes.bits) and state.bits != self.indexes.bits

    def _finders(self) -> list[str]:
        return [column for column in FINDERS if column in self.indexes.columns]

    def _index_anew(self, columns: Iterable[str]) -> None:
        for column in columns:
            release_freed_memory()  # or what the last one used would stay beside this one's
            self.create_index(column)
