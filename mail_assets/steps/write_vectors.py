"""Make one month's part of the vector index equal to its chunks.

The order is what lets a killed run converge: intend in the manifest, put what is new, delete
what is stale, then mark it written.
"""

import json
import time
from collections.abc import Iterable, Iterator, Sequence

from mail_assets.month import ListMonth, month_number
from mail_assets.steps.outcome import Outcome, StepError, rate
from mail_assets.steps.vector_index import MAX_ID, MAX_SENDER, MAX_SUBJECT, VERSION, MailIndex
from mail_assets.steps.workspace import Workspace
from mail_assets.store.embeddings import file_key, read_embeddings
from mail_assets.store.objects import ObjectStore
from mail_assets.tables.chunks import ChunkFacts, read_facts
from mail_assets.tables.manifest import (
    drop_keys,
    mark_intended,
    mark_written,
    read_manifest,
)
from mail_assets.tables.partitions import (
    Counts,
    Partition,
    State,
    digest_of,
    locked,
    read_state,
    write_state,
)
from mail_assets.vectors.index import Metadata, Vector, VectorIndex

ASSET = "vectors"


def write_vectors(workspace: Workspace, month: ListMonth, mail_index: MailIndex) -> Outcome:
    """Put what is new, delete what is stale; nothing when nothing has changed.

    Raises:
        StepError: embeddings was never materialized for this month with this encoder, or
            lacks a text of its chunks. Nothing was written then.
    """
    began = time.monotonic()
    connection, partition = workspace.connection, Partition(ASSET, month)
    index, part, encoder = mail_index.index, mail_index.part(month), mail_index.fingerprint
    with locked(connection, partition):
        embeddings = read_state(connection, Partition("embeddings", month))
        if embeddings is None or not embeddings.inputs.endswith(encoder):
            raise StepError(
                f"{month}: no embeddings of encoder {encoder} yet; materialize embeddings first"
            )
        index.ensure()
        facts = {fact.key: fact for fact in read_facts(connection, month)}
        digests = {k: vector_digest(fact, month, encoder) for k, fact in facts.items()}
        manifest = read_manifest(connection, part)
        present = bucket_keys(index, month, manifest.keys())
        fresh = [
            key
            for key, digest in digests.items()
            if key not in present or key not in manifest or manifest[key] != (digest, True)
        ]
        stale = (manifest.keys() | present) - digests.keys()
        if fresh:
            vectors = _vectors(workspace.store, month, encoder, [facts[key] for key in fresh])
            mark_intended(connection, part, {key: digests[key] for key in fresh})
            index.put(vectors)
            workspace.log(f"{month}: {len(fresh)} vectors written")
        if stale:
            index.delete(stale)
            drop_keys(connection, part.index_name, stale)
        mark_written(connection, part)
        seconds = time.monotonic() - began
        counts: Counts = {
            "chunks": len(facts),
            "written": len(fresh),
            "deleted": len(stale),
            "seconds": round(seconds, 3),
            "vectors_per_second": rate(len(fresh), seconds),
        }
        digest = digest_of(part.index_name, *(f"{k} {d.hex()}" for k, d in digests.items()))
        write_state(connection, partition, State(embeddings.digest, digest, counts))
    return Outcome(counts, digest, bool(fresh or stale))


def bucket_keys(index: VectorIndex, month: ListMonth, intended: Iterable[str]) -> set[str]:
    """Return the month's keys that the bucket has.

    Where it cannot list by filter, only the `intended` keys are looked up: keys that nobody
    knows of are found by listing the whole index.
    """
    if index.capabilities.list_filter:
        number = month_number(month.month)
        where = {"$and": [{"list": {"$eq": month.list_name}}, {"month": {"$eq": number}}]}
        return {*index.find(where)}
    return {*index.get([*intended])}


def vector_digest(fact: ChunkFacts, month: ListMonth, encoder: str) -> bytes:
    """Return what changes when the vector or what it carries would change."""
    carried = json.dumps(_metadata(fact, month, encoder), sort_keys=True)
    return bytes.fromhex(digest_of(VERSION, fact.text_hash, carried))


def _vectors(
    store: ObjectStore, month: ListMonth, encoder: str, facts: Sequence[ChunkFacts]
) -> Iterator[Vector]:
    """Return the vectors of some chunks, or raise before anything is written."""
    wanted = {fact.text_hash for fact in facts}
    values = read_embeddings(store, file_key(month, encoder), wanted)
    if missing := wanted - values.keys():
        raise StepError(
            f"{month}: the embeddings file lacks {len(missing)} of {len(wanted)} texts; "
            "materialize embeddings for this month again"
        )
    return (
        Vector(fact.key, values[fact.text_hash], _metadata(fact, month, encoder)) for fact in facts
    )


def _metadata(fact: ChunkFacts, month: ListMonth, encoder: str) -> Metadata:
    return {
        "list": month.list_name,
        "month": month_number(month.month),
        "message_id": fact.message_id[:MAX_ID],
        "sender": fact.sender.lower()[:MAX_SENDER],
        "sent_at": fact.sent_at,
        "chunk": fact.position,
        "kind": fact.kind,
        "subject": fact.subject[:MAX_SUBJECT],
        "fingerprint": encoder,
    }
