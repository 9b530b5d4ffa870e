"""Maintenance of a LanceDB table: compaction, old versions, indexes of vectors and fields.

For one process at a time: compaction gives way to every writer.
"""

from __future__ import annotations

import datetime as dt

from lancedb.index import Bitmap, BTree, IvfRq, IvfSq
from lancedb.table import Table

from mail_assets.vectors.errors import VectorError
from mail_assets.vectors.index import VectorIndex
from mail_assets.vectors.lance.errors import lance_errors
from mail_assets.vectors.spec import IndexSpec

# 12,000 x 384: an exact query takes 14 ms, an indexed one 5 ms with 0.997 of the true top 20;
# 45,000: 40 ms and 8 ms. The index is built in 0.2 s and 0.8 s. (python -m benchmarks.vectors)
INDEX_ROWS = 10_000
# A bitmap holds one entry for each distinct string.
BITMAP_VALUES = 1_000
# Readers may be on an old version while it is cleaned up: queries for seconds, keys() for minutes.
KEEP_VERSIONS = dt.timedelta(days=1)
MAINTAIN_ATTEMPTS = 3


def maintain_table(table: Table, index: VectorIndex) -> None:
    """Compact, delete old versions, and from `INDEX_ROWS` rows on index vectors and fields.

    `table` is the one of `index`.

    Raises:
        VectorError: where writers kept interrupting; nothing is lost, run it again.
    """
    for attempt in range(1, MAINTAIN_ATTEMPTS + 1):
        try:
            with lance_errors(index.label):
                if table.count_rows() >= INDEX_ROWS:
                    _build_indexes(table, index.spec)
                table.optimize(cleanup_older_than=KEEP_VERSIONS)
            return
        except VectorError as error:
            if "commit conflict" not in str(error):
                raise
            if attempt == MAINTAIN_ATTEMPTS:
                raise index.error(
                    f"writers interrupted {attempt} attempts to maintain it",
                    "nothing is lost; run it again when fewer partitions are being written",
                ) from error


def _build_indexes(table: Table, spec: IndexSpec) -> None:
    """Index the columns that have no index yet; never `key`, see `rows`."""
    indexed = {column for index in table.list_indices() for column in index.columns}
    for name in spec.fields.keys() - indexed:
        table.create_index(name, config=Bitmap() if _few_strings(table, spec, name) else BTree())
    if "vector" not in indexed:
        # IVF_RQ builds fastest and is the smallest, but wants a multiple of 8.
        kind = IvfSq if spec.dimension % 8 else IvfRq
        table.create_index("vector", config=kind(distance_type="cosine"))


def _few_strings(table: Table, spec: IndexSpec, name: str) -> bool:
    if spec.fields[name] != "string":
        return False
    distinct: set[str] = set()
    for batch in table.search().select([name]).limit(None).to_batches():
        distinct.update(batch.column(name).unique().to_pylist())
        if len(distinct) > BITMAP_VALUES:
            return False
    return True
