"""Vector buckets as tables of a Postgres with pgvector 0.8 or later, in the schema `vectors`.

One table per index, named as it: `embedding` is halfvec (2 bytes a number, relative error up to
5e-4), a filterable field is a text or double precision column with a btree, the rest is jsonb.
Below `INDEX_ROWS` every query is exact; above, `maintain` builds an HNSW index. It is not there
from the start: rows enter it at about 1,300 per second.

Every operation opens a connection of its own (2 ms on a Unix socket), so that nothing has to be
closed and forks and threads are safe. Whether the CPU can run the server's pgvector is the
caller's to find out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, TypeAlias

import numpy as np
import psycopg
from pgvector import HalfVector
from pgvector.psycopg import register_vector
from psycopg import Connection, sql
from psycopg.conninfo import conninfo_to_dict
from psycopg.errors import InvalidSchemaName, UndefinedTable
from psycopg.rows import DictRow, dict_row
from psycopg.sql import Composable
from psycopg.types.json import Jsonb

from mail_assets.vectors import filters
from mail_assets.vectors.filters import Filter
from mail_assets.vectors.index import (
    Caps,
    Floats,
    IndexSpec,
    Match,
    Metadata,
    Vector,
    VectorError,
    VectorIndex,
    missing,
    plain,
)

Database: TypeAlias = Connection[DictRow]
Parameters: TypeAlias = list[object]

SCHEMA = "vectors"
MINIMUM_VERSION = (0, 8)  # hnsw.iterative_scan
# 100,000 x 384: an exact query takes 60 ms, an HNSW one 1 ms.
INDEX_ROWS = 50_000
EF_SEARCH = 100
# Up to here the matching rows are ranked exactly: 1 % of 500,000 rows in 5 ms with recall 1.0,
# where the HNSW scan takes 38 ms and finds 0.88.
EXACT_ROWS = 20_000
# Wider embeddings may not fit a page beside 2 KB of fields and a key.
PLAIN_DIMENSION = 2_000

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
        with _connect(self.dsn, self.where) as database:
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
        self._dsn = bucket.dsn
        self._table = sql.Identifier(SCHEMA, spec.name)
        self._types = _column_types(spec)
        self._names = _identifiers(name for name in self._types if name != "embedding")

    def ensure(self) -> None:
        """Create extension, schema and table, or verify the table's columns."""
        with self._connect() as database:
            # CREATE ... IF NOT EXISTS is not safe against itself.
            database.execute("SELECT pg_advisory_xact_lock(%s)", [_ENSURE_LOCK])
            exists = self._columns(database)
            if not exists:
                self._create(database)
            elif exists != self._types:
                raise self.mismatch(exists, self._types)

    def keys(self) -> Iterator[str]:
        """Iterate over all keys, in no order."""
        return self._list_keys(None)

    def count(self) -> int:
        """Return the number of rows."""
        with self._connect() as database:
            return self._count(database)

    def describe(self) -> dict[str, str | int]:
        """Return what is searched, how, and the sizes."""
        with self._connect() as database:
            rows = self._count(database)
            (size,) = database.execute(
                "SELECT pg_total_relation_size(to_regclass(%s)) AS bytes", [self._table.as_string()]
            )
            return {
                "backend": "pgvector",
                "index": self.spec.name,
                "dimension": self.spec.dimension,
                "metric": "cosine",
                "search": "hnsw" if any(self._hnsw(database).values()) else "exact",
                "rows": rows,
                "bytes": size["bytes"],
            }

    def drop(self) -> None:
        """Drop the table; nothing happens where there is none."""
        with self._connect() as database:
            self._execute(database, "DROP TABLE IF EXISTS {table}")

    def maintain(self) -> None:
        """Vacuum, and from `INDEX_ROWS` rows on build the HNSW index beside running writes.

        It wants `maintenance_work_mem` to hold the graph, about 1.2 KB a row of 384. Where another
        process is at it, nothing happens.
        """
        with self._connect() as database:
            database.autocommit = True
            # Try, not wait: a concurrent build waits for every older snapshot, the waiter's too.
            lock = "SELECT pg_try_advisory_lock(hashtext(%s)) AS mine"
            (row,) = database.execute(lock, [self._table.as_string()])
            if not row["mine"]:
                return
            hnsw = self._hnsw(database)
            for broken in (name for name, valid in hnsw.items() if not valid):
                # A concurrent build that was interrupted: of no use, and it slows every write.
                drop = sql.SQL("DROP INDEX CONCURRENTLY {}")
                database.execute(drop.format(sql.Identifier(SCHEMA, broken)))
            if not any(hnsw.values()) and self._count(database) >= INDEX_ROWS:
                self._execute(
                    database,
                    "CREATE INDEX CONCURRENTLY ON {table}"
                    " USING hnsw (embedding halfvec_cosine_ops)",
                )
            self._execute(database, "VACUUM (ANALYZE) {table}")

    def _put(self, batch: Sequence[Vector]) -> None:
        columns = _identifiers(self._types)
        with self._connect() as database:
            self._execute(database, "CREATE TEMP TABLE incoming (LIKE {table}) ON COMMIT DROP")
            register_vector(database)
            copy_in = sql.SQL("COPY incoming ({}) FROM STDIN (FORMAT binary)").format(columns)
            with database.cursor().copy(copy_in) as copy:
                copy.set_types([kind.partition("(")[0] for kind in self._types.values()])
                for vector in batch:
                    copy.write_row(self._row(vector))
            # Unchanged rows are left alone: a rewritten one enters every index again.
            # In key order, so that concurrent writers of the same keys do not deadlock.
            self._execute(
                database,
                "INSERT INTO {table} AS stored ({columns})"
                " SELECT {columns} FROM incoming ORDER BY key"
                " ON CONFLICT (key) DO UPDATE SET ({columns}) = ROW ({excluded})"
                " WHERE stored.* IS DISTINCT FROM excluded.*",
                columns=columns,
                excluded=sql.SQL(", ").join(sql.Identifier("excluded", n) for n in self._types),
            )

    def _delete(self, keys: Sequence[str]) -> None:
        with self._connect() as database:
            self._execute(database, "DELETE FROM {table} WHERE key = ANY(%s)", [list(keys)])

    def _get(self, keys: Sequence[str], data: bool) -> list[Vector]:
        embedding = sql.SQL("embedding::real[]" if data else "'{}'::real[]")
        with self._connect() as database:
            rows = self._execute(
                database,
                "SELECT {names}, {embedding} AS embedding FROM {table} WHERE key = ANY(%s)",
                [list(keys)],
                embedding=embedding,
            )
        return [
            Vector(row["key"], np.asarray(row["embedding"], np.float32), self._metadata(row))
            for row in rows
        ]

    def _query(self, vector: Floats, top_k: int, filter: Filter | None) -> list[Match]:
        text = f"[{','.join(map(str, vector.tolist()))}]"
        condition, parameters = _condition(filter)
        with self._connect() as database:
            # Without the first a filtered scan stops at ef_search rows, matching or not.
            database.execute(
                "SELECT set_config('hnsw.iterative_scan', 'relaxed_order', true),"
                " set_config('hnsw.ef_search', %s, true)",
                [str(EF_SEARCH)],
            )
            exact = filter is not None and self._few_match(database, condition, parameters)
            rows = self._execute(
                database,
                "SELECT {names}, embedding <=> %s::halfvec AS distance FROM {table}"
                " WHERE {condition} ORDER BY (embedding <=> %s::halfvec) {exact} LIMIT %s",
                [text, *parameters, text, top_k],
                condition=condition,
                # The HNSW index knows the bare distance only.
                exact=sql.SQL("+ 0" if exact else ""),
            )
        return [Match(row["key"], row["distance"], self._metadata(row)) for row in rows]

    def _find(self, filter: Filter) -> Iterator[str]:
        return self._list_keys(filter)

    def _list_keys(self, filter: Filter | None) -> Iterator[str]:
        condition, parameters = _condition(filter)
        query = sql.SQL("SELECT key FROM {} WHERE {}").format(self._table, condition)
        with self._connect() as database, database.cursor("keys") as cursor:
            cursor.itersize = 10_000
            for row in cursor.execute(query, parameters):
                yield row["key"]

    def _few_match(self, database: Database, condition: Composable, parameters: Parameters) -> bool:
        (row,) = self._execute(
            database,
            "SELECT count(*) FROM (SELECT FROM {table} WHERE {condition} LIMIT %s) AS matching",
            [*parameters, EXACT_ROWS + 1],
            condition=condition,
        )
        return int(row["count"]) <= EXACT_ROWS

    def _count(self, database: Database) -> int:
        (row,) = self._execute(database, "SELECT count(*) FROM {table}")
        return int(row["count"])

    def _hnsw(self, database: Database) -> dict[str, bool]:
        """Return the HNSW indexes by name, and whether each is complete."""
        rows = database.execute(
            "SELECT relname, indisvalid FROM pg_index"
            " JOIN pg_class ON pg_class.oid = indexrelid JOIN pg_am ON pg_am.oid = relam"
            " WHERE indrelid = to_regclass(%s) AND amname = 'hnsw'",
            [self._table.as_string()],
        )
        return {row["relname"]: row["indisvalid"] for row in rows}

    def _columns(self, database: Database) -> dict[str, str]:
        """Return the table's columns and their types, none where there is no table."""
        rows = database.execute(
            "SELECT attname, format_type(atttypid, atttypmod) AS type FROM pg_attribute"
            " WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped",
            [self._table.as_string()],
        )
        return {row["attname"]: row["type"].rpartition(".")[2] for row in rows}

    def _create(self, database: Database) -> None:
        database.execute("CREATE EXTENSION IF NOT EXISTS vector")
        self._check_version(database)
        database.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(SCHEMA)))
        columns = [
            # "C" compares bytes: quicker, and the same after an upgrade of the system's locales.
            sql.SQL("{} {}" + (' COLLATE "C"' if kind == "text" else "")).format(
                sql.Identifier(name), sql.SQL(kind)
            )
            for name, kind in self._types.items()
        ]
        self._execute(
            database,
            "CREATE TABLE {table} ({columns}, PRIMARY KEY (key))",
            columns=sql.SQL(", ").join(columns),
        )
        if self.spec.dimension <= PLAIN_DIMENSION:
            # Beside the row, not in a TOAST table that an exact scan has to look up each time.
            self._execute(database, "ALTER TABLE {table} ALTER embedding SET STORAGE PLAIN")
        for name in self.spec.fields:
            self._execute(database, "CREATE INDEX ON {table} ({name})", name=sql.Identifier(name))

    def _check_version(self, database: Database) -> None:
        query = "SELECT extversion FROM pg_extension WHERE extname = 'vector'"
        (row,) = database.execute(query).fetchall()
        version = tuple(int(part) for part in row["extversion"].split(".")[:2])
        if version < MINIMUM_VERSION:
            raise self.error(
                f"pgvector is {row['extversion']}, 0.8 is needed",
                "install a newer one and run ALTER EXTENSION vector UPDATE",
            )

    def _row(self, vector: Vector) -> list[object]:
        row: list[object] = [vector.key, HalfVector(vector.values)]
        for name, kind in list(self._types.items())[2:]:
            value = vector.metadata.get(name)
            # Binary COPY converts nothing: an int is not a double precision there.
            convert = {"jsonb": Jsonb, "double precision": float, "text": str}[kind]
            row.append(None if value is None else convert(value))
        return row

    def _metadata(self, row: Mapping[str, Any]) -> Metadata:
        names = (*self.spec.fields, *self.spec.non_filterable)
        return {name: plain(row[name]) for name in names if row[name] is not None}

    def _connect(self) -> AbstractContextManager[Database]:
        return _connect(self._dsn, self.label)

    def _execute(
        self,
        database: Database,
        template: str,
        parameters: Parameters | None = None,
        **parts: Composable,
    ) -> list[DictRow]:
        """Run a statement about this table; return its rows, if it is of the kind to have any."""
        statement = sql.SQL(template).format(table=self._table, names=self._names, **parts)
        cursor = database.execute(statement, parameters)
        return cursor.fetchall() if cursor.description else []


@contextmanager
def _connect(dsn: str, label: str) -> Iterator[Database]:
    """Open a transaction; turn Postgres errors into ours, about `label`."""
    try:
        with psycopg.connect(
            dsn, row_factory=dict_row, fallback_application_name="mail_assets vectors"
        ) as database:
            yield database
    except (UndefinedTable, InvalidSchemaName) as error:
        raise missing(label) from error
    except psycopg.Error as error:
        raise VectorError(f"{label}: {error}; check the DSN, the server and its log") from error


def _column_types(spec: IndexSpec) -> dict[str, str]:
    kinds = {"string": "text", "number": "double precision"}
    return {
        "key": "text",
        "embedding": f"halfvec({spec.dimension})",
        **{name: kinds[kind] for name, kind in spec.fields.items()},
        **dict.fromkeys(spec.non_filterable, "jsonb"),
    }


def _identifiers(names: Iterable[str]) -> Composable:
    return sql.SQL(", ").join(map(sql.Identifier, names))


def _condition(filter: Filter | None) -> tuple[Composable, Parameters]:
    return (sql.SQL("true"), []) if filter is None else filters.postgres_sql(filter)
