"""Vectors in the database: a bounded cache of texts encoded by searches, and encoder probes.

Also reads which files of embeddings are in use: the encoders of the indexes, and the times when
chunks last changed.
"""

import datetime as dt
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import psycopg
from psycopg.types.json import Json

from mail_assets.month import ListMonth
from mail_assets.postgres.statements import planned_once, read_column, statement

#: Most vectors in the cache; the oldest are dropped first. 200 MB with 384 dimensions.
MOST_KEPT = 100_000

Vector = npt.NDArray[np.float32]

#: Stored form of a vector: float32, little-endian.
_STORED = np.dtype("<f4")


class WantedChunks(NamedTuple):
    """The primary key of a row of messages, and the number of its first chunks to read."""

    month: ListMonth
    message_id: str
    variant: int
    first: int


class CandidateChunk(NamedTuple):
    """A chunk of the wanted message at index `place`; it has the text if no vector is cached."""

    place: int
    key: str
    text_hash: bytes
    vector: Vector | None
    subject: str
    text: str


def read_encoded(
    connection: psycopg.Connection, fingerprint: str, hashes: Collection[bytes]
) -> dict[bytes, Vector]:
    """Return text hash -> vector for the texts that are in the cache."""
    parameters = {"fingerprint": fingerprint, "hashes": [*hashes]}
    rows = connection.execute(statement("encoded_texts", "read"), parameters).fetchall()
    return {text_hash: _read_vector(vector) for text_hash, vector in rows}


def read_candidate_chunks(
    connection: psycopg.Connection,
    fingerprint: str,
    wanted: Sequence[WantedChunks],
    keys: Collection[str],
) -> list[CandidateChunk]:
    """Return the first chunks of some messages, and their chunks with one of `keys`."""
    parameters = {
        "fingerprint": fingerprint,
        # psycopg writes JSON seven times as fast as arrays
        "wanted_lists": Json([one.month.list_name for one in wanted]),
        "wanted_months": Json([one.month.month for one in wanted]),
        "wanted_message_ids": Json([one.message_id for one in wanted]),
        "wanted_variants": Json([one.variant for one in wanted]),
        "wanted_firsts": Json([one.first for one in wanted]),
        "wanted_keys": Json([*keys]),
    }
    # binary: as text, vectors are twice as long
    with connection.pipeline(), planned_once(connection):
        found = connection.execute(statement("encoded_texts", "chunks"), parameters, binary=True)
    return [
        CandidateChunk(
            place - 1, key, text_hash, vector and _read_vector(vector), subject or "", text or ""
        )
        for place, key, text_hash, vector, subject, text in found.fetchall()
    ]


def keep_encoded(
    connection: psycopg.Connection,
    fingerprint: str,
    vectors: Mapping[bytes, Vector],
    most: int = MOST_KEPT,
) -> None:
    """Add vectors of texts that are in a chunk to the cache; drop the oldest beyond `most`."""
    parameters = {
        "fingerprint": fingerprint,
        "hashes": [*vectors],
        "vectors": [vector.astype(_STORED).tobytes() for vector in vectors.values()],
    }
    with connection.transaction():
        connection.execute(statement("encoded_texts", "keep"), parameters)
        connection.execute(statement("encoded_texts", "bound"), {"most": most})


def sweep_encoded(connection: psycopg.Connection) -> None:
    """Drop the vectors of texts that are in no chunk."""
    connection.execute(statement("encoded_texts", "sweep"))


def drop_encoded(connection: psycopg.Connection, fingerprint: str) -> None:
    """Drop all vectors of an encoder."""
    connection.execute(statement("encoded_texts", "drop"), {"fingerprint": fingerprint})


def _read_vector(stored: bytes) -> Vector:
    return np.frombuffer(stored, _STORED).astype(np.float32, copy=False)


class EncoderProbe(NamedTuple):
    """A vector, and the machine that made it."""

    vector: npt.NDArray[np.float32]
    machine: str


def record_probe(
    connection: psycopg.Connection, fingerprint: str, probe: EncoderProbe
) -> EncoderProbe:
    """Record the probe of an encoder if it has none; return the recorded one."""
    parameters = {
        "fingerprint": fingerprint,
        "vector": probe.vector.astype(_STORED).tobytes(),
        "machine": probe.machine,
    }
    connection.execute(statement("encoded_texts", "record_probe"), parameters)
    return read_probe(connection, fingerprint) or probe  # it may have been deleted meanwhile


def read_probe(connection: psycopg.Connection, fingerprint: str) -> EncoderProbe | None:
    """Return the probe of an encoder, None if nothing was encoded with it."""
    parameters = {"fingerprint": fingerprint}
    row = connection.execute(statement("encoded_texts", "read_probe"), parameters).fetchone()
    if row is None:
        return None
    return EncoderProbe(_read_vector(row[0]), row[1])


def read_used_fingerprints(connection: psycopg.Connection) -> set[str]:
    """Return the fingerprints of all indexes that are not retired."""
    return {*read_column(connection, statement("encoded_texts", "used_fingerprints"))}


def read_chunk_times(connection: psycopg.Connection) -> dict[ListMonth, dt.datetime]:
    """Return the time at which the chunks of each month last changed."""
    rows = connection.execute(statement("encoded_texts", "chunk_times")).fetchall()
    return {ListMonth(name, month): at for name, month, at in rows}
