"""Vector indexes as tables of Postgres: exact search, or by an HNSW index once a table is large.

The tables are in the schema `vectors`. `embedding` is halfvec (2 bytes a number, relative error up
to 5e-4), a filterable field is a text or double precision column with a btree, the rest is jsonb.

An index is named after its encoder, not its installation. Two installations in one database would
delete each other's vectors as surplus. So the first one that writes stores the name of its own
schema in the comment of the schema `vectors`, and others are refused.

Threads may share an index. The caller checks whether the processor can run the server's pgvector.
"""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from typing import Any, TypeAlias, cast

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

from mail_assets.postgres.database import MailConnection, begin_session
from mail_assets.vectors.filters import COMPARISONS_SQL, LOGIC_SQL, Filter, Nested, nest_conditions
from mail_assets.vectors.index import (
    Capabilities,
    Floats,
    IndexSpec,
    Match,
    Metadata,
    MetadataValue,
    Vector,
    VectorError,
    VectorIndex,
    missing_index,
    restore_int,
)

SCHEMA = "vectors"
_MARK = "vectors of mail_assets in the schema "
_ENSURE_LOCK = 0x6D61696C  # any number that all processes agree on

MINIMUM_VERSION = (0, 8)  # hnsw.iterative_scan
# Wider embeddings may not fit a page next to 2 KB of fields and a key.
PLAIN_DIMENSION = 2_000
# 100,000 x 384: an exact query takes 60 ms, an HNSW one 1 ms.
INDEX_ROWS = 50_000
EF_SEARCH = 100
# Up to so many matching rows are ranked exactly: 1 % of 500,000 rows in 5 ms with recall 1.0. The
# HNSW scan takes 38 ms and finds 0.88.
EXACT_ROWS = 20_000

Session: TypeAlias = Connection[DictRow]
Parameters: TypeAlias = list[object]


