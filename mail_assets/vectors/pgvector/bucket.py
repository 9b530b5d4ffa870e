"""A bucket of pgvector tables: the schema `vectors` of one database."""

from __future__ import annotations

import psycopg
from psycopg.conninfo import conninfo_to_dict

from mail_assets.vectors.pgvector.connections import Connections
from mail_assets.vectors.pgvector.index import PgvectorIndex
from mail_assets.vectors.pgvector.schema import SCHEMA
from mail_assets.vectors.spec import IndexSpec


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
