"""Vector indexes as LanceDB tables: a column for each filterable field, filtered before search.

Below `INDEX_ROWS` every query is exact. Above, IVF_RQ divides the vectors into partitions, and a
search reads the partitions nearest to the query (probes). It estimates distances from a few bits
per number, then reads the best rows again and ranks them by exact distances (refine).
"""

from __future__ import annotations

import datetime as dt
import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from heapq import nsmallest
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from lancedb.index import Bitmap, BTree, IvfRq, IvfSq
from lancedb.query import AsyncVectorQuery
from lancedb.table import AsyncTable, Table

from mail_assets.lance.connection import LanceConnection, lance_errors
from mail_assets.lance.table import (
    PRIMARY_KEY,
    READ_SINGLY,
    LanceTable,
    OpenTable,
    TableHandle,
    TableIndex,
    count_groups,
)
from mail_assets.lance.upkeep import Indexes, Limits, TableUpkeep, read_index_states
from mail_assets.vectors.filters import Filter, matches_filter
from mail_assets.vectors.index import (
    Capabilities,
    Floats,
    IndexSpec,
    Match,
    Metadata,
    MetadataValue,
    MissingIndexError,
    Vector,
    VectorError,
    VectorIndex,
    restore_int,
)
from mail_assets.vectors.lance_filters import lance_keys_sql, lance_sql, split_filter

# Rows from which a table has an index of vectors; below, every query is exact. For 12,000 x 384 an
# exact query takes 14 ms, an indexed one 5 ms with 0.997 of the true top 20.
INDEX_ROWS = 10_000
LIMITS = Limits(
    # Unindexed rows are compared one by one: 50,000 x 384 take 40 ms. Indexing them rebuilds the
    # index: 60 us of processor time for each row of the table. So a third of the table may wait,
    # and more than INDEX_ROWS rows for at most an hour.
    least=INDEX_ROWS,
    share=1 / 3,
    old=dt.timedelta(hours=1),
    # Finding months takes 0.1 ms for each fragment that their indexes lack, twice a run. Small runs
    # leave 3 fragments a second; building the indexes of 1.8 million rows takes 3.5 s.
    finders_share=0.1,
    finders_old=dt.timedelta(minutes=4),
    # Each commit leaves a fragment. Finding a month takes 15 ms with 100 fragments of 250 rows, 43
    # ms with 400.
    fragments=100,
    fragment_rows=500,
    indexed_from=INDEX_ROWS,
)
# LanceDB merges new vectors as a segment, which is searched separately: 60,000 x 384 take 7.5 ms
# with 1 to 4 segments, 14 with 12. Merging 10,000 rows with 1.8 million takes 2 to 8 s of processor
# time, rebuilding the index 127 s.
MAX_SEGMENTS = 4
# Bits per number of a vector. Of the true top 50 among 500,000 chunks, 1 bit finds 0.81, and 3 bits
# find 0.98 in the same time; 4 find no more.
BITS = 3
# Vectors per partition for training its center. LanceDB's default of 256 takes longer and finds no
# more.
TRAINED_ON = 64
# A column with up to so many distinct strings gets a bitmap index, which has one entry for each.
BITMAP_VALUES = 1_000
VECTOR = "vector"

PARTITION_ROWS = 8_192  # LanceDB's own target
# Share of the partitions that a search reads, and the least number. A question is not near its
# answers (0.5; neighbouring chunks have 0.9), so these are spread over many partitions. Of the true
# top 50 of 1.8 million chunks, half of the partitions find 0.95, all find 0.98.
PROBES, MIN_PROBES = 0.5, 16
# Vectors that are read again per query, without and with a filter, and at most per match. Reading
# them is most of the cost of a query.
REFINED, FILTERED_REFINED, REFINE = 100, 150, 10
# Matching vectors up to which a search compares each, without the index: exact, and faster.
FEW = 1_000


