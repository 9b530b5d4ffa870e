"""Maintenance of a LanceDB table: compaction, old versions, indexes of vectors and fields.

For one process at a time: compaction gives way to every writer.
"""

from __future__ import annotations

from lancedb.index import Bitmap, BTree, IvfRq, IvfSq
from lancedb.table import Table

from mail_assets.vectors.index import VectorIndex
from mail_assets.vectors.lance.conflicts import run_between_writers
from mail_assets.vectors.lance.index_state import IndexState, read_index_states, read_size
from mail_assets.vectors.lance.versions import compact_table, has_deleted_rows
from mail_assets.vectors.spec import IndexSpec

# 12,000 x 384: an exact query takes 14 ms, an indexed one 5 ms with 0.997 of the true top 20;
# 45,000: 40 ms and 8 ms. The index is built in 0.2 s and 0.8 s. (python -m benchmarks.vectors)
INDEX_ROWS = 10_000
# Each upkeep after new mail adds a segment, which is searched and refined apart: 60,000 x 384 take
# 7.5 ms with 1 to 4 segments, 14 with 12 and 18 with 21. To build it anew takes 12 s at 500,000.
MAX_SEGMENTS = 4
# Commits since the last upkeep, each of which leaves a fragment: a month is found in 15 ms with
# 100 of 250 rows, in 43 with 400.
MAX_FRAGMENTS = 100
# Rows beside the index are compared one by one: 50,000 x 384 take 40 ms. Until there are so many,
# a quarter of the table, so that the work is proportional to the rows that were added.
MAX_UNINDEXED, UNINDEXED_SHARE = 50_000, 0.25
# A bitmap holds one entry for each distinct string.
BITMAP_VALUES = 1_000


def maintain_table(table: Table, index: VectorIndex, erase: bool = False) -> None:
    """Compact, delete old versions, and from `INDEX_ROWS` rows on index vectors and fields.

    `table` is the one of `index`. `erase` leaves nothing of deleted vectors in any file: every row
    is written anew, because compaction leaves a file with few deleted rows as it is.

    Raises:
        VectorError: where writers kept interrupting; nothing is lost, run it again.
    """

    def maintain() -> None:
        if erase and has_deleted_rows(table):
            table.update(values_sql={"key": "key"})
        if table.count_rows() >= INDEX_ROWS:
            _build_indexes(table, index.spec)
        compact_table(table, erase=erase)

    run_between_writers(maintain, index.label)


def _build_indexes(table: Table, spec: IndexSpec) -> None:
    """Index the columns that need it; never `key`, see `rows`."""
    states = read_index_states(table)
    for name in spec.fields:
        if _needs_building(states.get(name)):
            kind = Bitmap() if _few_strings(table, spec, name) else BTree()
            table.create_index(name, config=kind)
    if _needs_building(states.get("vector")):
        # IVF_RQ builds fastest and is the smallest, but wants a multiple of 8.
        vector_kind = IvfSq if spec.dimension % 8 else IvfRq
        table.create_index("vector", config=vector_kind(distance_type="cosine"))


def has_much_unindexed(table: Table, column: str) -> bool:
    """Tell whether upkeep is due: many fragments, or many rows that an index does not have."""
    rows, fragments = read_size(table)
    if fragments > MAX_FRAGMENTS or rows < INDEX_ROWS:
        return fragments > MAX_FRAGMENTS
    state = read_index_states(table).get(column)
    unindexed = state.unindexed_rows if state else rows
    return unindexed >= max(INDEX_ROWS, min(MAX_UNINDEXED, rows * UNINDEXED_SHARE))


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
