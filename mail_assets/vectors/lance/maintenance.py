"""Maintenance of a LanceDB table: fragments, old versions, indexes of vectors and fields.

For one process at a time: compaction gives way to every writer.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from enum import Enum, auto

from lancedb.index import Bitmap, BTree, IvfRq, IvfSq
from lancedb.table import Table

from mail_assets.vectors.index import VectorIndex
from mail_assets.vectors.lance.conflicts import run_between_writers
from mail_assets.vectors.lance.fragments import (
    Fragment,
    count_rows,
    find_unindexed,
    move_rows,
    read_fragments,
)
from mail_assets.vectors.lance.index_state import IndexState, read_index_states, read_size
from mail_assets.vectors.lance.versions import compact_table
from mail_assets.vectors.spec import IndexSpec

# 12,000 x 384: an exact query takes 14 ms, an indexed one 5 ms with 0.997 of the true top 20;
# 45,000: 40 ms and 8 ms. The index is built in 0.2 s and 0.8 s. (python -m benchmarks.vectors)
INDEX_ROWS = 10_000
# Each upkeep after new mail adds a segment, which is searched and refined apart: 60,000 x 384 take
# 7.5 ms with 1 to 4 segments, 14 with 12 and 18 with 21. To build it anew takes 12 s at 500,000.
MAX_SEGMENTS = 4
# Commits since the last upkeep, each of which leaves a fragment: a month is found in 15 ms with
# 100 of 250 rows, in 43 with 400. More of a large table, so that the work stays proportional to the
# rows that were added.
MAX_FRAGMENTS, FRAGMENT_ROWS = 100, 500
# Rows beside the index are compared one by one: 50,000 x 384 take 40 ms. To take them in makes the
# index anew, 60 us of the processor a row, so that they may be a third of the table, and no more
# than INDEX_ROWS for longer than an hour.
UNINDEXED_SHARE, OLD = 1 / 3, dt.timedelta(hours=1)
# What a month is found by: made anew in 1 us a row, and so more often. To find one takes 0.1 ms
# for each fragment that these lack, and small months leave 3 in a second.
FINDERS, FINDERS_SHARE, FINDERS_OLD = ("list", "month"), 0.1, dt.timedelta(minutes=2)
# Of each number of a vector. Of the true top 50 of questions among 500,000 chunks, all partitions
# read, 1 bit finds 0.81 and 3 bits 0.98 in the same time; 4 find no more. They take 33 and 84 MB,
# and 8 and 15 s to make.
BITS = 3
# A bitmap holds one entry for each distinct string.
BITMAP_VALUES = 1_000


class Upkeep(Enum):
    """What upkeep is due: each is more work, and includes the one before."""

    FINDERS = auto()  # the indexes that a month is found by are made anew
    FRAGMENTS = auto()  # rows that are not indexed are moved into one fragment
    INDEXES = auto()  # all indexes are made anew
    WHOLE = auto()  # the table is maintained


def find_due(table: Table) -> Upkeep | None:
    """Return the upkeep that is due, None where little was written since the last one."""
    rows, fragments = read_size(table)
    many = has_many_fragments(fragments, rows)
    if rows < INDEX_ROWS:
        return Upkeep.WHOLE if many else None
    states = read_index_states(table)
    vector = states.get("vector")
    if vector is None or _is_old(vector, OLD):
        return Upkeep.WHOLE
    if _lacks_share(vector, rows, UNINDEXED_SHARE):
        return Upkeep.INDEXES
    if many:
        return Upkeep.FRAGMENTS
    finders = [states[name] for name in FINDERS if name in states]
    if any(_is_old(one, FINDERS_OLD) or _lacks_share(one, rows, FINDERS_SHARE) for one in finders):
        return Upkeep.FINDERS
    return None


def has_many_fragments(fragments: int, rows: int) -> bool:
    """Tell whether a table of so many rows is to have fewer fragments."""
    return fragments > max(MAX_FRAGMENTS, rows // FRAGMENT_ROWS)


def _lacks_share(state: IndexState, rows: int, share: float) -> bool:
    """Tell whether an index lacks a share of a table of so many rows."""
    return state.unindexed_rows >= max(INDEX_ROWS, rows * share)


def _is_old(state: IndexState, age: dt.timedelta) -> bool:
    """Tell whether an index is so old and lacks many rows."""
    now = dt.datetime.now(dt.UTC)
    return state.unindexed_rows >= INDEX_ROWS and state.is_older_than(age, now)


def catch_up(table: Table, index: VectorIndex) -> None:
    """Do the upkeep that is due while the table is being filled.

    Indexes are made anew. To merge new vectors of mail into theirs, LanceDB's `optimize` joins and
    splits partitions, which writes all of it, and compacts all rows that are indexed. The files of
    replaced indexes stay until the table is maintained.

    Raises:
        VectorError: where writers kept interrupting; nothing is lost, run it again.
    """
    due = find_due(table)
    if due is None or due is Upkeep.WHOLE:
        maintain_table(table, index)
        return
    new: Sequence[Fragment] = ()
    if due is not Upkeep.FINDERS:
        fragments = read_fragments(table)
        new = find_unindexed(fragments, read_index_states(table)["vector"].unindexed_rows)
        if has_many_fragments(len(fragments) - len(new), count_rows(fragments)):
            maintain_table(table, index)
            return
    spec, is_everything = index.spec, due is Upkeep.INDEXES
    finders = [name for name in FINDERS if name in spec.fields]

    def index_new() -> None:
        move_rows(table, new)
        _index_fields(table, spec, spec.fields if is_everything else finders)
        if is_everything:
            _index_vectors(table, spec)

    run_between_writers(index_new, index.label)


def maintain_table(table: Table, index: VectorIndex, erase: bool = False) -> None:
    """Compact, delete old versions, and from `INDEX_ROWS` rows on index vectors and fields.

    `table` is the one of `index`. `erase` leaves nothing of deleted vectors in any file: every row
    is written anew, because compaction leaves a file with few deleted rows as it is, and an index
    keeps what it has of a fragment that is gone.

    Raises:
        VectorError: where writers kept interrupting; nothing is lost, run it again.
    """

    def maintain() -> None:
        if erase:
            table.update(values_sql={"key": "key"})
        if table.count_rows() >= INDEX_ROWS:
            _build_indexes(table, index.spec)
        compact_table(table, erase=erase)

    run_between_writers(maintain, index.label)


def _build_indexes(table: Table, spec: IndexSpec) -> None:
    """Index the columns that need it; never `key`, see `rows`."""
    states = read_index_states(table)
    lacking = [name for name in spec.fields if _needs_building(states.get(name))]
    _index_fields(table, spec, lacking)
    vector = states.get("vector")
    if _needs_building(vector) or (vector and vector.bits not in (None, BITS)):
        _index_vectors(table, spec)


def _index_vectors(table: Table, spec: IndexSpec) -> None:
    """Index the vectors: IVF_RQ is the smallest, but wants a multiple of 8."""
    smallest = IvfRq(distance_type="cosine", num_bits=BITS)
    config = IvfSq(distance_type="cosine") if spec.dimension % 8 else smallest
    table.create_index("vector", config=config)


def _index_fields(table: Table, spec: IndexSpec, names: Iterable[str]) -> None:
    for name in names:
        kind = Bitmap() if _few_strings(table, spec, name) else BTree()
        table.create_index(name, config=kind)


def _needs_building(state: IndexState | None) -> bool:
    """Tell whether an index is missing, of a minority of the rows, or in too many segments."""
    if state is None or state.unindexed_rows > state.rows:
        return True
    return state.segments + bool(state.unindexed_rows) > MAX_SEGMENTS


def _few_strings(table: Table, spec: IndexSpec, name: str) -> bool:
    if spec.fields[name] != "string":
        return False
    distinct: set[str] = set()
    for batch in table.search().select([name]).limit(None).to_batches():
        distinct.update(batch.column(name).unique().to_pylist())
        if len(distinct) > BITMAP_VALUES:
            return False
    return True
