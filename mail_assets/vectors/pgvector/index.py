"""One vector index as a table of Postgres: exact search, or by an HNSW index once it is large.

Threads may share an index. Whether the processor can run the server's pgvector is for the caller
to find out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from pgvector.psycopg import register_vector
from psycopg import sql
from psycopg.sql import Composable

from mail_assets.vectors.capabilities import Capabilities
from mail_assets.vectors.filter_sql import postgres_sql
from mail_assets.vectors.filters import Filter
from mail_assets.vectors.index import VectorIndex
from mail_assets.vectors.pgvector.connections import Session
from mail_assets.vectors.pgvector.maintenance import maintain_table
from mail_assets.vectors.pgvector.table import Parameters, PgvectorTable, identifiers
from mail_assets.vectors.spec import IndexSpec
from mail_assets.vectors.vector import Floats, Match, MetadataValue, Vector

EF_SEARCH = 100
# Up to here the matching rows are ranked exactly: 1 % of 500,000 rows in 5 ms with recall 1.0,
# where the HNSW scan takes 38 ms and finds 0.88.
EXACT_ROWS = 20_000

_ENSURE_LOCK = 0x6D61696C  # any number that all processes agree on


class PgvectorIndex(VectorIndex):
    """One table."""

    capabilities = Capabilities(
        max_batch=20_000,  # one transaction: a month
        max_bytes=256 << 20,
        max_get=10_000,
        max_top_k=10_000,
        max_dimension=4_000,  # of an HNSW index over halfvec
        list_filter=True,
        max_constraints=2_000,
    )

    def __init__(self, spec: IndexSpec, dsn: str, where: str) -> None:
        super().__init__(spec, where)
        self._table = PgvectorTable(spec, dsn, self.label)

    def ensure(self, before: Callable[[], object] = lambda: None) -> None:
        """Create extension, schema and table, or verify the table's columns."""
        with self._table.connect() as session:
            # CREATE ... IF NOT EXISTS is not safe against itself.
            session.execute("SELECT pg_advisory_xact_lock(%s)", [_ENSURE_LOCK])
            self._table.claim(session)
            exists = self._table.columns(session)
            if not exists:
                before()
                self._table.create(session)
            elif exists != self._table.types:
                raise self.mismatch(exists, self._table.types)

    def keys(self) -> Iterator[str]:
        """Iterate over all keys, in no order."""
        return (key for key, _ in self._list_values("key", None))

    def count(self) -> int:
        """Return the number of rows."""
        with self._table.connect() as session:
            return self._table.count(session)

    def describe(self) -> dict[str, str | int]:
        """Return what is searched, how, and the sizes."""
        with self._table.connect() as session:
            rows = self._table.count(session)
            (size,) = session.execute(
                "SELECT pg_total_relation_size(to_regclass(%s)) AS bytes", [self._table.name]
            )
            return {
                "backend": "pgvector",
                "index": self.spec.name,
                "dimension": self._table.dimension(session),
                "metric": "cosine",
                "search": "hnsw" if any(self._table.hnsw(session).values()) else "exact",
                "rows": rows,
                "bytes": size["bytes"],
            }

    def drop(self) -> None:
        """Drop the table; nothing happens where there is none."""
        with self._table.connect() as session:
            self._table.execute(session, "DROP TABLE IF EXISTS {table}")

    def maintain(self, *, erase: bool = False) -> None:
        """Vacuum, which erases, and build the HNSW index where worth it; see `maintenance`."""
        maintain_table(self._table)

    def _put(self, batch: Sequence[Vector]) -> None:
        columns = identifiers(self._table.types)
        with self._table.connect() as session:
            self._table.execute(session, "CREATE TEMP TABLE incoming (LIKE {table}) ON COMMIT DROP")
            register_vector(session)
            copy_in = sql.SQL("COPY incoming ({}) FROM STDIN (FORMAT binary)").format(columns)
            with session.cursor().copy(copy_in) as copy:
                copy.set_types([kind.partition("(")[0] for kind in self._table.types.values()])
                for vector in batch:
                    copy.write_row(self._table.row(vector))
            # Unchanged rows are left alone: a rewritten one enters every index again.
            # In key order, so that concurrent writers of the same keys do not deadlock.
            self._table.execute(
                session,
                "INSERT INTO {table} AS stored ({columns})"
                " SELECT {columns} FROM incoming ORDER BY key"
                " ON CONFLICT (key) DO UPDATE SET ({columns}) = ROW ({excluded})"
                " WHERE stored.* IS DISTINCT FROM excluded.*",
                columns=columns,
                excluded=sql.SQL(", ").join(
                    sql.Identifier("excluded", n) for n in self._table.types
                ),
            )

    def _delete(self, keys: Sequence[str], among: Filter | None) -> None:
        with self._table.connect() as session:
            self._table.execute(session, "DELETE FROM {table} WHERE key = ANY(%s)", [list(keys)])

    def _get(self, keys: Sequence[str], data: bool) -> list[Vector]:
        embedding = sql.SQL("embedding::real[]" if data else "'{}'::real[]")
        with self._table.connect() as session:
            rows = self._table.execute(
                session,
                "SELECT {names}, {embedding} AS embedding FROM {table} WHERE key = ANY(%s)",
                [list(keys)],
                embedding=embedding,
            )
        return [
            Vector(row["key"], np.asarray(row["embedding"], np.float32), self._table.metadata(row))
            for row in rows
        ]

    def _query(
        self, vector: Floats, top_k: int, filter: Filter | None, metadata: bool
    ) -> list[Match]:
        text = f"[{','.join(map(str, vector.tolist()))}]"
        condition, parameters = _condition(filter)
        with self._table.connect() as session:
            # Without the first a filtered scan stops at ef_search rows, matching or not.
            session.execute(
                "SELECT set_config('hnsw.iterative_scan', 'relaxed_order', true),"
                " set_config('hnsw.ef_search', %s, true)",
                [str(EF_SEARCH)],
            )
            exact = filter is not None and self._few_match(session, condition, parameters)
            rows = self._table.execute(
                session,
                f"SELECT {'{names}' if metadata else 'key'}, embedding <=> %s::halfvec AS distance"
                " FROM {table}"
                " WHERE {condition} ORDER BY (embedding <=> %s::halfvec) {exact} LIMIT %s",
                [text, *parameters, text, top_k],
                condition=condition,
                # The HNSW index knows the bare distance only.
                exact=sql.SQL("+ 0" if exact else ""),
            )
        return [Match(row["key"], row["distance"], self._table.metadata(row)) for row in rows]

    def _find_values(self, field: str, filter: Filter) -> Iterator[tuple[str, MetadataValue]]:
        return self._list_values(field, filter)

    def _list_values(
        self, field: str, filter: Filter | None
    ) -> Iterator[tuple[str, MetadataValue]]:
        condition, parameters = _condition(filter)
        query = self._table.statement(
            "SELECT key, {field} AS value FROM {table} WHERE {condition}",
            field=sql.Identifier(field),
            condition=condition,
        )
        with self._table.connect() as session, session.cursor("keys") as cursor:
            cursor.itersize = 10_000
            for row in cursor.execute(query, parameters):
                yield row["key"], row["value"]

    def _count_groups(self, fields: Sequence[str]) -> Counter[tuple[object, ...]]:
        columns = identifiers(fields)
        with self._table.connect() as session:
            rows = self._table.execute(
                session,
                "SELECT {columns}, count(*) AS rows FROM {table} GROUP BY {columns}",
                columns=columns,
            )
        return Counter({tuple(row[name] for name in fields): row["rows"] for row in rows})

    def _few_match(self, session: Session, condition: Composable, parameters: Parameters) -> bool:
        (row,) = self._table.execute(
            session,
            "SELECT count(*) FROM (SELECT FROM {table} WHERE {condition} LIMIT %s) AS matching",
            [*parameters, EXACT_ROWS + 1],
            condition=condition,
        )
        return int(row["count"]) <= EXACT_ROWS


def _condition(filter: Filter | None) -> tuple[Composable, Parameters]:
    return (sql.SQL("true"), []) if filter is None else postgres_sql(filter)
