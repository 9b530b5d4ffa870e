"""What the files of embeddings are for: the encoders in use, and when chunks last changed."""

import datetime as dt

import psycopg

from mail_assets.month import ListMonth
from mail_assets.postgres.statements import statement


def read_used_fingerprints(connection: psycopg.Connection) -> set[str]:
    """Return the fingerprints of all indexes that were filled and not retired."""
    rows = connection.execute(statement("embedding_files", "fingerprints")).fetchall()
    return {fingerprint for (fingerprint,) in rows}


def read_chunk_times(connection: psycopg.Connection) -> dict[ListMonth, dt.datetime]:
    """Return when the chunks of each month last changed."""
    rows = connection.execute(statement("embedding_files", "chunked_at")).fetchall()
    return {ListMonth(name, month): at for name, month, at in rows}
