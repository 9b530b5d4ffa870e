"""Upkeep of a LanceDB table that grows: new rows are moved into one fragment, and indexed anew.

For one process at a time, while others write, to whom it gives way. LanceDB's own upkeep merges new
rows into the indexes: quickly where the index is of vectors and gets few segments by it; otherwise
it writes all of an index again, and compacts all rows that are indexed (fragments.py has the
figures). Which indexes a table has, and how much may wait for them, is not said here:
vectors/lance/maintenance.py, words/lance/maintenance.py.

[fragments] The fragments of a LanceDB table: which rows upkeep writes again, and into how few files.

LanceDB compacts neighbouring fragments that are in the same indexes, for which it writes every
index again with the new places of its rows: of a million documents in 134 s, with 2.1 GB of memory.
To merge new documents into the indexes takes another 103 s and 1.8 GB; to make the indexes anew
takes 127 s and 1.3 GB. So upkeep of a table that grows moves new rows by an update, which takes
them out of every index, and makes the indexes anew: in between a search reads these one by one.

[versions] Old versions of a LanceDB table: how long its readers need them.

[conflicts] Upkeep of a LanceDB table gives way to its writers, tries again, and leaves no memory behind.

[index_state] The indexes of a LanceDB table: what state each is in.

[pruning] Delete the old versions of all tables of a place, those included that no upkeep looks at.
"""

from __future__ import annotations

import datetime as dt
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from itertools import dropwhile
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
from lancedb.table import Table

from mail_assets.errors import MailAssetsError
from mail_assets.lance.connection import LanceConnection, lance_errors, lance_location
from mail_assets.processes.machine import release_freed_memory

#: Lance writes no more rows than 2**20 into a fragment, and compacts those with fewer. The last of
#: a full one may have been deleted.
FULL = 2**20 - 1_000
#: Rows behind the largest fragment, as a share of its own, that are moved without it: what is moved
#: follows what was added, and a table that grows by half is moved whole.
REST_SHARE = 0.5
#: A row's place in its fragment takes the low bits of its number.
PLACE_BITS = 32


class Fragment(NamedTuple):
    """A fragment: its number, its rows, and how many it has with those that were deleted."""

    number: int
    rows: int
    size: int


def read_fragments(table: Table) -> list[Fragment]:
    """Return the fragments in their order: 10 ms for a million rows."""
    rows, sizes = Counter[int](), Counter[int]()
    search = table.search().select(["_rowid"]).limit(None)
    for batch in search.to_batches(100_000):
        row_ids = batch.column("_rowid").to_numpy()
        numbers, starts, counts = np.unique(
            row_ids >> PLACE_BITS, return_index=True, return_counts=True
        )
        for number, start, count in zip(numbers, starts, counts, strict=True):
            last_place = row_ids[start + count - 1] & (2**PLACE_BITS - 1)
            rows[int(number)] += int(count)
            sizes[int(number)] = max(sizes[int(number)], int(last_place) + 1)
    return [Fragment(number, rows[number], sizes[number]) for number in sorted(rows)]


def find_rest(fragments: Sequence[Fragment]) -> Sequence[Fragment]:
    """Return the fragments whose rows upkeep moves into one.

    Full ones stay, and the first that is not full, unless those behind it have half as many rows.
    """
    small = list(dropwhile(lambda fragment: fragment.size >= FULL, fragments))
    rest = small[1:]
    if small and count_rows(rest) > REST_SHARE * small[0].rows:
        return small
    return rest


def find_unindexed(fragments: Sequence[Fragment], unindexed_rows: int) -> Sequence[Fragment]:
    """Return the fragments that an index lacks, which are the last: so many rows."""
    rows = 0
    for place in range(len(fragments) - 1, -1, -1):
        rows += fragments[place].rows
        if rows > unindexed_rows:
            return fragments[place + 1 :]
    return fragments


def count_rows(fragments: Sequence[Fragment]) -> int:
    """Return the rows of some fragments."""
    return sum(fragment.rows for fragment in fragments)


def move_rows(table: Table, fragments: Sequence[Fragment]) -> None:
    """Write the rows of these last fragments again, into one, in 20 microseconds a row."""
    if fragments:
        first_row = fragments[0].number << PLACE_BITS
        table.update(where=f"_rowid >= {first_row}", values_sql={"key": "key"})


# A reader stays on the version that it began with: a query for a second, keys() of 3 million for a
# quarter of a minute. What upkeep has replaced stays on the disk for as long.
LONGEST_READ = dt.timedelta(minutes=2)
# Lance compacts and deletes in one call, and what is old by the end of it goes: the time that
# compacting takes must not make versions look older. After upkeep there is little to compact.
COMPACTING = dt.timedelta(minutes=1)
# Every version but the newest goes. Lance counts milliseconds, and warns of 0.
AT_ONCE = dt.timedelta(milliseconds=1)


def cleanup_age(table: Table) -> dt.timedelta:
    """Return the age from which `optimize` may delete versions: no reader has them any more."""
    return dt.datetime.now(dt.UTC) - find_oldest_kept(table)


def count_old_versions(table: Table) -> int:
    """Count the versions that no reader can be on any more."""
    oldest = find_oldest_kept(table)
    return sum(time < oldest for time in _read_times(table))


