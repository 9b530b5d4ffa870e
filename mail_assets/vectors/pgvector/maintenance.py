"""Maintenance of a table of vectors in Postgres: VACUUM, and its HNSW index."""

from __future__ import annotations

from psycopg import sql

from mail_assets.vectors.pgvector.schema import SCHEMA
from mail_assets.vectors.pgvector.table import PgvectorTable

# 100,000 x 384: an exact query takes 60 ms, an HNSW one 1 ms.
INDEX_ROWS = 50_000


def maintain_table(table: PgvectorTable) -> None:
    """Vacuum, and from `INDEX_ROWS` rows on build the HNSW index beside running writes.

    It wants `maintenance_work_mem` to hold the graph, about 1.2 KB a row of 384. Where another
    process is at it, nothing happens.
    """
    with table.connect_apart() as session:
        # Try, not wait: a concurrent build waits for every older snapshot, the waiter's too.
        lock = "SELECT pg_try_advisory_lock(hashtext(%s)) AS mine"
        (row,) = session.execute(lock, [table.name])
        if not row["mine"]:
            return
        hnsw = table.hnsw(session)
        for broken in (name for name, valid in hnsw.items() if not valid):
            # A concurrent build that was interrupted: of no use, and it slows every write.
            drop = sql.SQL("DROP INDEX CONCURRENTLY {}")
            session.execute(drop.format(sql.Identifier(SCHEMA, broken)))
        if not any(hnsw.values()) and table.count(session) >= INDEX_ROWS:
            table.execute(
                session,
                "CREATE INDEX CONCURRENTLY ON {table} USING hnsw (embedding halfvec_cosine_ops)",
            )
        table.execute(session, "VACUUM (ANALYZE) {table}")
