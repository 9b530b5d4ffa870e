"""One vector index as a LanceDB table: a column for each filterable field, filtered before search.

Below `maintenance.INDEX_ROWS` every query is exact; above, an IVF_RQ index is searched, whose
estimates are replaced by exact distances (`refine_factor`).

Any number of processes may put, delete and query at once. On S3-like storage the commits need
conditional writes (If-None-Match); AWS, MinIO and R2 have them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial

import numpy as np
import pyarrow as pa
from lancedb.table import AsyncTable, Table

from mail_assets.vectors.capabilities import Capabilities
from mail_assets.vectors.errors import MissingIndexError, VectorError, missing_index
from mail_assets.vectors.filter_sql import lance_literal, lance_sql
from mail_assets.vectors.filters import Filter
from mail_assets.vectors.index import VectorIndex
from mail_assets.vectors.lance.conflicts import delete_rows, merge_rows, write_beside_upkeep
from mail_assets.vectors.lance.connection import LanceConnection
from mail_assets.vectors.lance.errors import lance_errors
from mail_assets.vectors.lance.groups import count_groups
from mail_assets.vectors.lance.handle import OpenTable, TableHandle
from mail_assets.vectors.lance.index_state import read_index_states
from mail_assets.vectors.lance.maintenance import plan_upkeep
from mail_assets.vectors.lance.rows import (
    arrow_schema,
    column_types,
    row_metadata,
    to_arrow,
    vector_dimension,
)
from mail_assets.vectors.lance.search import Search, search_table
from mail_assets.vectors.spec import IndexSpec
from mail_assets.vectors.vector import Floats, Match, Vector


class LanceIndex(VectorIndex):
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
        self._connection = connection
        self._schema = arrow_schema(spec)
        self._handle = TableHandle(self._open_table, self.label)

    def ensure(self, before: Callable[[], object] = lambda: None) -> None:
        """Create the table, or verify its columns."""
        try:
            table = self._table()
        except MissingIndexError:
            before()
            with lance_errors(self.label):
                table = self._connection.blocking.create_table(
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
        return self._handle.read(lambda kept: kept.table.count_rows())

    def describe(self) -> dict[str, str | int]:
        """Return what is searched, how, and the sizes."""
        table = self._table()
        with lance_errors(self.label):
            state = read_index_states(table).get("vector")
            facts: dict[str, str | int] = {
                "backend": "lance",
                "index": self.spec.name,
                "dimension": vector_dimension(table.schema),
                "metric": "cosine",
                "search": state.kind if state else "exact",
                "rows": table.count_rows(),
                "version": table.version,
            }
            if state:
                facts |= {"segments": state.segments, "unindexed_rows": state.unindexed_rows}
        return facts

    def drop(self) -> None:
        """Delete the table; nothing happens where there is none."""
        with suppress(MissingIndexError):
            self._table()
            with lance_errors(self.label):
                self._connection.blocking.drop_table(self.spec.name)

    def maintain(self, *, erase: bool = False) -> None:
        """Compact, delete old versions, and index what is large enough; see `maintenance`.

        Raises:
            VectorError: where writers kept interrupting; nothing is lost, run it again.
        """
        plan_upkeep(self._table(), self.label).maintain(erase=erase)

    def catch_up(self) -> None:
        """Index what is new, in as little time as it takes.

        Raises:
            VectorError: where writers kept interrupting; nothing is lost, run it again.
        """
        table = self._table()
        with lance_errors(self.label):
            plan_upkeep(table, self.label).catch_up()

    def needs_upkeep(self) -> bool:
        """Tell whether many rows were written since the last upkeep, or in many commits."""
        table = self._snapshot()
        with lance_errors(self.label):
            return plan_upkeep(table, self.label).find_due() is not None

    def _put(self, batch: Sequence[Vector]) -> None:
        rows = to_arrow(batch, self.spec)
        write_beside_upkeep(partial(merge_rows, rows), self._table, self.label)

    def _insert(self, batch: Sequence[Vector]) -> None:
        # A merge reads the whole key column: 0.9 s at 3 million rows, where this takes 0.03.
        with lance_errors(self.label):
            self._snapshot().add(to_arrow(batch, self.spec))

    def _delete(self, keys: Sequence[str], among: Filter | None) -> None:
        within = "" if among is None else f"({lance_sql(among)}) AND "
        where = within + _key_in(keys)
        write_beside_upkeep(partial(delete_rows, where), self._table, self.label)

    def _get(self, keys: Sequence[str], data: bool) -> Iterator[Vector]:
        columns = [name for name in self._schema.names if data or name != "vector"]

        async def read(kept: OpenTable) -> pa.Table:
            return await kept.table.query().where(_key_in(keys)).select(columns).to_arrow()

        for row in self._handle.read(read).to_pylist():
            values = np.asarray(row.get("vector", []), dtype=np.float32)
            yield Vector(row["key"], values, row_metadata(row, self.spec))

    def _query(
        self, vector: Floats, top_k: int, filter: Filter | None, metadata: bool
    ) -> Iterable[Match]:
        columns = [name for name in self._schema.names if name != "vector"] if metadata else ["key"]
        wanted = Search(vector, top_k, filter, columns)
        rows = self._handle.read(lambda kept: search_table(kept, wanted))
        return [
            Match(row["key"], row["_distance"], row_metadata(row, self.spec) if metadata else {})
            for row in rows
        ]

    def _find(self, filter: Filter) -> Iterator[str]:
        return self._list_keys(lance_sql(filter))

    def _count_groups(self, fields: Sequence[str]) -> Counter[tuple[object, ...]]:
        return self._handle.read(lambda kept: count_groups(kept.table, fields))

    def _list_keys(self, where: str | None) -> Iterator[str]:
        with lance_errors(self.label):
            search = self._snapshot().search().select(["key"]).limit(None)
            for batch in (search if where is None else search.where(where)).to_batches():
                yield from batch.column("key").to_pylist()

    def _table(self) -> Table:
        with self._naming_missing():
            return self._connection.blocking.open_table(self.spec.name)

    def _snapshot(self) -> Table:
        with self._naming_missing():
            return self._connection.open_snapshot(self.spec.name)

    async def _open_table(self) -> AsyncTable:
        with self._naming_missing():
            table = await self._connection.open_table(self.spec.name)
        dimension = vector_dimension(await table.schema())
        if dimension != self.spec.dimension:
            raise self.error(
                f"has vectors of {dimension} numbers, wanted {self.spec.dimension}",
                "encode with the model that the index was made for, or make a new index",
            )
        return table

    @contextmanager
    def _naming_missing(self) -> Iterator[None]:
        try:
            with lance_errors(self.label):
                yield
        except VectorError as error:
            if "was not found" in str(error):
                raise missing_index(self.label) from error
            raise


def _key_in(keys: Sequence[str]) -> str:
    return f"key IN ({', '.join(map(lance_literal, keys))})"
