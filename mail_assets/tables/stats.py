"""What is stored, per list: the figures of `mail-assets stats`."""

from collections.abc import Iterable
from typing import Any

import psycopg
from psycopg.rows import dict_row

from mail_assets.postgres.statements import statement
from mail_assets.tables.conversations import count_threads


def read_stats(
    connection: psycopg.Connection, lists: Iterable[str], vectors: str, words: str
) -> dict[str, Any]:
    """Return {"lists": {LIST: figures}, "threads": number}; both indexes as in the manifest."""
    with connection.cursor(row_factory=dict_row) as cursor:
        parameters = {"lists": [*lists], "vectors_name": vectors, "words_name": words}
        rows = cursor.execute(statement("stats", "lists"), parameters).fetchall()
    return {"lists": {row.pop("list"): row for row in rows}, "threads": count_threads(connection)}
