"""Vector buckets as tables of a Postgres with pgvector 0.8 or later, in the schema `vectors`.

One table per index. Below `INDEX_ROWS` every query is exact; above, `maintain` builds an HNSW
index. It is not there from the start: rows enter it at about 1,300 per second.

Every operation opens a connection of its own (2 ms on a Unix socket), so that nothing has to be
closed and forks and threads are safe. What does not live here: the table (`pgvector_table`), and
whether the CPU can run the server's pgvector, which the caller must find out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import psycopg
from pgvector.psycopg import register_vector
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict
from psycopg.sql import Composable

from mail_assets.vectors.filter_sql import postgres_sql
from mail_assets.vectors.filters import Filter
from mail_assets.vectors.index import Caps, Floats, IndexSpec, Match, Vector, VectorIndex
from mail_assets.vectors.pgvector_table import (
    SCHEMA,
    Database,
    Parameters,
    Table,
    connect,
    identifiers,
)

# 100,000 x 384: an exact query takes 60 ms, an HNSW one 1 ms.
INDEX_ROWS = 50_000
EF_SEARCH = 100
# Up to here the matching rows are ranked exactly: 1 % of 500,000 rows in 5 ms with recall 1.0,
# where the HNSW scan takes 38 ms and finds 0.88.
EXACT_ROWS = 20_000

_ENSURE_LOCK = 0x6D61696C  # any number that all processes agree on


class PgvectorBucket:
    """The schema `vectors` of one database."""

    def __init__(self, dsn: str) -> None:
        try:
            parts = conninfo_to_dict(dsn)
        except psycopg.ProgrammingError:
            # Its message quotes the DSN, password included.
            raise ValueError("the DSN is malformed: use postgresql://USER@HOST/DATABASE") from None
        self.dsn = dsn
        self.where = f"pgvector:{parts.get('dbname', '')}@{parts.get('host', '')}"

    def index(self, spec: IndexSpec) -> PgvectorIndex:
        """Return the index of `spec`; nothing is read yet."""
        return PgvectorIndex(spec, self)

    def indexes(self) -> list[str]:
        """Return the names of the bucket's indexes."""
        with connect(self.dsn, self.where) as database:
            rows = database.execute(
                "SELECT relname FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid"
                " WHERE relnamespace = to_regnamespace(%s) AND relkind = 'r'"
                " AND attname = 'embedding' ORDER BY relname",
                [SCHEMA],
            )
            return [row["relname"] for row in rows]


