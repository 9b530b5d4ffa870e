"""The indexes of a table of vectors, and how much may wait for them (lance/upkeep.py)."""

from __future__ import annotations

import datetime as dt
from functools import partial

import pyarrow as pa
from lancedb.index import Bitmap, BTree, IvfRq, IvfSq
from lancedb.table import Table

from mail_assets.lance.upkeep import Indexes, Limits, TableUpkeep
from mail_assets.vectors.errors import VectorError
from mail_assets.vectors.lance.rows import filterable_fields, vector_dimension

# 12,000 x 384: an exact query takes 14 ms, an indexed one 5 ms with 0.997 of the true top 20;
# 45,000: 40 ms and 8 ms. The index is built in 0.2 s and 0.8 s. (python -m benchmarks.vectors)
INDEX_ROWS = 10_000
LIMITS = Limits(
    # Rows beside the index are compared one by one: 50,000 x 384 take 40 ms. To take them in makes
    # the index anew, 60 us of the processor a row, so that they may be a third of the table, and no
    # more than INDEX_ROWS for longer than an hour.
    least=INDEX_ROWS,
    share=1 / 3,
    old=dt.timedelta(hours=1),
    # To find months takes 0.1 ms for each fragment that their indexes lack, twice a run. Small ones
    # leave 3 in a second; the indexes of 1.8 million take 3.5 s to make.
    finders_share=0.1,
    finders_old=dt.timedelta(minutes=4),
    # Commits since the last upkeep, each of which leaves a fragment: a month is found in 15 ms with
    # 100 of 250 rows, in 43 with 400.
    fragments=100,
    fragment_rows=500,
    indexed_from=INDEX_ROWS,
)
# LanceDB merges new vectors as a segment, which is searched and refined apart: 60,000 x 384 take
# 7.5 ms with 1 to 4 segments, 14 with 12 and 18 with 21. To merge 10,000 with 1.8 million takes 2
# to 8 s of the processor, 100,000 take 8, and to make the index anew 127. Each time that a third is
# new, merging takes longer: it joins and splits partitions.
MAX_SEGMENTS = 4
# Of each number of a vector. Of the true top 50 of questions among 500,000 chunks, all partitions
# read, 1 bit finds 0.81 and 3 bits 0.98 in the same time; 4 find no more. They take 33 and 84 MB,
# and 8 and 15 s to make.
BITS = 3
# Vectors a partition from which the centers of partitions are trained; LanceDB takes 256. The time
# of it grows with the square of the rows: of 1.6 million the index takes 57 s of the processor in
# place of 67, of 160,000 4.4 in place of 4.7, and finds 0.98 of the true top 50 with either.
TRAINED_ON = 64
# A bitmap holds one entry for each distinct string.
BITMAP_VALUES = 1_000
VECTOR = "vector"


def plan_upkeep(table: Table, label: str) -> TableUpkeep:
    """Return the upkeep of a table; of `key` there is no index, see lance/columns.py.

    By the columns that it has: who erases forgotten mail knows no more of an index than its name.
    """
    fields = filterable_fields(table.schema)
    merged = fields[-1] if fields else None  # of mail `kind`, which has few values
    return TableUpkeep(
        table,
        Indexes([*fields, VECTOR], main=VECTOR, bits=BITS, segments=MAX_SEGMENTS, merged=merged),
        LIMITS,
        partial(_create_index, table),
        label,
        VectorError,
    )


def _create_index(table: Table, column: str) -> None:
    table.create_index(column, config=_choose_index(table, column))


def _choose_index(table: Table, column: str) -> Bitmap | BTree | IvfRq | IvfSq:
    if column != VECTOR:
        return Bitmap() if _has_few_strings(table, column) else BTree()
    if vector_dimension(table.schema) % 8:  # IVF_RQ is the smallest, but wants a multiple of 8
        return IvfSq(distance_type="cosine")
    return IvfRq(distance_type="cosine", num_bits=BITS, sample_rate=TRAINED_ON)


def _has_few_strings(table: Table, name: str) -> bool:
    if table.schema.field(name).type != pa.string():
        return False
    distinct: set[str] = set()
    for batch in table.search().select([name]).limit(None).to_batches():
        distinct.update(batch.column(name).unique().to_pylist())
        if len(distinct) > BITMAP_VALUES:
            return False
    return True
