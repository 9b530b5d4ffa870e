"""Vector buckets as LanceDB tables in a folder or on S3-like storage.

One table per index; a column for each filterable field, so that filters run before the search.
Below `INDEX_ROWS` every query is exact; above, `maintain` builds an IVF_RQ index, whose estimates
are replaced by exact distances (`refine_factor`).

Any number of processes may put, delete and query at once. `maintain` is for one process at a
time: its compaction gives way to every writer. On S3-like storage the commits need conditional
writes (If-None-Match); AWS, MinIO and R2 have them.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import cast

import lancedb
import numpy as np
from lancedb.index import Bitmap, BTree, IvfRq, IvfSq
from lancedb.query import LanceVectorQueryBuilder
from lancedb.table import Table

from mail_assets.vectors.errors import MissingIndexError, VectorError, missing
from mail_assets.vectors.filter_sql import lance_literal, lance_sql
from mail_assets.vectors.filters import Filter
from mail_assets.vectors.index import Caps, Floats, IndexSpec, Match, Vector, VectorIndex
from mail_assets.vectors.lance_rows import metadata_of, schema_of, to_arrow, types_of

# 12,000 x 384: an exact query takes 14 ms, an indexed one 5 ms with 0.997 of the true top 20;
# 45,000: 40 ms and 8 ms. The index is built in 0.2 s and 0.8 s. (python -m benchmarks.vectors)
INDEX_ROWS = 10_000
# 500,000 x 384: 40 probes refined 10 times find 0.996 of the true top 20.
PROBES, REFINE = 40, 10
# Vectors that are read again for one query, which is most of its cost: 50 matches refined 5 times
# take 18 ms of the processor and 10 times 29 (26,000 x 384), and the first 20 are 0.98 and 1.00 of
# the true ones.
REFINED = 250
# With a filter the number of probes must be able to grow, or rare values are not found:
# 1 % of 500,000 rows: 0.83 with a fixed 20, 1.0 so.
FILTERED_PROBES = 20
# A bitmap holds one entry for each distinct string.
BITMAP_VALUES = 1_000
# Readers may be on an old version while it is cleaned up: queries for seconds, keys() for minutes.
KEEP_VERSIONS = dt.timedelta(days=1)
MAINTAIN_ATTEMPTS = 3


class LanceBucket:
    """A folder, or a prefix of an S3-like bucket, with one Lance table for each index."""

    def __init__(self, uri: str, storage_options: Mapping[str, str] | None = None) -> None:
        self.where = f"lance:{uri}"
        with _errors(self.where):
            # Zero: every operation sees what other processes have committed.
            self.connection = lancedb.connect(
                uri,
                read_consistency_interval=dt.timedelta(0),
                storage_options=dict(storage_options or {}),
            )

    def index(self, spec: IndexSpec) -> LanceIndex:
        """Return the index of `spec`; nothing is read yet."""
        return LanceIndex(spec, self)

    def indexes(self) -> list[str]:
        """Return the names of the bucket's indexes."""
        names: list[str] = []
        token = None
        with _errors(self.where):
            while True:
                page = self.connection.list_tables(page_token=token)
                names += page.tables
                token = page.page_token
                if not token:
                    return sorted(names)