class PgvectorIndex(VectorIndex):
    """One table."""

    caps = Caps(
        max_batch=20_000,  # one transaction: a month
        max_bytes=256 << 20,
        max_get=10_000,
        max_top_k=10_000,
        max_dimension=4_000,  # of an HNSW index over halfvec
        list_filter=True,
    )

    def __init__(self, spec: IndexSpec, bucket: PgvectorBucket) -> None:
        super().__init__(spec, bucket.where)
        self._table = Table(spec, bucket.dsn, self.label)

    def ensure(self) -> None:
        """Create extension, schema and table, or verify the table's columns."""
        with self._table.connect() as database:
            # CREATE ... IF NOT EXISTS is not safe against itself.
            database.execute("SELECT pg_advisory_xact_lock(%s)", [_ENSURE_LOCK])
            exists = self._table.columns(database)
            if not exists:
                self._table.create(database)
            elif exists != self._table.types:
                raise self.mismatch(exists, self._table.types)

    def keys(self) -> Iterator[str]:
        """Iterate over all keys, in no order."""
        return self._list_keys(None)

    def count(self) -> int:
        """Return the number of rows."""
        with self._table.connect() as database:
            return self._table.count(database)

    def describe(self) -> dict[str, str | int]:
        """Return what is searched, how, and the sizes."""
        with self._table.connect() as database:
            rows = self._table.count(database)
            (size,) = database.execute(
                "SELECT pg_total_relation_size(to_regclass(%s)) AS bytes", [self._table.name]
            )
            return {
                "backend": "pgvector",
                "index": self.spec.name,
                "dimension": self.spec.dimension,
                "metric": "cosine",
                "search": "hnsw" if any(self._table.hnsw(database).values()) else "exact",
                "rows": rows,
                "bytes": size["bytes"],
            }

    def drop(self) -> None:
        """Drop the table; nothing happens where there is none."""
        with self._table.connect() as database:
            self._table.execute(database, "DROP TABLE IF EXISTS {table}")

    def maintain(self) -> None:
        """Vacuum, and from `INDEX_ROWS` rows on build the HNSW index beside running writes.

        It wants `maintenance_work_mem` to hold the graph, about 1.2 KB a row of 384. Where another
        process is at it, nothing happens.
        """
        with self._table.connect() as database:
            database.autocommit = True
            # Try, not wait: a concurrent build waits for every older snapshot, the waiter's too.
            lock = "SELECT pg_try_advisory_lock(hashtext(%s)) AS mine"
            (row,) = database.execute(lock, [self._table.name])
            if not row["mine"]:
                return
            hnsw = self._table.hnsw(database)
            for broken in (name for name, valid in hnsw.items() if not valid):
                # A concurrent build that was interrupted: of no use, and it slows every write.
                drop = sql.SQL("DROP INDEX CONCURRENTLY {}")
                database.execute(drop.format(sql.Identifier(SCHEMA, broken)))
            if not any(hnsw.values()) and self._table.count(database) >= INDEX_ROWS:
                self._table.execute(
                    database,
                    "CREATE INDEX CONCURRENTLY ON {table}"
                    " USING hnsw (embedding halfvec_cosine_ops)",
                )
            self._table.execute(database, "VACUUM (ANALYZE) {table}")

    def _put(self, batch: Sequence[Vector]) -> None:
        columns = identifiers(self._table.types)
        with self._table.connect() as database:
            self._table.execute(
                database, "CREATE TEMP TABLE incoming (LIKE {table}) ON COMMIT DROP"
            )
            register_vector(database)
            copy_in = sql.SQL("COPY incoming ({}) FROM STDIN (FORMAT binary)").format(columns)
            with database.cursor().copy(copy_in) as copy:
                copy.set_types([kind.partition("(")[0] for kind in self._table.types.values()])
                for vector in batch:
                    copy.write_row(self._table.row(vector))
            # Unchanged rows are left alone: a rewritten one enters every index again.
            # In key order, so that concurrent writers of the same keys do not deadlock.
            self._table.execute(
                database,
                "INSERT INTO {table} AS stored ({columns})"
                " SELECT {columns} FROM incoming ORDER BY key"
                " ON CONFLICT (key) DO UPDATE SET ({columns}) = ROW ({excluded})"
                " WHERE stored.* IS DISTINCT FROM excluded.*",
                columns=columns,
                excluded=sql.SQL(", ").join(
                    sql.Identifier("excluded", n) for n in self._table.types
                ),
            )

    def _delete(self, keys: Sequence[str]) -> None:
        with self._table.connect() as database:
            self._table.execute(database, "DELETE FROM {table} WHERE key = ANY(%s)", [list(keys)])

    def _get(self, keys: Sequence[str], data: bool) -> list[Vector]:
        embedding = sql.SQL("embedding::real[]" if data else "'{}'::real[]")
        with self._table.connect() as database:
            rows = self._table.execute(
                database,
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
        with self._table.connect() as database:
            # Without the first a filtered scan stops at ef_search rows, matching or not.
            database.execute(
                "SELECT set_config('hnsw.iterative_scan', 'relaxed_order', true),"
                " set_config('hnsw.ef_search', %s, true)",
                [str(EF_SEARCH)],
            )
            exact = filter is not None and self._few_match(database, condition, parameters)
            rows = self._table.execute(
                database,
                f"SELECT {'{names}' if metadata else 'key'}, embedding <=> %s::halfvec AS distance"
                " FROM {table}"
                " WHERE {condition} ORDER BY (embedding <=> %s::halfvec) {exact} LIMIT %s",
                [text, *parameters, text, top_k],
                condition=condition,
                # The HNSW index knows the bare distance only.
                exact=sql.SQL("+ 0" if exact else ""),
            )
        return [Match(row["key"], row["distance"], self._table.metadata(row)) for row in rows]

    def _find(self, filter: Filter) -> Iterator[str]:
        return self._list_keys(filter)

    def _list_keys(self, filter: Filter | None) -> Iterator[str]:
        condition, parameters = _condition(filter)
        query = self._table.statement(
            "SELECT key FROM {table} WHERE {condition}", condition=condition
        )
        with self._table.connect() as database, database.cursor("keys") as cursor:
            cursor.itersize = 10_000
            for row in cursor.execute(query, parameters):
                yield row["key"]

    def _few_match(self, database: Database, condition: Composable, parameters: Parameters) -> bool:
        (row,) = self._table.execute(
            database,
            "SELECT count(*) FROM (SELECT FROM {table} WHERE {condition} LIMIT %s) AS matching",
            [*parameters, EXACT_ROWS + 1],
            condition=condition,
        )
        return int(row["count"]) <= EXACT_ROWS


def _condition(filter: Filter | None) -> tuple[Composable, Parameters]:
    return (sql.SQL("true"), []) if filter is None else postgres_sql(filter)