class LanceIndex(TableIndex, VectorIndex):
    """One Lance table."""

    capabilities = Capabilities(
        max_batch=20_000,  # one commit: a month
        max_bytes=256 << 20,
        max_get=10_000,  # each read scans the whole key column
        max_top_k=10_000,
        max_dimension=4096,
        list_filter=True,
        max_constraints=10_000,
    )

    def __init__(self, spec: IndexSpec, connection: LanceConnection, where: str) -> None:
        super().__init__(spec, where)
        self._schema = _arrow_schema(spec)
        self._table = LanceTable(
            connection, spec.name, self.label, VectorError, MissingIndexError, plan_upkeep
        )
        self._handle = TableHandle(self._table, self._check_dimension)

    def ensure(self, before: Callable[[], object] = lambda: None) -> None:
        """Create the table, or verify its columns."""
        table = self._table.open_or_create(self._schema, before)
        exists, wanted = _column_types(table.schema), _column_types(self._schema)
        if exists != wanted:
            raise self.mismatch(exists, wanted)

    def count(self) -> int:
        """Return the number of rows."""
        return self._handle.read(lambda kept: kept.table.count_rows())

    def describe(self) -> dict[str, str | int]:
        """Return backend, index, dimension, kind of search, rows, version and unindexed rows."""
        table = self._table.open()
        with self._table.errors():
            state, rows = read_index_states(table).get("vector"), table.count_rows()
            return {
                "backend": "lance",
                "index": self.spec.name,
                "dimension": vector_dimension(table.schema),
                "metric": "cosine",
                "search": state.kind if state else "exact",
                "rows": rows,
                "version": table.version,
                "segments": state.segments if state else 0,
                "unindexed_rows": state.unindexed_rows if state else rows,
            }

    def probe(self) -> None:
        """Check the files, and query each index of the table."""
        self._table.check_files(digests=True)
        self._table.check_indexes()
        super().probe()

    def _put(self, batch: Sequence[Vector]) -> None:
        self._table.merge(to_arrow(batch, self.spec))

    def _insert(self, batch: Sequence[Vector]) -> None:
        # A merge reads the whole key column: 0.9 s at 3 million rows. This takes 0.03.
        with self._table.errors():
            self._table.open_snapshot().add(to_arrow(batch, self.spec))

    def _delete(self, keys: Sequence[str], among: Filter | None) -> None:
        self._table.delete(lance_keys_sql(keys, among))

    def _get(self, keys: Sequence[str], data: bool, among: Filter | None) -> Iterator[Vector]:
        columns = [name for name in self._schema.names if data or name != "vector"]
        where = lance_keys_sql(keys, among)

        async def read(kept: OpenTable) -> pa.Table:
            return await kept.table.query().where(where).select(columns).to_arrow()

        for row in self._handle.read(read).to_pylist():
            values = np.asarray(row.get("vector", []), dtype=np.float32)
            yield Vector(row["key"], values, _row_metadata(row, self.spec))

    def _query(
        self, vector: Floats, top_k: int, filter: Filter | None, metadata: bool
    ) -> Iterable[Match]:
        columns = [name for name in self._schema.names if name != "vector"] if metadata else ["key"]
        wanted = Search(vector, top_k, filter, columns)
        rows = self._handle.read(lambda kept: search_table(kept, wanted))
        return [
            Match(row["key"], row["_distance"], _row_metadata(row, self.spec) if metadata else {})
            for row in rows
        ]

    def _estimate(
        self, vector: Floats, top_k: int, filter: Filter | None, metadata: bool
    ) -> Iterable[Match]:
        """Return matches without reading their vectors again, which is most of the cost.

        The matches are those of `_query`, because it would read no more vectors than it returns.
        """
        if metadata or filter is not None or refine_factor(top_k, REFINED) > 1:
            return self._query(vector, top_k, filter, metadata)
        found = self._handle.read(lambda kept: estimate_table(kept, vector, top_k))
        columns = (found.column(name).to_pylist() for name in ("key", "_distance", "_rowid"))
        return [Match(key, distance, {}, row) for key, distance, row in zip(*columns, strict=True)]

    def measure(self, vector: Floats, matches: Sequence[Match]) -> Mapping[str, float]:
        """Return the exact distances of matches; rows that upkeep moved are found by their keys."""
        exact = {one.key: one.distance for one in matches if one.row is None}
        rows = [one.row for one in matches if one.row is not None]
        if not rows:
            return exact
        unit = vector / np.linalg.norm(vector)
        found = self._handle.read(lambda kept: take_vectors(kept, rows))
        estimated = {one.key for one in matches if one.row is not None}
        moved = estimated.difference(found)
        found |= (
            {one.key: one.values for one in self._get(sorted(moved), True, None)} if moved else {}
        )
        return exact | {
            key: 1.0 - float(values @ unit / np.linalg.norm(values))
            for key, values in found.items()
            if key in estimated
        }

    def _find_values(self, field: str, filter: Filter) -> Iterator[tuple[str, MetadataValue]]:
        return self._table.list_values(field, lance_sql(filter))

    def count_groups(self, fields: Sequence[str]) -> Counter[tuple[object, ...]]:
        """Count the rows by the values of some columns."""
        return self._handle.read(lambda kept: count_groups(kept.table, fields))

    async def _check_dimension(self, table: AsyncTable) -> None:
        dimension = vector_dimension(await table.schema())
        if dimension != self.spec.dimension:
            raise self.error(
                f"has vectors of {dimension} numbers, wanted {self.spec.dimension}",
                "encode with the model that the index was made for, or make a new index",
            )


