"""Encode the texts of one month that have no vector yet, and keep the vectors in a file.

A vector is looked up by the hash of its text: in the month's own file, in the parts that a killed
run left, in the files of other months, and among the texts that searches have encoded. Memory
holds the hashes of the month, and the texts and vectors of one part. Processes that encode on one
machine take turns, part by part.
"""

import time
from collections.abc import Sequence
from itertools import islice

from mail_assets.indexes.encoder_probe import Encoder
from mail_assets.month import ListMonth
from mail_assets.store.embeddings import (
    EmbeddingsFileError,
    copy_embeddings,
    file_key,
    find_fault,
    merge_embeddings,
    part_key,
    parts_prefix,
    read_contents,
    write_embeddings,
)
from mail_assets.tables.chunks import TextSize, find_encoded, read_documents, read_text_sizes
from mail_assets.tables.encoded_texts import read_encoded
from mail_assets.tables.partitions import (
    Counts,
    Partition,
    State,
    digest_of,
    locked,
    read_state,
    write_state,
)
from mail_assets.text.chunking import build_document
from mail_assets.workspace import Outcome, StepError, Workspace, rate, read_made

ASSET = "embeddings"

#: Texts per part: a file of 1.5 MB. A killed run loses at most 10 s of work on a slow core.
PART = 1_000


def encode_chunks(
    workspace: Workspace, month: ListMonth, encoder: Encoder, *, rebuild: bool = False
) -> Outcome:
    """Write a file with the vector of each text of the month, and no other vectors.

    A file that already has exactly these is not written. With `rebuild` the file is read, and
    replaced if it is damaged. An intact file is kept even then: a vector depends only on its text
    and the encoder, and encoding may be slow or cost money.

    Raises:
        StepError: chunks was never materialized for this month, or the file has vectors of another
            dimension than the encoder returns now. Nothing was encoded then.
    """
    began = time.monotonic()
    connection, store = workspace.connection, workspace.store
    partition = Partition(ASSET, month)
    key = file_key(month, encoder.fingerprint)
    with locked(connection, partition):
        chunks = read_made(connection, "chunks", month)
        inputs = embedding_inputs(chunks, encoder.fingerprint)
        state = read_state(connection, partition)
        if rebuild:
            _delete_damaged(workspace, month, encoder.fingerprint)
        is_there = store.exists(key) or bool(state and not state.counts["texts"])
        if state and state.inputs == inputs and is_there and not rebuild:
            counts = {**state.counts, "encoded": 0, "reused": state.counts["texts"]}
            return Outcome(counts, state.digest, False)
        month_file = _MonthFile(workspace, month, encoder)
        counts, written = month_file.write(read_text_sizes(connection, month))
        seconds = time.monotonic() - began
        counts |= {
            "seconds": round(seconds, 3),
            "chunks_per_second": rate(counts["encoded"], seconds),
        }
        digest = digest_of(inputs)
        write_state(connection, partition, State(inputs, digest, counts), written)
    return Outcome(counts, digest, written)


def _delete_damaged(workspace: Workspace, month: ListMonth, fingerprint: str) -> None:
    store = workspace.store
    parts = [*store.keys(parts_prefix(month, fingerprint))]
    for key in (file_key(month, fingerprint), *parts):
        if store.exists(key) and (fault := find_fault(store, key, fingerprint)):
            workspace.log(f"{month}: {store.url(key)} {fault}: it is made again")
            store.delete(key)


def embedding_inputs(chunks: State, encoder: str) -> str:
    """Return the version of the inputs of a month's embeddings; `encoder` is a fingerprint."""
    return f"{chunks.digest} encoder {encoder}"