class PgvectorIndex(VectorIndex):
    """One table of the schema `vectors`."""

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
            _create_schema(session, self.label)
            exists = self._table.columns(session)
            if not exists:
                before()
                self._table.create(session)
            elif exists != self._table.types:
                raise self.mismatch(exists, self._table.types)

    def keys(self) -> Iterator[str]:
        """Iterate over all keys, in no order."""
        return (key for key, _ in self._find_values("key", None))

    def count(self) -> int:
        """Return the number of rows."""
        with self._table.connect() as session:
            return self._table.count(session)

    def describe(self) -> dict[str, str | int]:
        """Return backend, index, dimension, kind of search, rows and bytes."""
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

    def probe(self) -> None:
        """Check that a large table has its HNSW index, and ask it in every way."""
        with self._table.connect() as session:
            rows = self._table.count(session)
            if rows >= INDEX_ROWS and not any(self._table.hnsw(session).values()):
                remedy = f"make it again with `mail-assets index rebuild {self.spec.name}`"
                raise self.error(f"no HNSW index, so each query reads {rows} vectors", remedy)
        super().probe()

    def drop(self) -> None:
        """Drop the table if it exists."""
        with self._table.connect() as session:
            self._table.execute(session, "DROP TABLE IF EXISTS {table}")

    def maintain(self, *, erase: bool = False) -> None:
        """Vacuum, which erases, and build the HNSW index from `INDEX_ROWS` rows on.

        `maintenance_work_mem` should hold the graph, about 1.2 KB per row of 384 numbers. Writers
        do not wait. Does nothing if another process is doing it.
        """
        with self._table.connect_apart() as session:
            # Does not wait: CREATE INDEX CONCURRENTLY waits for older snapshots, also of waiters.
            lock = "SELECT pg_try_advisory_lock(hashtext(%s)) AS mine"
            (row,) = session.execute(lock, [self._table.name])
            if not row["mine"]:
                return
            hnsw = self._table.hnsw(session)
            for broken in (name for name, valid in hnsw.items() if not valid):
                # Left by an interrupted build: useless, and it slows every write.
                drop = sql.SQL("DROP INDEX CONCURRENTLY {}")
                session.execute(drop.format(sql.Identifier(SCHEMA, broken)))
            if not any(hnsw.values()) and self._table.count(session) >= INDEX_ROWS:
                self._table.execute(
                    session,
                    "CREATE INDEX CONCURRENTLY ON {table} USING hnsw"
                    " (embedding halfvec_cosine_ops)",
                )
            self._table.execute(session, "VACUUM (ANALYZE) {table}")

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
            # Skips unchanged rows: a rewritten row gets new entries in all indexes.
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

    def _get(self, keys: Sequence[str], data: bool, among: Filter | None) -> list[Vector]:
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
            # Without iterative_scan, a filtered scan stops after ef_search rows, matching or not.
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
                # `+ 0` keeps out the HNSW index, which supports only the plain distance.
                exact=sql.SQL("+ 0" if exact else ""),
            )
        return [Match(row["key"], row["distance"], self._table.metadata(row)) for row in rows]

    def _find_values(
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

    def count_groups(self, fields: Sequence[str]) -> Counter[tuple[object, ...]]:
        """Count the rows by the values of some columns."""
        count = "SELECT {columns}, count(*) AS rows FROM {table} GROUP BY {columns}"
        with self._table.connect() as session:
            rows = self._table.execute(session, count, columns=identifiers(fields))
        return Counter({tuple(row[name] for name in fields): row["rows"] for row in rows})

    def _few_match(self, session: Session, condition: Composable, parameters: Parameters) -> bool:
        (row,) = self._table.execute(
            session,
            "SELECT count(*) FROM (SELECT FROM {table} WHERE {condition} LIMIT %s) AS matching",
            [*parameters, EXACT_ROWS + 1],
            condition=condition,
        )
        return int(row["count"]) <= EXACT_ROWS


class PgvectorBucket:
    """The schema `vectors` of one database."""

    def __init__(self, dsn: str) -> None:
        try:
            parts = conninfo_to_dict(dsn)
        except psycopg.ProgrammingError:
            # Its message quotes the DSN, password included.
            raise ValueError("the DSN is malformed: use postgresql://USER@HOST/DATABASE") from None
        self._dsn = dsn
        self.where = f"pgvector:{parts.get('dbname', '')}@{parts.get('host', '')}"
        self._connections = Connections(dsn, self.where)

    def index(self, spec: IndexSpec) -> PgvectorIndex:
        """Return the index of `spec`; nothing is read yet."""
        return PgvectorIndex(spec, self._dsn, self.where)

    def indexes(self) -> list[str]:
        """Return the names of the bucket's indexes."""
        with self._connections.transaction() as session:
            rows = session.execute(
                "SELECT relname FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid"
                " WHERE relnamespace = to_regnamespace(%s) AND relkind = 'r'"
                " AND attname = 'embedding' ORDER BY relname",
                [SCHEMA],
            )
            return [row["relname"] for row in rows]


class PgvectorTable:
    """Statements about one table, named as its index.

    `types` are its columns and their types, `name` is its qualified, quoted name.
    """

    def __init__(self, spec: IndexSpec, dsn: str, label: str) -> None:
        """`label` names the index in error messages."""
        self.types = _column_types(spec)
        self._spec = spec
        self._label = label
        self._connections = Connections(dsn, label)
        self.connect = self._connections.transaction
        self.connect_apart = self._connections.session
        self._identifier = sql.Identifier(SCHEMA, spec.name)
        self._names = identifiers(name for name in self.types if name != "embedding")
        self.name = self._identifier.as_string()

    def statement(self, template: str, **parts: Composable) -> sql.Composed:
        """Return a statement; {table} is this table, {names} its columns without the embedding."""
        return sql.SQL(template).format(table=self._identifier, names=self._names, **parts)

    def execute(
        self,
        session: Session,
        template: str,
        parameters: Parameters | None = None,
        **parts: Composable,
    ) -> list[DictRow]:
        """Run a statement; return its rows, if any."""
        cursor = session.execute(self.statement(template, **parts), parameters)
        return cursor.fetchall() if cursor.description else []

    def count(self, session: Session) -> int:
        """Return the number of rows."""
        (row,) = self.execute(session, "SELECT count(*) FROM {table}")
        return int(row["count"])

    def columns(self, session: Session) -> dict[str, str]:
        """Return the table's columns and their types; none if there is no table."""
        rows = session.execute(
            "SELECT attname, format_type(atttypid, atttypmod) AS type FROM pg_attribute"
            " WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped",
            [self.name],
        )
        return {row["attname"]: row["type"].rpartition(".")[2] for row in rows}

    def dimension(self, session: Session) -> int:
        """Return the dimension of the table's vectors."""
        kind = self.columns(session)["embedding"]
        return int(kind.removeprefix("halfvec(").removesuffix(")"))

    def hnsw(self, session: Session) -> dict[str, bool]:
        """Return the HNSW indexes by name, and whether each is complete."""
        rows = session.execute(
            "SELECT relname, indisvalid FROM pg_index"
            " JOIN pg_class ON pg_class.oid = indexrelid JOIN pg_am ON pg_am.oid = relam"
            " WHERE indrelid = to_regclass(%s) AND amname = 'hnsw'",
            [self.name],
        )
        return {row["relname"]: row["indisvalid"] for row in rows}

    def create(self, session: Session) -> None:
        """Create the extension if it is missing, the table and its btrees.

        Raises:
            VectorError: the extension is older than `MINIMUM_VERSION`.
        """
        session.execute("CREATE EXTENSION IF NOT EXISTS vector")
        self._check_version(session)
        columns = [
            # "C" compares bytes: faster, and independent of upgrades of the system's locales.
            sql.SQL("{} {}" + (' COLLATE "C"' if kind == "text" else "")).format(
                sql.Identifier(name), sql.SQL(kind)
            )
            for name, kind in self.types.items()
        ]
        self.execute(
            session,
            "CREATE TABLE {table} ({columns}, PRIMARY KEY (key))",
            columns=sql.SQL(", ").join(columns),
        )
        if self._spec.dimension <= PLAIN_DIMENSION:
            # Stored in the row: an exact scan would have to read each value from a TOAST table.
            self.execute(session, "ALTER TABLE {table} ALTER embedding SET STORAGE PLAIN")
        for name in self._spec.fields:
            self.execute(session, "CREATE INDEX ON {table} ({name})", name=sql.Identifier(name))

    def row(self, vector: Vector) -> list[object]:
        """Return a vector as a row for binary COPY, in the order of `types`."""
        row: list[object] = [vector.key, HalfVector(vector.values)]
        for name, kind in list(self.types.items())[2:]:
            value = vector.metadata.get(name)
            # Binary COPY does not convert: an int is no double precision.
            convert = {"jsonb": Jsonb, "double precision": float, "text": str}[kind]
            row.append(None if value is None else convert(value))
        return row

    def metadata(self, row: Mapping[str, Any]) -> Metadata:
        """Return a row's metadata, without NULLs and columns that were not read."""
        names = (*self._spec.fields, *self._spec.non_filterable)
        return {name: restore_int(row[name]) for name in names if row.get(name) is not None}

    def _check_version(self, session: Session) -> None:
        query = "SELECT extversion FROM pg_extension WHERE extname = 'vector'"
        (row,) = session.execute(query).fetchall()
        version = tuple(int(part) for part in row["extversion"].split(".")[:2])
        if version < MINIMUM_VERSION:
            raise VectorError(
                f"{self._label}: pgvector is {row['extversion']}, 0.8 is needed; "
                "install a newer one and run ALTER EXTENSION vector UPDATE"
            )


def identifiers(names: Iterable[str]) -> Composable:
    """Return quoted names with commas between them."""
    return sql.SQL(", ").join(map(sql.Identifier, names))


def _column_types(spec: IndexSpec) -> dict[str, str]:
    kinds = {"string": "text", "number": "double precision"}
    return {
        "key": "text",
        "embedding": f"halfvec({spec.dimension})",
        **{name: kinds[kind] for name, kind in spec.fields.items()},
        **dict.fromkeys(spec.non_filterable, "jsonb"),
    }


class Connections:
    """Connections to one server; one stays open, so that a query need not connect.

    One thread uses a connection at a time. `label` names the index in error messages.
    """

    def __init__(self, dsn: str, label: str) -> None:
        self._dsn = dsn
        self._label = label
        self._idle: SimpleQueue[Session] = SimpleQueue()
        weakref.finalize(self, _close_all, self._idle)

    @contextmanager
    def transaction(self) -> Iterator[Session]:
        """Open a transaction on the kept connection, or on a new one while that is in use."""
        with _postgres_errors(self._label):
            session = self._take() or self._open()
            try:
                with session.transaction():
                    yield session
            finally:
                self._keep(session)

    @contextmanager
    def session(self) -> Iterator[Session]:
        """Open a separate connection in autocommit mode."""
        with _postgres_errors(self._label), self._open() as session:
            yield session

    def _open(self) -> Session:
        session = MailConnection.connect(
            self._dsn,
            row_factory=dict_row,
            autocommit=True,
            # A prepared statement could get one plan for all filters and row counts.
            prepare_threshold=None,
            fallback_application_name="mail_assets vectors",
        )
        begin_session(session)
        try:
            _check_schema(session, self._label)
        except BaseException:
            session.close()
            raise
        return session

    def _take(self) -> Session | None:
        try:
            session = self._idle.get_nowait()
        except Empty:
            return None
        try:
            session.execute("")
        except psycopg.OperationalError:  # the server was restarted
            session.close()
            return None
        return session

    def _keep(self, session: Session) -> None:
        if session.closed or not self._idle.empty():
            session.close()
        else:
            self._idle.put(session)


@contextmanager
def _postgres_errors(label: str) -> Iterator[None]:
    try:
        yield
    except (UndefinedTable, InvalidSchemaName) as error:
        raise missing_index(label) from error
    except psycopg.Error as error:
        raise VectorError(f"{label}: {error}; check the DSN, the server and its log") from error


def _close_all(sessions: SimpleQueue[Session]) -> None:
    while not sessions.empty():
        sessions.get().close()


def _check_schema(session: Session, label: str) -> None:
    """Check that the schema, if it exists, belongs to this installation."""
    comment, ours = _read_comment(session)
    theirs = comment.removeprefix(_MARK)
    if not comment.startswith(_MARK) or theirs == ours:
        return
    gone = session.execute("SELECT FROM pg_namespace WHERE nspname = %s", [theirs]).rowcount == 0
    if gone:
        return
    raise VectorError(
        f"{label}: the schema {SCHEMA} has the vectors of the installation in the schema {theirs}, "
        f"this one is in the schema {ours}: give one of them a database of its own, or another "
        "place for its vectors (MAIL_VECTORS)"
    )


def _create_schema(session: Session, label: str) -> None:
    """Create the schema if it is missing, and mark it as ours in its comment if it has no mark.

    A comment by somebody else stays.

    Raises:
        VectorError: it belongs to another installation.
    """
    name = sql.Identifier(SCHEMA)
    owner = "SELECT pg_has_role(nspowner, 'usage') AS mine FROM pg_namespace WHERE nspname = %s"
    row = session.execute(owner, [SCHEMA]).fetchone()
    if row is None:  # IF NOT EXISTS requires the privilege even if the schema exists
        session.execute(sql.SQL("CREATE SCHEMA {}").format(name))
    _check_schema(session, label)
    comment, ours = _read_comment(session)
    mark = f"{_MARK}{ours}"
    is_ours = not comment or comment.startswith(_MARK)
    if comment != mark and is_ours and (row is None or row["mine"]):
        session.execute(sql.SQL("COMMENT ON SCHEMA {} IS {}").format(name, sql.Literal(mark)))


def _read_comment(session: Session) -> tuple[str, str]:
    (row,) = session.execute(
        "SELECT coalesce(obj_description(to_regnamespace(%s), 'pg_namespace'), '') AS comment,"
        " coalesce(current_schema(), '') AS ours",
        [SCHEMA],
    )
    return row["comment"], row["ours"]


def _condition(filter: Filter | None) -> tuple[Composable, Parameters]:
    return (sql.SQL("true"), []) if filter is None else postgres_sql(filter)


def postgres_sql(filter: Filter) -> tuple[Composable, list[object]]:
    """Compile a checked filter to a Postgres condition and its parameters.

    Columns have the fields' names and are of type text or double precision.
    """
    parameters: list[object] = []
    return _compile(nest_conditions(filter), parameters), parameters


def _compile(node: Nested, parameters: list[object]) -> Composable:
    ((name, condition),) = node.items()
    if name in LOGIC_SQL:
        parts = [_compile(part, parameters) for part in cast(Sequence[Nested], condition)]
        return sql.SQL("({})").format(sql.SQL(LOGIC_SQL[name]).join(parts))
    ((op, operand),) = cast(Nested, condition).items()
    column = sql.Identifier(name)
    if op == "$exists":
        return sql.SQL("{} IS NOT NULL" if operand else "{} IS NULL").format(column)
    if op in ("$in", "$nin"):
        parameters.append([_parameter(value) for value in cast(Sequence[object], operand)])
        return sql.SQL("{} = ANY(%s)" if op == "$in" else "{} <> ALL(%s)").format(column)
    parameters.append(_parameter(operand))
    return sql.SQL(f"{{}} {COMPARISONS_SQL[op]} %s").format(column)


def _parameter(value: object) -> object:
    return float(value) if isinstance(value, int) else value
