"""Make one month's part of the vector index equal to its chunks.

The order is what lets a killed run converge: intend in the manifest, put what is new, delete
what is stale, then mark it written.
"""

import json
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import psycopg

from mail_assets.encoding.choice import dimension, fingerprint, slug
from mail_assets.steps.outcome import Log, Outcome, StepError, rate
from mail_assets.store.binaries import vector_cpu_ok
from mail_assets.store.chunks import ChunkFacts, read_facts
from mail_assets.store.database import MAIL, embedded_dsn
from mail_assets.store.embeddings import file_key, read_vectors
from mail_assets.store.manifest import (
    Shelf,
    forget,
    intend,
    mark_written,
    read_manifest,
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
from mail_assets.vectors.bucket import Bucket, open_bucket
from mail_assets.vectors.index import FieldType, IndexSpec, Metadata, Vector, VectorIndex

ASSET = "vectors"

#: What a vector carries. `month` is yyyymm and `sent_at` seconds since 1970, because S3
#: Vectors compares numbers only. `kind` is "patch" where the message brings one, else "text".
#: No thread: its root changes when older mail is loaded, and each such change would write
#: vectors again; threads are in Postgres, and a thread's messages can be asked for by
#: message_id. Raise VERSION when a vector would carry something else: it is in the index's
#: name, because no backend can alter an index.
FIELDS: dict[str, FieldType] = {
    "list": "string",
    "month": "number",
    "message_id": "string",
    "sender": "string",
    "sent_at": "number",
    "chunk": "number",
    "kind": "string",
}
NON_FILTERABLE = ("subject", "fingerprint")
VERSION = "2"

#: Characters kept of what mail can make arbitrarily long: 2 KB of filterable metadata is
#: the limit of S3 Vectors, and a character can take 6 bytes of its JSON.
MAX_ID, MAX_SENDER, MAX_SUBJECT = 200, 80, 400


def index_name(encoder: str, precision: str) -> str:
    """Return the name of an encoder's index: it carries the fingerprint, and fits in 45."""
    return f"mail{VERSION}-{slug(encoder)}-{fingerprint(encoder, precision)}"


def index_spec(encoder: str, precision: str) -> IndexSpec:
    """Return the index of an encoder; a server may be asked for the dimension, once."""
    return IndexSpec(
        name=index_name(encoder, precision),
        dimension=dimension(encoder),
        fields=FIELDS,
        non_filterable=NON_FILTERABLE,
    )


def write_month(
    connection: psycopg.Connection,
    store: ObjectStore,
    index: VectorIndex,
    bucket: str,
    encoder: str,
    list: str,
    month: str,
    log: Log,
) -> Outcome:
    """Put what is new, delete what is stale; nothing when nothing has changed.

    `bucket` is the bucket's URL: it stands in the manifest, so that another bucket is filled
    from the start and the old one stays as it is. `encoder` is the encoder's fingerprint.

    Raises:
        StepError: embeddings was never materialized for this month with this encoder, or
            lacks a text of its chunks. Nothing was written then.
    """
    began = time.monotonic()
    partition = Partition(ASSET, list, month)
    shelf = shelf_of(bucket, index.spec, list, month)
    with locked(connection, partition):
        embeddings = read_state(connection, Partition("embeddings", list, month))
        if embeddings is None or not embeddings.inputs.endswith(encoder):
            raise StepError(
                f"{list} {month}: no embeddings of encoder {encoder} yet; "
                "materialize embeddings first"
            )
        index.ensure()
        facts = {fact.key: fact for fact in read_facts(connection, list, month)}
        digests = {k: vector_digest(fact, list, month, encoder) for k, fact in facts.items()}
        manifest = read_manifest(connection, shelf)
        present = bucket_keys(index, list, month, manifest.keys())
        fresh = [
            key
            for key, digest in digests.items()
            if key not in present or key not in manifest or manifest[key] != (digest, True)
        ]
        stale = (manifest.keys() | present) - digests.keys()
        if fresh:
            vectors = _vectors(store, encoder, list, month, [facts[key] for key in fresh])
            intend(connection, shelf, {key: digests[key] for key in fresh})
            index.put(vectors)
            log(f"{list} {month}: {len(fresh)} vectors written")
        if stale:
            index.delete(stale)
            forget(connection, shelf, stale)
        mark_written(connection, shelf)
        seconds = time.monotonic() - began
        counts: Counts = {
            "chunks": len(facts),
            "written": len(fresh),
            "deleted": len(stale),
            "seconds": round(seconds, 3),
            "vectors_per_second": rate(len(fresh), seconds),
        }
        digest = digest_of(shelf.index_name, *(f"{k} {d.hex()}" for k, d in digests.items()))
        write_state(connection, partition, State(embeddings.digest, digest, counts))
    return Outcome(counts, digest, bool(fresh or stale))


def month_number(month: str) -> int:
    """Return "2024-05" as 202405."""
    return int(month.replace("-", ""))


def open_mail_bucket(home: Path, dsn: str, url: str) -> Bucket:
    """Open the bucket that MAIL_VECTORS names; `pgvector:` is in the mail database.

    Raises:
        ValueError: the bucket needs what is not set, or this processor cannot run it.
    """
    if not url.startswith("pgvector:"):
        return open_bucket(url)
    if not dsn and not vector_cpu_ok():
        raise ValueError(
            "the embedded server's pgvector needs AVX2 (x86-64) or SVE (arm64), which this "
            "processor lacks; set MAIL_PG_DSN to a server of your own, or use lance:"
        )
    return open_bucket(url, dsn=dsn or embedded_dsn(home, MAIL))


def manifest_name(bucket: str, index: str) -> str:
    """Return what the manifest calls an index: its name alone may stand in two buckets."""
    return f"{bucket} {index}"


def open_known_index(home: Path, dsn: str, name: str) -> VectorIndex:
    """Open an index by the manifest's name for it, to delete from it, whatever made it.

    Raises:
        ValueError: the bucket cannot be opened.
    """
    url, _, index_name = name.rpartition(" ")
    spec = IndexSpec(index_name, dimension=1, fields={})  # delete() looks at the name alone
    return open_mail_bucket(home, dsn, url).index(spec)


def shelf_of(bucket: str, spec: IndexSpec, list: str, month: str) -> Shelf:
    """Return a month's part of the manifest."""
    return Shelf(manifest_name(bucket, spec.name), list, month)


def bucket_keys(index: VectorIndex, list: str, month: str, intended: Iterable[str]) -> set[str]:
    """Return the month's keys that the bucket has.

    Where it cannot list by filter, only the `intended` keys are looked up: keys that nobody
    knows of are found by listing the whole index.
    """
    if index.caps.list_filter:
        where = {"$and": [{"list": {"$eq": list}}, {"month": {"$eq": month_number(month)}}]}
        return {*index.find(where)}
    return {*index.get([*intended])}


def vector_digest(fact: ChunkFacts, list: str, month: str, encoder: str) -> bytes:
    """Return what changes when the vector or what it carries would change."""
    carried = json.dumps(_metadata(fact, list, month, encoder), sort_keys=True)
    return bytes.fromhex(digest_of(VERSION, fact.text_hash, carried))


def _vectors(
    store: ObjectStore, encoder: str, list: str, month: str, facts: Sequence[ChunkFacts]
) -> Iterator[Vector]:
    """Return the vectors of some chunks, or raise before anything is written."""
    wanted = {fact.text_hash for fact in facts}
    values = read_vectors(store, file_key(list, month, encoder), wanted)
    if missing := wanted - values.keys():
        raise StepError(
            f"{list} {month}: the embeddings file lacks {len(missing)} of {len(wanted)} texts; "
            "materialize embeddings for this month again"
        )
    return (
        Vector(fact.key, values[fact.text_hash], _metadata(fact, list, month, encoder))
        for fact in facts
    )


def _metadata(fact: ChunkFacts, list: str, month: str, encoder: str) -> Metadata:
    return {
        "list": list,
        "month": month_number(month),
        "message_id": fact.message_id[:MAX_ID],
        "sender": fact.sender.lower()[:MAX_SENDER],
        "sent_at": fact.sent_at,
        "chunk": fact.position,
        "kind": fact.kind,
        "subject": fact.subject[:MAX_SUBJECT],
        "fingerprint": encoder,
    }