class LanceBucket:
    """A folder, or a prefix of an S3-like bucket, with one Lance table for each index."""

    def __init__(self, uri: str, storage_options: Mapping[str, str] | None = None) -> None:
        self.where = f"lance:{uri}"
        with lance_errors(self.where, VectorError):
            self._connection = LanceConnection(uri, storage_options)

    def index(self, spec: IndexSpec) -> LanceIndex:
        """Return the index of `spec`; nothing is read yet."""
        return LanceIndex(spec, self._connection, self.where)

    def indexes(self) -> list[str]:
        """Return the names of the bucket's indexes."""
        with lance_errors(self.where, VectorError):
            return self._connection.list_tables()


class Search(NamedTuple):
    """A search: a vector, the number of matches, a filter, and the columns to return."""

    vector: Floats
    top_k: int
    filter: Filter | None
    columns: list[str]


async def search_table(kept: OpenTable, wanted: Search) -> list[Mapping[str, Any]]:
    """Return the nearest rows of a table with their `_distance`, in no order."""
    split = await split_filter(wanted.filter, wanted.top_k, kept.estimates)
    if split.after is None:
        return await _search_filtered(kept, wanted)
    columns = list(dict.fromkeys([*wanted.columns, *split.fields]))
    found = await _search_filtered(kept, Search(wanted.vector, split.asked, split.before, columns))
    passing = [row for row in found if matches_filter(split.after, row)]
    if len(passing) < wanted.top_k:
        return await _search_filtered(kept, wanted)
    return nsmallest(wanted.top_k, passing, key=itemgetter("_distance"))


async def estimate_table(kept: OpenTable, vector: Floats, top_k: int) -> pa.Table:
    """Return key, estimated distance and number of the nearest rows, in no order."""
    search = kept.table.query().nearest_to(vector).distance_type("cosine").limit(top_k)
    search = search.nprobes(choose_probes(kept.rows)).select(["key", "_distance"])
    return await search.with_row_id().to_arrow()


async def take_vectors(kept: OpenTable, rows: Sequence[int]) -> dict[str, Floats]:
    """Return the vectors of rows by key; wrong or missing ones if upkeep has moved rows."""
    try:
        found = await kept.table.take_row_ids([*rows]).select(["key", VECTOR]).to_arrow()
    except (RuntimeError, OSError, ValueError):
        # a row was compacted away; the caller reads it by key, which reports damage or a lost table
        return {}
    numbers = found.column(VECTOR).combine_chunks().flatten().to_numpy()
    vectors = numbers.reshape(-1, vector_dimension(found.schema))
    return dict(zip(found.column("key").to_pylist(), vectors, strict=True))


async def _search_filtered(kept: OpenTable, wanted: Search) -> list[Mapping[str, Any]]:
    if wanted.filter is None:
        refine = refine_factor(wanted.top_k, REFINED)
        return await _collect(_build(kept, wanted, refine).nprobes(choose_probes(kept.rows)))
    where = lance_sql(wanted.filter)
    search = _build(kept, wanted, refine_factor(wanted.top_k, FILTERED_REFINED)).where(where)
    if kept.rows > PARTITION_ROWS:
        matching = _count_named(wanted.filter) or await kept.estimates.count(where)
        if matching <= FEW:
            return await _collect(search.bypass_vector_index())
        found = await _collect(search.nprobes(choose_probes(kept.rows, matching)))
        if len(found) >= min(wanted.top_k, matching):
            return found
    # All matches may be far from the query: read as many partitions as necessary. Allowing that in
    # the first search would make it half as long again.
    return await _collect(search.maximum_nprobes(0).minimum_nprobes(1))