def find_oldest_kept(table: Table) -> dt.datetime:
    """Return the time before which the versions of a table were written that may be deleted."""
    began = dt.datetime.now(dt.UTC) - LONGEST_READ
    return oldest_in_use(_read_times(table), began) - COMPACTING


def oldest_in_use(written: Iterable[dt.datetime], began: dt.datetime) -> dt.datetime:
    """Return when the oldest version was written that a reader who `began` then may be on.

    That is the version which was the newest at the time, however long it had been.
    """
    times = sorted(written)
    return max((time for time in times if time <= began), default=times[0])


def _read_times(table: Table) -> list[dt.datetime]:
    # Lance gives local times without a zone.
    return [version["timestamp"].astimezone(dt.UTC) for version in table.list_versions()]


ATTEMPTS = 3


def run_between_writers(
    work: Callable[[], None], label: str, errors: type[MailAssetsError]
) -> None:
    """Run `work`, again where a writer was faster; `label` names the table in errors.

    Raises:
        RuntimeError: of the kind `errors`, where LanceDB fails, or writers interrupted every
            attempt.
    """
    for attempt in range(1, ATTEMPTS + 1):
        try:
            with lance_errors(label, errors):
                work()
            return
        except errors as error:
            if "commit conflict" not in str(error):
                raise
            if attempt == ATTEMPTS:
                raise errors(
                    f"{label}: writers interrupted {attempt} attempts to maintain it; nothing is "
                    "lost; run it again when fewer partitions are being written"
                ) from error
        finally:
            release_freed_memory()


class IndexState(NamedTuple):
    """An index: its kind in small letters, rows in it and beside it, its segments, and its age.

    `bits` are those that one of vectors keeps of each number, None where it does not say.
    """

    kind: str
    rows: int
    unindexed_rows: int
    segments: int
    made_at: dt.datetime | None = None
    bits: int | None = None

    def lacks(self, rows: int, share: float, least: int) -> bool:
        """Tell whether it lacks so many rows, and this share, of a table of so many."""
        return self.unindexed_rows >= max(least, rows * share)

    def is_outdated(self, age: dt.timedelta, least: int) -> bool:
        """Tell whether it lacks so many rows and was made so long ago.

        One that does not say when it was made is old.
        """
        if self.unindexed_rows < least:
            return False
        return self.made_at is None or dt.datetime.now(dt.UTC) - self.made_at >= age


class TableSize(NamedTuple):
    """The rows of a table, and the fragments with too few of them."""

    rows: int
    small_fragments: int


def read_size(table: Table) -> TableSize:
    """Return the size of a table, from its manifest alone."""
    found = cast(dict[str, Any], table.stats())  # the type that LanceDB declares is another
    return TableSize(int(found["num_rows"]), int(found["fragment_stats"]["num_small_fragments"]))


def read_index_states(table: Table) -> dict[str, IndexState]:
    """Return the state of each index by its column."""
    return {
        index.columns[0]: IndexState(
            kind=index.index_type.lower(),
            rows=index.num_indexed_rows or 0,
            unindexed_rows=index.num_unindexed_rows or 0,
            segments=index.num_segments or 0,
            made_at=index.created_at,
            bits=_read_bits(index),
        )
        for index in table.list_indices()
    }


def _read_bits(index: Any) -> int | None:
    details = cast(dict[str, Any], index.index_details or {})
    return cast(int | None, details.get("compression", {}).get("num_bits"))


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
    errors: type[MailAssetsError]

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


class OldVersions(NamedTuple):
    """Versions that no reader needs, and their bytes; None before they are gone, and on S3."""

    versions: int
    bytes: int | None


def clean_table(table: Table, label: str, errors: type[MailAssetsError]) -> None:
    """Delete the versions of a table that no reader can be on, and compact it.

    LanceDB does both or neither.

    Raises:
        RuntimeError: of the kind `errors`, where writers kept interrupting; nothing is lost, run it
            again.
    """

    def clean() -> None:
        table.optimize(cleanup_older_than=cleanup_age(table))

    run_between_writers(clean, label, errors)


def prune_versions(
    url: str,
    clean: Callable[[Table, str], None],
    errors: type[MailAssetsError],
    *,
    dry_run: bool = False,
) -> OldVersions:
    """Delete the versions that no reader can be on, of every table at a `lance:` URL.

    `clean` does it to one table, whose name for errors it is given too.

    Raises:
        RuntimeError: of the kind `errors`, where the tables cannot be listed; and what `clean`
            raises.
    """
    uri, options = lance_location(url.removeprefix("lance:"), os.environ)
    with lance_errors(f"lance:{uri}", errors):
        connection = LanceConnection(uri, options)
        names = connection.list_tables()
    tables = {name: connection.blocking.open_table(name) for name in names}
    old = {name: count for name, table in tables.items() if (count := count_old_versions(table))}
    if dry_run or not old:
        return OldVersions(sum(old.values()), None if old else 0)
    before = _folder_size(uri)
    for name in old:
        clean(tables[name], f"index {name} in {url}")
    after = _folder_size(uri)
    freed = None if before is None or after is None else max(0, before - after)
    return OldVersions(sum(old.values()), freed)


def _folder_size(uri: str) -> int | None:
    """Return the bytes of all files of a folder, None of a place on S3."""
    if "://" in uri:
        return None
    return sum(path.stat().st_size for path in Path(uri).rglob("*") if path.is_file())
