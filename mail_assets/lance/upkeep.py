"""Upkeep of a LanceDB table that grows: move new rows into one fragment, index them, compact.

One process at a time does it, while others write. If a writer is faster, upkeep starts again.

LanceDB compacts neighbouring fragments that are in the same indexes, and then rewrites every index
with the new positions of the rows. Merging new rows into the indexes also rewrites most of them.
For a growing table, both take more time and memory than rebuilding the indexes once. So upkeep
moves new rows by an update, which removes them from every index, and rebuilds the indexes. Until
then searches read these rows one by one. Only a vector index with few segments is left to LanceDB,
which merges it quickly.

vectors/lance.py and words/lance.py say which indexes a table has, and how many rows may wait.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from itertools import dropwhile
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
from lancedb.table import Table

from mail_assets.environment import VARIABLES
from mail_assets.errors import MailAssetsError
from mail_assets.lance import lance_location
from mail_assets.lance.connection import LanceConnection, lance_errors
from mail_assets.processes.machine import release_freed_memory

#: Columns whose indexes find a month. Building these takes 1 us per row, so it is done more often.
FINDERS = ("list", "month")
#: Attempts of upkeep; each further one follows a writer that was faster.
ATTEMPTS = 3
#: Rows of a full fragment. Lance writes at most 2**20 rows into a fragment and compacts fragments
#: with fewer; a few of the last rows may have been deleted.
FULL = 2**20 - 1_000
#: Upkeep moves only the rows after the largest fragment if they are less than this share of it. So
#: a table is moved whole once it has grown by half; before, the work is proportional to new rows.
REST_SHARE = 0.5
#: Low bits of a row's number: its position in the fragment.
PLACE_BITS = 32
# A reader stays on the version with which it began: a query for a second, keys() of 3 million rows
# for 15 s. Replaced files stay on the disk for this time.
LONGEST_READ = dt.timedelta(minutes=2)
# Lance compacts and then deletes old versions in one call. Versions must not become old while it
# compacts. After upkeep there is little to compact.
COMPACTING = dt.timedelta(minutes=1)
# Deletes every version except the newest. Lance counts milliseconds and warns about 0.
AT_ONCE = dt.timedelta(milliseconds=1)


class Upkeep(Enum):
    """Upkeep that is due: each is more work, and includes the one before."""

    FINDERS = auto()  # rebuild the indexes that find a month
    FRAGMENTS = auto()  # move unindexed rows into one fragment
    INDEXES = auto()  # rebuild all indexes except the postponed ones
    WHOLE = auto()  # maintain the table


class Indexes(NamedTuple):
    """The indexed columns of a table.

    Searches ask the index of `main`. An index of vectors keeps `bits` of each number and may have
    `segments`, to which LanceDB quickly merges new ones; 0 if that is slow. `postponed` indexes
    wait until the table is maintained. `merged` is left to LanceDB then: it merges that index
    quickly, and compacts only fragments that are in the same indexes, so new fragments stay apart.
    """

    columns: Sequence[str]
    main: str
    bits: int | None = None
    segments: int = 0
    postponed: Sequence[str] = ()
    merged: str | None = None


class Limits(NamedTuple):
    """Limits of what may wait: rows that an index lacks, and fragments.

    Fewer than `least` rows may always wait. More may wait for `old` (`finders_old`), or until they
    are a share of the table (`share`, `finders_share`). A table may have `fragments`, or one for
    each `fragment_rows`, so that moving rows stays proportional to what was added. A table of fewer
    rows than `indexed_from` has no indexes.
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
        """Return whether a table of so many rows should have fewer fragments."""
        return fragments > max(self.fragments, rows // self.fragment_rows)


@dataclass(frozen=True)
class TableUpkeep:
    """The upkeep of a table; `label` names it in errors of the type `errors`.

    `create_index` makes or replaces the index of a column.
    """

    table: Table
    indexes: Indexes
    limits: Limits
    create_index: Callable[[str], None]
    label: str
    errors: type[MailAssetsError]

    def find_due(self) -> Upkeep | None:
        """Return the upkeep that is due, None if little was written since the last one."""
        limits = self.limits
        rows, fragments = _read_size(self.table)
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
        """Do the due upkeep of a table that is being filled.

        Unindexed rows are moved into one fragment and then indexed; until then searches read them
        one by one. The files of replaced indexes stay until the table is maintained.

        Raises:
            MailAssetsError: of the type `errors`, if writers kept interrupting; nothing is lost.
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
        """Index new rows, compact, and delete versions that no reader needs.

        New rows are moved into one fragment, and the indexes that lack them are rebuilt. LanceDB
        deletes old versions only when it compacts; by then there is nothing to compact. `erase`
        removes deleted rows from all files: every row is moved and every index rebuilt, because an
        index keeps its entries of a fragment that no longer exists.

        Raises:
            MailAssetsError: of the type `errors`, if writers kept interrupting; nothing is lost.
        """

        def work() -> None:
            if erase or not self._is_quickly_merged():
                self._rewrite(erase)
            age = AT_ONCE if erase else _cleanup_age(self.table)
            self.table.optimize(cleanup_older_than=age)

        _run_between_writers(work, self.label, self.errors)

    def create_missing_indexes(self) -> None:
        """Create the indexes that the table lacks."""
        self._make_indexes(self._list_missing())

    def find_lost_indexes(self) -> list[str]:
        """Return the columns of a table that is large enough for indexes, and lacks theirs."""
        rows, _ = _read_size(self.table)
        return self._list_missing() if rows >= self.limits.indexed_from else []

    def _list_missing(self) -> list[str]:
        states = read_index_states(self.table)
        return [column for column in self.indexes.columns if column not in states]

    def _index_new(self, new: Sequence[Fragment], columns: Sequence[str]) -> None:
        def work() -> None:
            move_rows(self.table, new)
            self._make_indexes(columns)

        _run_between_writers(work, self.label, self.errors)

    def _is_quickly_merged(self) -> bool:
        rows, _ = _read_size(self.table)
        if rows < self.limits.indexed_from:
            return True
        if self._list_missing():
            return False
        main = read_index_states(self.table)[self.indexes.main]
        segments = main.segments + bool(main.unindexed_rows)
        much = main.lacks(rows, self.limits.share, self.limits.least)
        return segments <= self.indexes.segments and not much and not self._has_other_bits(main)

    def _rewrite(self, erase: bool) -> None:
        fragments = read_fragments(self.table)
        move_rows(self.table, fragments if erase else find_rest(fragments))
        if count_rows(fragments) >= self.limits.indexed_from:
            self._make_indexes(self.indexes.columns if erase else self._find_lacking())

    def _is_outdated(self, states: Mapping[str, IndexState]) -> bool:
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
        """Return the fragments that searches read row by row, None if the others are many."""
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

    def _make_indexes(self, columns: Iterable[str]) -> None:
        for column in columns:
            release_freed_memory()  # otherwise the memory of the last index would stay
            self.create_index(column)


class OldVersions(NamedTuple):
    """Versions that no reader needs, and the bytes freed; None before deletion, and on S3."""

    versions: int
    bytes: int | None


def clean_table(table: Table, label: str, errors: type[MailAssetsError]) -> None:
    """Delete the versions of a table that no reader needs, and compact it.

    Raises:
        MailAssetsError: of the type `errors`, if writers kept interrupting; nothing is lost.
    """

    def clean() -> None:
        table.optimize(cleanup_older_than=_cleanup_age(table))

    _run_between_writers(clean, label, errors)


def prune_versions(
    url: str,
    clean: Callable[[Table, str], None],
    errors: type[MailAssetsError],
    *,
    dry_run: bool = False,
) -> OldVersions:
    """Delete the versions that no reader needs, of every table at a `lance:` URL.

    `clean` does it for one table; its second argument names the table in errors.

    Raises:
        MailAssetsError: of the type `errors`, if the tables cannot be listed; and as `clean` does.
    """
    uri, options = lance_location(url.removeprefix("lance:"), VARIABLES)
    with lance_errors(f"lance:{uri}", errors):
        connection = LanceConnection(uri, options)
        names = connection.list_tables()
    tables = {name: connection.blocking.open_table(name) for name in names}
    old = {name: count for name, table in tables.items() if (count := _count_old_versions(table))}
    if dry_run or not old:
        return OldVersions(sum(old.values()), None if old else 0)
    before = _folder_size(uri)
    for name in old:
        clean(tables[name], f"index {name} in {url}")
    after = _folder_size(uri)
    freed = None if before is None or after is None else max(0, before - after)
    return OldVersions(sum(old.values()), freed)


def _folder_size(uri: str) -> int | None:
    if "://" in uri:  # on S3
        return None
    return sum(path.stat().st_size for path in Path(uri).rglob("*") if path.is_file())


def _run_between_writers(
    work: Callable[[], None], label: str, errors: type[MailAssetsError]
) -> None:
    """Run `work`, and again if a writer was faster; then return freed memory to the system.

    Raises:
        MailAssetsError: of the type `errors`, if LanceDB fails or writers interrupt every attempt.
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


def _cleanup_age(table: Table) -> dt.timedelta:
    """Return the age of versions that no reader needs, which `optimize` may delete."""
    return dt.datetime.now(dt.UTC) - _find_oldest_kept(table)


def _count_old_versions(table: Table) -> int:
    oldest = _find_oldest_kept(table)
    return sum(time < oldest for time in _read_times(table))


def _find_oldest_kept(table: Table) -> dt.datetime:
    """Return the time before which versions may be deleted."""
    began = dt.datetime.now(dt.UTC) - LONGEST_READ
    return oldest_in_use(_read_times(table), began) - COMPACTING


def oldest_in_use(written: Iterable[dt.datetime], began: dt.datetime) -> dt.datetime:
    """Return the time of the oldest version that a reader may use if it `began` then.

    It was the newest version at that time.
    """
    times = sorted(written)
    return max((time for time in times if time <= began), default=times[0])


def _read_times(table: Table) -> list[dt.datetime]:
    # Lance gives local times without a zone.
    return [version["timestamp"].astimezone(dt.UTC) for version in table.list_versions()]


class Fragment(NamedTuple):
    """A fragment: its number, its rows, and its rows with the deleted ones (size)."""

    number: int
    rows: int
    size: int


def read_fragments(table: Table) -> list[Fragment]:
    """Return the fragments in their order."""
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

    Full fragments stay. The first one that is not full stays too, unless those after it have half
    as many rows.
    """
    small = list(dropwhile(lambda fragment: fragment.size >= FULL, fragments))
    rest = small[1:]
    if small and count_rows(rest) > REST_SHARE * small[0].rows:
        return small
    return rest


def find_unindexed(fragments: Sequence[Fragment], unindexed_rows: int) -> Sequence[Fragment]:
    """Return the fragments that an index lacks: the last ones, with so many rows."""
    rows = 0
    for place in range(len(fragments) - 1, -1, -1):
        rows += fragments[place].rows
        if rows > unindexed_rows:
            return fragments[place + 1 :]
    return fragments


def count_rows(fragments: Sequence[Fragment]) -> int:
    """Count the rows of some fragments."""
    return sum(fragment.rows for fragment in fragments)


def move_rows(table: Table, fragments: Sequence[Fragment]) -> None:
    """Write the rows of these last fragments into one; takes 20 us per row."""
    if fragments:
        first_row = fragments[0].number << PLACE_BITS
        table.update(where=f"_rowid >= {first_row}", values_sql={"key": "key"})


class IndexState(NamedTuple):
    """State of an index: kind in lower case, indexed and missing rows, segments, age.

    `bits` is the number of bits that a vector index keeps per number, None if unknown.
    """

    kind: str
    rows: int
    unindexed_rows: int
    segments: int
    made_at: dt.datetime | None = None
    bits: int | None = None

    def lacks(self, rows: int, share: float, least: int) -> bool:
        """Return whether it lacks at least `least` rows and this share of a table's `rows`."""
        return self.unindexed_rows >= max(least, rows * share)

    def is_outdated(self, age: dt.timedelta, least: int) -> bool:
        """Return whether it lacks `least` rows and is older than `age` or of unknown age."""
        if self.unindexed_rows < least:
            return False
        return self.made_at is None or dt.datetime.now(dt.UTC) - self.made_at >= age


class TableSize(NamedTuple):
    """The rows of a table, and its fragments with few rows."""

    rows: int
    small_fragments: int


def _read_size(table: Table) -> TableSize:
    found = cast(dict[str, Any], table.stats())  # LanceDB declares another type
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
