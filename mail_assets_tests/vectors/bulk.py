"""Thousands of chunks without mail, made inside Postgres and NumPy, written by processes."""

from __future__ import annotations

from dataclasses import dataclass
from multiprocessing.synchronize import Barrier
from pathlib import Path

import numpy as np
import psycopg

from mail_assets.indexes.vectors import FIELDS, NON_FILTERABLE, MailVectors
from mail_assets.month import ListMonth
from mail_assets.postgres.database import Database
from mail_assets.steps.fill_index import write_vectors
from mail_assets.store.embeddings import file_key, write_embeddings
from mail_assets.store.open import open_store
from mail_assets.tables.partitions import Partition, State, write_state
from mail_assets.vectors.index import Floats, IndexSpec, VectorIndex
from mail_assets.workspace import Workspace
from mail_assets_tests.vectors.processes import Place

SPEC = IndexSpec("bulk", 8, FIELDS, NON_FILTERABLE)
ENCODER = "an-encoder-of-8"
LIST = "bulk"

_MESSAGES = """
insert into messages
select %(list)s, %(month)s, 'm' || n || '@' || %(month)s, 0, '', '',
       timestamptz '2024-03-04' + n * interval '1 minute', 'date', '', '', 'subject ' || n,
       '', 'sender-' || n %% 100 || '@example.org', '{}', '{}', '{}', '{}', '{}', '', 'plain', '',
       '[]', '[]', '{}', '{}', ''
  from generate_series(1, %(count)s) n"""

_CHUNKS = """
insert into chunks
select substr(encode(sha256(convert_to(month || message_id, 'UTF8')), 'hex'), 1, 32) || '#0',
       list, month, message_id, 0, 0, '', '{}', 1, sha256(convert_to(message_id, 'UTF8'))
  from messages where list = %(list)s and month = %(month)s"""


@dataclass(frozen=True)
class Bulk:
    """Places that another process can open: database, bucket, store."""

    home: Path
    dsn: str
    place: Place

    @property
    def index(self) -> VectorIndex:
        return self.place.open().index(SPEC)

    @property
    def mail_index(self) -> MailVectors:
        return MailVectors(self.index, self.place.url, "bulk", "exact", ENCODER)

    def fill(self, month: str, count: int) -> None:
        """Make `count` chunks of one month and their embeddings."""
        list_month = ListMonth(LIST, month)
        with Database(self.home, self.dsn).connect("test") as connection:
            parameters = {**list_month.columns, "count": count}
            connection.execute(_MESSAGES, parameters)
            connection.execute(_CHUNKS, parameters)
            vectors = {h: values_of(h) for _, h in self._hashes(connection, month)}
            store = open_store(self.home / "store")
            key = file_key(list_month, ENCODER)
            write_embeddings(store, key, vectors, ENCODER)
            state = State(f"chunks encoder {ENCODER}", "digest", {})
            write_state(connection, Partition("embeddings", list_month), state)
            write_state(connection, Partition("messages", list_month), State("", "digest", {}))

    def expected(self, month: str) -> dict[str, Floats]:
        with Database(self.home, self.dsn).connect("test") as connection:
            return {key: values_of(h) for key, h in self._hashes(connection, month)}

    def write(self, month: str) -> None:
        with Database(self.home, self.dsn).connect("test") as connection:
            workspace = Workspace(connection, open_store(self.home / "store"), lambda _: None)
            write_vectors(workspace, ListMonth(LIST, month), self.mail_index)

    def _hashes(self, connection: psycopg.Connection, month: str) -> list[tuple[str, bytes]]:
        return connection.execute(
            "select key, text_hash from chunks where month = %s", [month]
        ).fetchall()


def values_of(text_hash: bytes) -> Floats:
    """Return a unit vector that belongs to a hash alone."""
    values = np.frombuffer(text_hash, np.uint8)[:8].astype(np.float32) - 127.5
    unit: Floats = values / np.linalg.norm(values)
    return unit


def write_one(bulk: Bulk, month: str, barrier: Barrier) -> None:
    """Write one month when all other processes are about to: the first makes the index."""
    bulk.place.open()
    barrier.wait()
    bulk.write(month)