class _MonthFile:
    def __init__(self, workspace: Workspace, month: ListMonth, encoder: Encoder) -> None:
        self._connection, self._store = workspace.connection, workspace.store
        self._log, self._month, self._encoder = workspace.log, month, encoder
        self._key = file_key(month, encoder.fingerprint)
        self._parts = parts_prefix(month, encoder.fingerprint)
        self._waited = False

    def write(self, texts: Sequence[TextSize]) -> tuple[Counts, bool]:
        """Find or encode each text's vector, write the file; return figures, and if it changed."""
        wanted = [text.text_hash for text in texts]
        held, dimension = read_contents(self._store, self._key)
        if wanted and not dimension:
            dimension = self._encoder.dimension
        missing = {*wanted}.difference(held, self._kept(dimension))
        missing -= self._copy(missing, dimension)
        if missing and dimension != self._encoder.dimension:
            raise StepError(
                f"{self._month}: {self._store.url(self._key)} has vectors of {dimension} numbers, "
                f"but the encoder now returns {self._encoder.dimension}. Serve the former model "
                "again, set MAIL_ENCODER to another name if the model is a new one, or delete the "
                "file if it is wrong"
            )
        self._encode([text for text in texts if text.text_hash in missing])
        changed = wanted != [*held]
        parts = [*self._store.keys(self._parts)]
        if changed and wanted:
            sources = [self._key, *parts] if held else parts
            merge_embeddings(self._store, sources, wanted, self._key, self._encoder.fingerprint)
        elif changed:
            self._store.delete(self._key)
        for part in parts:
            self._store.delete(part)
        counts: Counts = {
            "texts": len(texts),
            "tokens": sum(text.tokens for text in texts),
            "encoded": len(missing),
            "reused": len(texts) - len(missing),
            "bytes": self._store.size(self._key) if wanted else 0,
        }
        return counts, changed

    def _kept(self, dimension: int) -> set[bytes]:
        """Return hashes of texts that a killed run encoded; delete parts of another dimension."""
        kept: set[bytes] = set()
        for part in [*self._store.keys(self._parts)]:
            contents = read_contents(self._store, part)
            if contents.dimension == dimension:
                kept.update(contents.hashes)
            else:
                self._store.delete(part)
        return kept

    def _copy(self, missing: set[bytes], dimension: int) -> set[bytes]:
        """Copy vectors from other months and from searches into parts; return their hashes."""
        if not missing:
            return set()
        encoder, copied = self._encoder.fingerprint, set[bytes]()
        found = find_encoded(self._connection, self._month, missing, encoder)
        for other, texts in found.items():
            source = file_key(other, encoder)
            try:
                copied |= copy_embeddings(self._store, source, texts, self._parts, dimension)
            except EmbeddingsFileError as error:
                self._log(f"{self._month}: the vectors of {other} cannot be reused: {error}")
        searched = read_encoded(self._connection, encoder, missing - copied)
        vectors = {text: one for text, one in searched.items() if one.size == dimension}
        if vectors:
            write_embeddings(self._store, part_key(self._parts, min(vectors)), vectors, encoder)
        return copied.union(vectors)

    def _encode(self, texts: Sequence[TextSize]) -> None:
        """Encode part by part, by ranges of hashes; a part is stored before the next one starts."""
        hashes = [text.text_hash for text in texts]
        left = sum(text.tokens for text in texts)
        documents = read_documents(self._connection, self._month, hashes)
        began, tokens = time.monotonic(), left
        for start in range(0, len(texts), PART):
            part = [*islice(documents, PART)]
            inputs = [build_document(d.subject, d.text) for d in part]
            with self._encoder.wait_turn(self._report_wait):
                matrix = self._encoder.encode_documents(inputs)
            fresh = dict(zip((d.text_hash for d in part), matrix, strict=True))
            key = part_key(self._parts, hashes[start])
            write_embeddings(self._store, key, fresh, self._encoder.fingerprint)
            left -= sum(text.tokens for text in texts[start : start + PART])
            if left:
                self._progress(start + PART, len(texts), (tokens - left) / tokens, began)

    def _report_wait(self) -> None:
        if not self._waited:
            self._waited = True
            self._log(f"{self._month}: waiting for another process that is encoding")

    def _progress(self, done: int, texts: int, share: float, began: float) -> None:
        """Log the progress; `share` is the fraction of the tokens that is done."""
        seconds = time.monotonic() - began
        self._log(
            f"{self._month}: {done} of {texts} chunks encoded, "
            f"{done / seconds:.0f}/s, {seconds / share - seconds:.0f} s left"
        )
