"""The table of a vector index in Postgres: its columns, its creation and the connections to it.

`embedding` is halfvec (2 bytes a number, relative error up to 5e-4), a filterable field is a text
or double precision column with a btree, the rest is jsonb.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from pgvector import HalfVector
from psycopg import sql
from psycopg.rows import DictRow
from psycopg.sql import Composable
from psycopg.types.json import Jsonb

from mail_assets.vectors.errors import VectorError
from mail_assets.vectors.pgvector.connections import Connections, Session
from mail_assets.vectors.pgvector.schema import SCHEMA, create_schema
from mail_assets.vectors.spec import IndexSpec
from mail_assets.vectors.vector import Metadata, Vector, restore_int

Parameters: TypeAlias = list[object]

MINIMUM_VERSION = (0, 8)  # hnsw.iterative_scan
# Wider embeddings may not fit a page beside 2 KB of fields and a key.
PLAIN_DIMENSION = 2_000


class PgvectorTable:
    """One table of the schema `vectors`, named as its index.

    `types` are its columns and their types, `name` is its qualified name, quoted.
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
        """Return a statement; {table} is this one, {names} all its columns but the embedding."""
        return sql.SQL(template).format(table=self._identifier, names=self._names, **parts)

    def execute(
        self,
        session: Session,
        template: str,
        parameters: Parameters | None = None,
        **parts: Composable,
    ) -> list[DictRow]:
        """Run a statement; return its rows, if it is of the kind to have any."""
        cursor = session.execute(self.statement(template, **parts), parameters)
        return cursor.fetchall() if cursor.description else []

    def count(self, session: Session) -> int:
        """Return the number of rows."""
        (row,) = self.execute(session, "SELECT count(*) FROM {table}")
        return int(row["count"])

    def columns(self, session: Session) -> dict[str, str]:
        """Return the table's columns and their types, none where there is no table."""
        rows = session.execute(
            "SELECT attname, format_type(atttypid, atttypmod) AS type FROM pg_attribute"
            " WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped",
            [self.name],
        )
        return {row["attname"]: row["type"].rpartition(".")[2] for row in rows}

    def dimension(self, session: Session) -> int:
        """Return how many numbers each vector of the table has."""
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

    def claim(self, session: Session) -> None:
        """Create the schema where it is missing, and mark it as this installation's.

        Raises:
            VectorError: it is another installation's.
        """
        create_schema(session, self._label)

    def create(self, session: Session) -> None:
        """Create the extension where it is missing, the table, its btrees.

        Raises:
            VectorError: where the extension is older than `MINIMUM_VERSION`.
        """
        session.execute("CREATE EXTENSION IF NOT EXISTS vector")
        self._check_version(session)
        columns = [
            # "C" compares bytes: quicker, and the same after an upgrade of the system's locales.
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
            # Beside the row, not in a TOAST table that an exact scan has to look up each time.
            self.execute(session, "ALTER TABLE {table} ALTER embedding SET STORAGE PLAIN")
        for name in self._spec.fields:
            self.execute(session, "CREATE INDEX ON {table} ({name})", name=sql.Identifier(name))

    def row(self, vector: Vector) -> list[object]:
        """Return a vector as a row for binary COPY, in the order of `types`."""
        row: list[object] = [vector.key, HalfVector(vector.values)]
        for name, kind in list(self.types.items())[2:]:
            value = vector.metadata.get(name)
            # Binary COPY converts nothing: an int is not a double precision there.
            convert = {"jsonb": Jsonb, "double precision": float, "text": str}[kind]
            row.append(None if value is None else convert(value))
        return row

    def metadata(self, row: Mapping[str, Any]) -> Metadata:
        """Return a row's metadata, without what is NULL or was not asked for."""
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