class LanceIndex(VectorIndex):
    """One Lance table."""

    caps = Caps(
        max_batch=20_000,  # one commit: a month
        max_bytes=256 << 20,
        max_get=10_000,  # each read scans the whole key column
        max_top_k=10_000,
        max_dimension=4096,
        list_filter=True,
    )

    def __init__(self, spec: IndexSpec, bucket: LanceBucket) -> None:
        super().__init__(spec, bucket.where)
        self._connection = bucket.connection
        self._schema = schema_of(spec)

    def ensure(self) -> None:
        """Create the table, or verify its columns."""
        try:
            table = self._table()
        except MissingIndexError:
            with _errors(self.label):
                table = self._connection.create_table(
                    self.spec.name, schema=self._schema, exist_ok=True
                )
        exists, wanted = types_of(table.schema), types_of(self._schema)
        if exists != wanted:
            raise self.mismatch(exists, wanted)

    def keys(self) -> Iterator[str]:
        """Iterate over all keys, in no order."""
        return self._list_keys(None)

    def count(self) -> int:
        """Return the number of rows."""
        with _errors(self.label):
            return int(self._table().count_rows())

    def describe(self) -> dict[str, str | int]:
        """Return what is searched, how, and the sizes."""
        table = self._table()
        with _errors(self.label):
            vector = [index for index in table.list_indices() if index.columns == ["vector"]]
            facts: dict[str, str | int] = {
                "backend": "lance",
                "index": self.spec.name,
                "dimension": self.spec.dimension,
                "metric": "cosine",
                "search": vector[0].index_type.lower() if vector else "exact",
                "rows": table.count_rows(),
                "version": table.version,
            }
            if vector:
                facts["unindexed_rows"] = vector[0].num_unindexed_rows or 0
        return facts

    def drop(self) -> None:
        """Delete the table; nothing happens where there is none."""
        with suppress(MissingIndexError):
            self._table()
            with _errors(self.label):
                self._connection.drop_table(self.spec.name)

    def maintain(self) -> None:
        """Compact, delete old versions, and from `INDEX_ROWS` rows on index vectors and fields.

        Raises:
            VectorError: where writers kept interrupting; nothing is lost, run it again.
        """
        table = self._table()
        for attempt in range(1, MAINTAIN_ATTEMPTS + 1):
            try:
                with _errors(self.label):
                    if table.count_rows() >= INDEX_ROWS:
                        self._build_indexes(table)
                    table.optimize(cleanup_older_than=KEEP_VERSIONS)
                return
            except VectorError as error:
                if "commit conflict" not in str(error):
                    raise
                if attempt == MAINTAIN_ATTEMPTS:
                    raise self.error(
                        f"writers interrupted {attempt} attempts to maintain it",
                        "nothing is lost; run it again when fewer partitions are being written",
                    ) from error

    def _put(self, batch: Sequence[Vector]) -> None:
        merge = self._table().merge_insert("key")
        with _errors(self.label):
            (
                merge.when_matched_update_all()
                .when_not_matched_insert_all()
                .use_index(False)
                .execute(to_arrow(batch, self.spec))
            )

    def _delete(self, keys: Sequence[str]) -> None:
        with _errors(self.label):
            self._table().delete(_key_in(keys))

    def _get(self, keys: Sequence[str], data: bool) -> Iterator[Vector]:
        columns = [name for name in self._schema.names if data or name != "vector"]
        with _errors(self.label):
            # By default a query without a vector returns 10 rows.
            search = self._table().search().where(_key_in(keys)).limit(None).select(columns)
            for row in search.to_arrow().to_pylist():
                values = np.asarray(row.get("vector", []), dtype=np.float32)
                yield Vector(row["key"], values, metadata_of(row, self.spec))

    def _query(
        self, vector: Floats, top_k: int, filter: Filter | None, metadata: bool
    ) -> Iterable[Match]:
        columns = [name for name in self._schema.names if name != "vector"] if metadata else ["key"]
        with _errors(self.label):
            search = cast(LanceVectorQueryBuilder, self._table().search(vector))
            search = search.distance_type("cosine").refine_factor(refine(top_k))
            if filter is None:
                search = search.nprobes(PROBES)
            else:
                search = search.where(lance_sql(filter))
                search = search.minimum_nprobes(FILTERED_PROBES).maximum_nprobes(0)
            # Lance warns on stderr at each query whose columns leave out _distance.
            rows = search.limit(top_k).select([*columns, "_distance"]).to_arrow().to_pylist()
        return [
            Match(row["key"], row["_distance"], metadata_of(row, self.spec) if metadata else {})
            for row in rows
        ]

    def _find(self, filter: Filter) -> Iterator[str]:
        return self._list_keys(lance_sql(filter))

    def _list_keys(self, where: str | None) -> Iterator[str]:
        with _errors(self.label):
            search = self._table().search().select(["key"]).limit(None)
            for batch in (search if where is None else search.where(where)).to_batches():
                yield from batch.column("key").to_pylist()

    def _table(self) -> Table:
        try:
            with _errors(self.label):
                return self._connection.open_table(self.spec.name)
        except VectorError as error:
            if "was not found" in str(error):
                raise missing(self.label) from error
            raise

    def _build_indexes(self, table: Table) -> None:
        """Index the columns that have no index yet; never `key`, see `lance_rows`."""
        indexed = {column for index in table.list_indices() for column in index.columns}
        for name in self.spec.fields.keys() - indexed:
            table.create_index(name, config=Bitmap() if self._few_strings(table, name) else BTree())
        if "vector" not in indexed:
            # IVF_RQ builds fastest and is the smallest, but wants a multiple of 8.
            kind = IvfSq if self.spec.dimension % 8 else IvfRq
            table.create_index("vector", config=kind(distance_type="cosine"))

    def _few_strings(self, table: Table, name: str) -> bool:
        if self.spec.fields[name] != "string":
            return False
        distinct: set[str] = set()
        for batch in table.search().select([name]).limit(None).to_batches():
            distinct.update(batch.column(name).unique().to_pylist())
            if len(distinct) > BITMAP_VALUES:
                return False
        return True


@contextmanager
def _errors(label: str) -> Iterator[None]:
    """Turn Lance's errors, which are of the built-in kinds, into ours, about `label`."""
    try:
        yield
    except VectorError:
        raise
    except (RuntimeError, OSError, ValueError) as error:
        raise VectorError(
            f"{label}: {error}; check the path, its disk space and, on S3, the AWS_ variables"
        ) from error


def refine(top_k: int) -> int:
    """Return how many vectors are read again for each match."""
    return max(2, min(REFINE, REFINED // top_k))


def _key_in(keys: Sequence[str]) -> str:
    return f"key IN ({', '.join(map(lance_literal, keys))})"
