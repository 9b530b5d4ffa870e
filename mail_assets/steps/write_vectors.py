"""Make one month's part of the vector index equal to its chunks (see index_month.py)."""

import time
from collections.abc import Iterator, Sequence

from mail_assets.indexes.month import MonthKeys, maintain_if_due, write_month
from mail_assets.indexes.vectors import MailIndex, vector_digest, vector_metadata
from mail_assets.month import ListMonth
from mail_assets.steps.outcome import Outcome, StepError, rate
from mail_assets.store.embeddings import file_key, read_embeddings
from mail_assets.store.objects import ObjectStore
from mail_assets.tables.chunks import ChunkFacts, read_facts
from mail_assets.tables.indexes import Manifest, mark_lost, read_manifest
from mail_assets.tables.partitions import (
    Counts,
    Partition,
    State,
    digest_of,
    locked,
    locked_index,
    read_state,
    write_state,
)
from mail_assets.vectors.index import Vector
from mail_assets.workspace import Workspace

ASSET = "vectors"


def write_vectors(workspace: Workspace, month: ListMonth, mail_index: MailIndex) -> Outcome:
    """Put what is new, delete what is stale; nothing when nothing has changed.

    Raises:
        StepError: embeddings was never materialized for this month with this encoder, lacks a
            text of its chunks, or has vectors of another dimension. Nothing was written then.
    """
    began = time.monotonic()
    connection, partition = workspace.connection, Partition(ASSET, month)
    index, part, encoder = mail_index.index, mail_index.part(month), mail_index.fingerprint
    with locked(connection, partition):
        embeddings = read_state(connection, Partition("embeddings", month))
        messages = read_state(connection, Partition("messages", month))
        if messages is None or embeddings is None or not embeddings.inputs.endswith(encoder):
            raise StepError(
                f"{month}: no embeddings of encoder {encoder} yet; materialize embeddings first"
            )
        with locked_index(connection, ASSET):
            index.ensure(before=lambda: mark_lost(connection, part.manifest))
        facts = {fact.key: fact for fact in read_facts(connection, month)}
        digests = {k: vector_digest(fact, month, encoder) for k, fact in facts.items()}
        manifest = read_manifest(connection, part)
        keys = MonthKeys(digests, manifest, mail_index.month_keys(month, manifest.keys()))
        changes = write_month(
            connection,
            part,
            keys,
            index,
            lambda keys: _vectors(workspace.store, month, mail_index, [facts[k] for k in keys]),
        )
        if changes.written:
            workspace.log(f"{month}: {changes.written} vectors written")
        seconds = time.monotonic() - began
        counts: Counts = {
            "chunks": len(facts),
            **changes._asdict(),
            "seconds": round(seconds, 3),
            "vectors_per_second": rate(changes.written, seconds),
        }
        digest = digest_of(
            part.manifest.index_name, *(f"{k} {d.hex()}" for k, d in digests.items())
        )
        inputs = vector_inputs(messages, embeddings, part.manifest)
        write_state(connection, partition, State(inputs, digest, counts), any(changes))
    if changes.written:
        maintain_if_due(workspace, index)
    return Outcome(counts, digest, any(changes))


def vector_inputs(messages: State, embeddings: State, manifest: Manifest) -> str:
    """Return what the vectors of a month are made from, and for which index.

    Of messages too: a vector carries sender, date and subject, which its text does not.
    """
    return f"{messages.digest} {embeddings.digest} {manifest.index_name}"


def _vectors(
    store: ObjectStore, month: ListMonth, mail_index: MailIndex, facts: Sequence[ChunkFacts]
) -> Iterator[Vector]:
    """Return the vectors of some chunks, or raise before anything is written."""
    encoder, dimension = mail_index.fingerprint, mail_index.index.spec.dimension
    wanted, key = {fact.text_hash for fact in facts}, file_key(month, mail_index.fingerprint)
    values = read_embeddings(store, key, wanted)
    if missing := wanted - values.keys():
        raise StepError(
            f"{month}: the embeddings file lacks {len(missing)} of {len(wanted)} texts; "
            "materialize embeddings for this month again"
        )
    if other := {vector.size for vector in values.values()} - {dimension}:
        raise StepError(
            f"{month}: {store.url(key)} has vectors of {other.pop()} numbers, which the encoder's "
            f"server gave once, and the index takes {dimension}; delete the file and materialize "
            "embeddings for this month again"
        )
    return (
        Vector(fact.key, values[fact.text_hash], vector_metadata(fact, month, encoder))
        for fact in facts
    )
