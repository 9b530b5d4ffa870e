"""Encode the texts of one month that nobody has encoded yet, and keep their vectors.

A vector is looked up by the hash of its text: in the month's own file, in the parts a
killed run has left, and in the files of other months that hold the same text.
"""

import time
from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt
import psycopg

from mail_assets.steps.outcome import Log, Outcome, StepError, rate
from mail_assets.store.chunks import Document, months_with, read_documents
from mail_assets.store.embeddings import (
    Vectors,
    file_key,
    parts_prefix,
    read_vectors,
    write_vectors,
)
from mail_assets.store.objects import ObjectStore
from mail_assets.store.partitions import (
    Counts,
    Partition,
    State,
    digest_of,
    locked,
    read_state,
    write_state,
)
from mail_assets.text.chunking import document

ASSET = "embeddings"

#: Texts to a part: 10 s of work lost at most on a slow core, and 1.5 MB a file.
PART = 1_000


class Encoder(Protocol):
    """What this step needs of an encoder."""

    @property
    def fingerprint(self) -> str:
        """Identify everything that decides what a vector means."""

    def encode_documents(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return one vector per text."""


def encode_month(
    connection: psycopg.Connection,
    store: ObjectStore,
    encoder: Encoder,
    list: str,
    month: str,
    log: Log,
) -> Outcome:
    """Make the month's file hold the vector of each of its texts, and nothing else.

    A file that holds them already is not written again.

    Raises:
        StepError: chunks was never materialized for this month.
    """
    began = time.monotonic()
    partition = Partition(ASSET, list, month)
    key = file_key(list, month, encoder.fingerprint)
    with locked(connection, partition):
        chunks = read_state(connection, Partition("chunks", list, month))
        if chunks is None:
            raise StepError(f"{list} {month}: no chunks yet; materialize chunks first")
        inputs = f"{chunks.digest} encoder {encoder.fingerprint}"
        state = read_state(connection, partition)
        if state and state.inputs == inputs and (store.exists(key) or not state.counts["texts"]):
            counts = {**state.counts, "encoded": 0, "reused": state.counts["texts"]}
            return Outcome(counts, state.digest, False)
        month_file = _MonthFile(connection, store, encoder, list, month, log)
        counts, written = month_file.write(read_documents(connection, list, month))
        seconds = time.monotonic() - began
        counts |= {
            "seconds": round(seconds, 3),
            "chunks_per_second": rate(counts["encoded"], seconds),
        }
        digest = digest_of(inputs)
        write_state(connection, partition, State(inputs, digest, counts))
    return Outcome(counts, digest, written)


class _MonthFile:
    """One month's file in the making."""

    def __init__(
        self,
        connection: psycopg.Connection,
        store: ObjectStore,
        encoder: Encoder,
        list: str,
        month: str,
        log: Log,
    ) -> None:
        self._connection, self._store, self._encoder = connection, store, encoder
        self._list, self._month, self._log = list, month, log
        self._key = file_key(list, month, encoder.fingerprint)
        self._parts = parts_prefix(list, month, encoder.fingerprint)

    def write(self, documents: Sequence[Document]) -> tuple[Counts, bool]:
        """Find or make the vector of each document, write the file, sweep the parts.

        Return the figures, and whether the file changed.
        """
        wanted = {d.text_hash for d in documents}
        held = read_vectors(self._store, self._key)
        vectors = self._known(wanted, held)
        missing = [d for d in documents if d.text_hash not in vectors]
        reused = len(vectors)
        vectors |= self._encode(missing)
        changed = vectors.keys() != held.keys()
        if changed and vectors:
            write_vectors(self._store, self._key, vectors, self._encoder.fingerprint)
        elif changed:
            self._store.delete(self._key)
        for key in [*self._store.keys(self._parts)]:
            self._store.delete(key)
        counts: Counts = {
            "texts": len(documents),
            "tokens": sum(d.tokens for d in documents),
            "encoded": len(missing),
            "reused": reused,
            "bytes": self._store.size(self._key) if vectors else 0,
        }
        return counts, changed

    def _known(self, wanted: set[bytes], held: Vectors) -> Vectors:
        """Return the vectors that exist: here, in a killed run's parts, in other months."""
        vectors = {text_hash: held[text_hash] for text_hash in wanted & held.keys()}
        for key in [*self._store.keys(self._parts)]:
            vectors |= read_vectors(self._store, key, wanted)
        missing = wanted - vectors.keys()
        if not missing:
            return vectors
        for other in months_with(self._connection, self._list, self._month, missing):
            key = file_key(*other, self._encoder.fingerprint)
            vectors |= read_vectors(self._store, key, missing)
            missing -= vectors.keys()
            if not missing:
                break
        return vectors

    def _encode(self, documents: list[Document]) -> Vectors:
        """Encode, the longest first, and keep what is done as parts."""
        todo = sorted(documents, key=lambda d: (-d.tokens, d.text_hash))
        tokens = sum(d.tokens for d in todo)
        vectors: Vectors = {}
        done, began = 0, time.monotonic()
        for start in range(0, len(todo), PART):
            part = todo[start : start + PART]
            matrix = self._encoder.encode_documents([document(d.subject, d.text) for d in part])
            fresh = dict(zip((d.text_hash for d in part), matrix, strict=True))
            vectors |= fresh
            done += sum(d.tokens for d in part)
            if len(vectors) < len(todo):
                name = f"{self._parts}{part[0].text_hash.hex()[:16]}.parquet"
                write_vectors(self._store, name, fresh, self._encoder.fingerprint)
                seconds = time.monotonic() - began
                self._log(
                    f"{self._list} {self._month}: {len(vectors)} of {len(todo)} chunks encoded, "
                    f"{len(vectors) / seconds:.0f}/s, {(tokens - done) * seconds / done:.0f} s left"
                )
        return vectors