def _count_named(filter: Filter) -> int:
    # Counting the vectors of many named messages takes as long as searching among them. Most
    # messages have one or two.
    named = filter.get("message_id") if len(filter) == 1 else None
    return 2 * len(named.get("$in", ())) if isinstance(named, dict) else 0


def choose_probes(rows: int, matching: int | None = None) -> int:
    """Return how many partitions to read of an index of `rows`, if `matching` of them match.

    The fewer rows match, the more partitions have the nearest ones. `rows` may be a minute old,
    from before an index was filled; asking for too many partitions costs nothing.
    """
    partitions = max(MIN_PROBES, math.ceil(rows / PARTITION_ROWS))
    spread = 1.0 if matching is None else (rows / max(1, min(matching, rows))) ** 0.25
    return min(partitions, max(MIN_PROBES, math.ceil(PROBES * spread * partitions)))


def refine_factor(top_k: int, refined: int) -> int:
    """Return how many vectors to read again per match, if `refined` may be read in total."""
    return max(1, min(REFINE, refined // top_k))


def _build(kept: OpenTable, wanted: Search, refine: int) -> AsyncVectorQuery:
    search = kept.table.query().nearest_to(wanted.vector)
    # Lance prints a warning for each query without the column _distance.
    columns = [*wanted.columns, "_distance"]
    search = search.distance_type("cosine").refine_factor(refine)
    return search.limit(wanted.top_k).select(columns)


async def _collect(search: AsyncVectorQuery) -> list[Mapping[str, Any]]:
    rows: list[Mapping[str, Any]] = (await search.to_arrow()).to_pylist()
    return rows


def plan_upkeep(table: Table, label: str) -> TableUpkeep:
    """Return the upkeep of a table, from its columns alone; `key` has no index (PRIMARY_KEY).

    When mail is forgotten, only the names of some indexes are known.
    """
    fields = _filterable_fields(table.schema)
    merged = fields[-1] if fields else None  # `kind` of mail, which has few values
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
    if vector_dimension(table.schema) % 8:  # IVF_RQ is the smallest, but needs a multiple of 8
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


def _arrow_schema(spec: IndexSpec) -> pa.Schema:
    """Return the columns: key, vector, fields, and other metadata as JSON (large_string)."""
    kinds = {"string": pa.string(), "number": pa.float64()}
    return pa.schema(
        [
            pa.field("key", pa.string(), nullable=False, metadata={**PRIMARY_KEY, **READ_SINGLY}),
            pa.field("vector", pa.list_(pa.float32(), spec.dimension)),
            *(pa.field(name, kinds[kind]) for name, kind in spec.fields.items()),
            *(pa.field(name, pa.large_string()) for name in spec.non_filterable),
        ]
    )


def _column_types(schema: pa.Schema) -> dict[str, str]:
    return {field.name: str(field.type) for field in schema}


def vector_dimension(schema: pa.Schema) -> int:
    """Return the dimension of a table's vectors."""
    return int(schema.field("vector").type.list_size)


def _filterable_fields(schema: pa.Schema) -> list[str]:
    others = ("key", "vector")
    return [f.name for f in schema if f.name not in others and f.type != pa.large_string()]


def to_arrow(batch: Sequence[Vector], spec: IndexSpec) -> pa.Table:
    """Return vectors as rows."""
    schema = _arrow_schema(spec)
    values = np.concatenate([vector.values for vector in batch])
    columns = [
        pa.array([vector.key for vector in batch], pa.string()),
        pa.FixedSizeListArray.from_arrays(pa.array(values), spec.dimension),
    ]
    for name in [*spec.fields, *spec.non_filterable]:
        given = (vector.metadata.get(name) for vector in batch)
        if name in spec.non_filterable:
            given = (None if value is None else json.dumps(value) for value in given)
        columns.append(pa.array(list(given), schema.field(name).type))
    return pa.Table.from_arrays(columns, schema=schema)


def _row_metadata(row: Mapping[str, Any], spec: IndexSpec) -> Metadata:
    given = {name: restore_int(row[name]) for name in spec.fields if row[name] is not None}
    hidden = (name for name in spec.non_filterable if row[name] is not None)
    return given | {name: restore_int(json.loads(row[name])) for name in hidden}
