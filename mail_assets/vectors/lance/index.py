"""One vector index as a LanceDB table: a column for each filterable field, filtered before search.

Below `maintenance.INDEX_ROWS` every query is exact; above, an IVF_RQ index is searched, whose
estimates are replaced by exact distances (`refine_factor`).

Any number of processes may put, delete and query at once. On S3-like storage the commits need
conditional writes (If-None-Match); AWS, MinIO and R2 have them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import cast

import numpy as np
from lancedb import DBConnection
from lancedb.query import LanceVectorQueryBuilder
from lancedb.table import Table

from mail_assets.vectors.capabilities import Capabilities
from mail_assets.vectors.errors import MissingIndexError, VectorError, missing_index
from mail_assets.vectors.filter_sql import lance_literal, lance_sql
from mail_assets.vectors.filters import Filter
from mail_assets.vectors.index import VectorIndex
from mail_assets.vectors.lance.errors import lance_errors
from mail_assets.vectors.lance.maintenance import maintain_table
from mail_assets.vectors.lance.rows import arrow_schema, column_types, row_metadata, to_arrow
from mail_assets.vectors.spec import IndexSpec
from mail_assets.vectors.vector import Floats, Match, Vector

# 500,000 x 384: 40 probes refined 10 times find 0.996 of the true top 20.
PROBES, REFINE = 40, 10
# Vectors that are read again for one query, which is most of its cost: 50 matches refined 5 times
# take 18 ms of the processor and 10 times 29 (26,000 x 384), and the first 20 are 0.98 and 1.00 of
# the true ones.
REFINED = 250
# With a filter the number of probes must be able to grow, or rare values are not found:
# 1 % of 500,000 rows: 0.83 with a fixed 20, 1.0 so.
FILTERED_PROBES = 20


class LanceIndex(VectorIndex):
    """One Lance table."""

    capabilities = Capabilities(
        max_batch=20_000,  # one commit: a month
        max_bytes=256 << 20,
        max_get=10_000,  # each read scans the whole key column
        max_top_k=10_000,
        max_dimension=4096,
        list_filter=True,
    )

    def __init__(self, spec: IndexSpec, connection: DBConnection, where: str) -> None:
        super().__init__(spec, where)
        self._connection = connection
        self._schema = arrow_schema(spec)

    def ensure(self) -> None:
        """Create the table, or verify its columns."""
        try:
            table = self._table()
        except MissingIndexError:
            with lance_errors(self.label):
                table = self._connection.create_table(
                    self.spec.name, schema=self._schema, exist_ok=True
                )
        exists, wanted = column_types(table.schema), column_types(self._schema)
        if exists != wanted:
            raise self.mismatch(exists, wanted)

    def keys(self) -> Iterator[str]:
        """Iterate over all keys, in no order."""
        return self._list_keys(None)

    def count(self) -> int:
        """Return the number of rows."""
        with lance_errors(self.label):
            return int(self._table().count_rows())

    def describe(self) -> dict[str, str | int]:
        """Return what is searched, how, and the sizes."""
        table = self._table()
        with lance_errors(self.label):
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
            with lance_errors(self.label):
                self._connection.drop_table(self.spec.name)

    def maintain(self) -> None:
        """Compact, delete old versions, and index what is large enough; see `maintenance`.

        Raises:
            VectorError: where writers kept interrupting; nothing is lost, run it again.
        """
        maintain_table(self._table(), self)

    def _put(self, batch: Sequence[Vector]) -> None:
        merge = self._table().merge_insert("key")
        with lance_errors(self.label):
            (
                merge.when_matched_update_all()
                .when_not_matched_insert_all()
                .use_index(False)
                .execute(to_arrow(batch, self.spec))
            )

    def _delete(self, keys: Sequence[str]) -> None:
        with lance_errors(self.label):
            self._table().delete(_key_in(keys))

    def _get(self, keys: Sequence[str], data: bool) -> Iterator[Vector]:
        columns = [name for name in self._schema.names if data or name != "vector"]
        with lance_errors(self.label):
            # By default a query without a vector returns 10 rows.
            search = self._table().search().where(_key_in(keys)).limit(None).select(columns)
            for row in search.to_arrow().to_pylist():
                values = np.asarray(row.get("vector", []), dtype=np.float32)
                yield Vector(row["key"], values, row_metadata(row, self.spec))

    def _query(
        self, vector: Floats, top_k: int, filter: Filter | None, metadata: bool
    ) -> Iterable[Match]:
        columns = [name for name in self._schema.names if name != "vector"] if metadata else ["key"]
        with lance_errors(self.label):
            search = cast(LanceVectorQueryBuilder, self._table().search(vector))
            search = search.distance_type("cosine").refine_factor(refine_factor(top_k))
            if filter is None:
                search = search.nprobes(PROBES)
            else:
                search = search.where(lance_sql(filter))
                search = search.minimum_nprobes(FILTERED_PROBES).maximum_nprobes(0)
            # Lance warns on stderr at each query whose columns leave out _distance.
            rows = search.limit(top_k).select([*columns, "_distance"]).to_arrow().to_pylist()
        return [
            Match(row["key"], row["_distance"], row_metadata(row, self.spec) if metadata else {})
            for row in rows
        ]

    def _find(self, filter: Filter) -> Iterator[str]:
        return self._list_keys(lance_sql(filter))

    def _list_keys(self, where: str | None) -> Iterator[str]:
        with lance_errors(self.label):
            search = self._table().search().select(["key"]).limit(None)
            for batch in (search if where is None else search.where(where)).to_batches():
                yield from batch.column("key").to_pylist()

    def _table(self) -> Table:
        try:
            with lance_errors(self.label):
                return self._connection.open_table(self.spec.name)
        except VectorError as error:
            if "was not found" in str(error):
                raise missing_index(self.label) from error
            raise


def refine_factor(top_k: int) -> int:
    """Return how many vectors are read again for each match."""
    return max(2, min(REFINE, REFINED // top_k))


def _key_in(keys: Sequence[str]) -> str:
    return f"key IN ({', '.join(map(lance_literal, keys))})"
