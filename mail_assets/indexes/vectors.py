"""The vector index of the mail: one entry per chunk, and its metadata."""

import json
from collections.abc import Collection, Iterable, Mapping, Set
from dataclasses import dataclass

import numpy as np
import psycopg

from mail_assets.encoding.models import compute_fingerprint
from mail_assets.encoding.open import find_dimension
from mail_assets.errors import WrongInputError
from mail_assets.indexes.mail_index import MailBucket, MailIndex, month_filter
from mail_assets.indexes.names import VECTORS_VERSION, index_name, split_manifest_name
from mail_assets.month import ListMonth, month_number
from mail_assets.postgres.database import Database
from mail_assets.postgres.programs import vector_cpu_ok
from mail_assets.tables.chunks import ChunkFacts, read_facts
from mail_assets.tables.indexes import NewIndex
from mail_assets.tables.partitions import digest_of
from mail_assets.vectors.filters import FieldType
from mail_assets.vectors.index import (
    Bucket,
    IndexSpec,
    Metadata,
    Vector,
    VectorIndex,
    batch_vectors,
)
from mail_assets.vectors.open import open_bucket

#: Fields that a search can filter by. `month` is yyyymm and `sent_at` seconds since 1970, because
#: S3 Vectors compares only numbers. `kind` is "patch" if the message has one, else "text". There is
#: no thread: older mail may change its root, and then all vectors of the thread would be written
#: again. If you change this, raise VECTORS_VERSION.
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

#: Vectors compared at a time, and their bytes; the largest rounding error of half precision.
COMPARED, COMPARED_BYTES, ROUNDED = 5_000, 256 << 20, 1e-3

#: Characters kept of values that mail can make arbitrarily long. S3 Vectors allows 2 KB of
#: filterable metadata, and a character can take 6 bytes in JSON.
MAX_ID, MAX_SENDER, MAX_SUBJECT = 200, 80, 400


class BucketError(WrongInputError):
    """A bucket that cannot be opened. Names MAIL_VECTORS, its value and the remedy."""


@dataclass(frozen=True)
class MailVectors(MailIndex[VectorIndex]):
    """A vector index of the mail, and the encoder that makes its vectors."""

    table = "vectors"
    source = "chunks"
    entries = "vectors"
    total = "chunks"

    encoder: str
    precision: str
    fingerprint: str

    @property
    def record(self) -> NewIndex:
        """Its row in `indexes`."""
        return NewIndex(self.index.spec.name, self.encoder, self.precision, self.fingerprint)

    @property
    def lists_by_filter(self) -> bool:
        """True if the backend lists the keys of a month."""
        return self.index.capabilities.list_filter

    def read_digests(self, connection: psycopg.Connection, month: ListMonth) -> Mapping[str, bytes]:
        """Return the keys that a month should have, and digests of their vectors and metadata."""
        facts = read_facts(connection, month)
        return {fact.key: vector_digest(fact, month, self.fingerprint) for fact in facts}

    def find_altered(self, month: ListMonth, entries: Iterable[Vector]) -> Set[str]:
        """Return the keys of vectors that differ in the index or are missing there."""
        altered: set[str] = set()
        for batch in batch_vectors(entries, COMPARED, COMPARED_BYTES):
            found = self.index.get((one.key for one in batch), data=True, among=month_filter(month))
            altered.update(one.key for one in batch if not _is_same(one, found.get(one.key)))
        return altered

    def _look_up(self, keys: Collection[str]) -> Iterable[str]:
        return self.index.get(keys).keys()


def _is_same(vector: Vector, found: Vector | None) -> bool:
    if found is None or vector.metadata != found.metadata:
        return False
    return vector.values.shape == found.values.shape and bool(
        np.allclose(vector.values, found.values, rtol=0, atol=ROUNDED)
    )


def index_spec(encoder: str, precision: str) -> IndexSpec:
    """Return the spec of an encoder's index; may ask a server for the dimension, once."""
    return IndexSpec(
        name=index_name(encoder, precision),
        dimension=find_dimension(encoder),
        fields=FIELDS,
        non_filterable=NON_FILTERABLE,
    )


def name_spec(name: str) -> IndexSpec:
    """Return a spec that suffices to list or delete keys, and to drop the index."""
    return IndexSpec(name, dimension=1, fields={})


def vector_digest(fact: ChunkFacts, month: ListMonth, fingerprint: str) -> bytes:
    """Return a digest that changes when the vector of a chunk or its metadata would change."""
    carried = json.dumps(vector_metadata(fact, month, fingerprint), sort_keys=True)
    return bytes.fromhex(digest_of(VECTORS_VERSION, fact.text_hash, carried))


def vector_metadata(fact: ChunkFacts, month: ListMonth, fingerprint: str) -> Metadata:
    """Return the metadata of a chunk's vector."""
    return {
        "list": month.list_name,
        "month": month_number(month.month),
        "message_id": fact.message_id[:MAX_ID],
        "sender": fact.sender.lower()[:MAX_SENDER],
        "sent_at": fact.sent_at,
        "chunk": fact.position,
        "kind": fact.kind,
        "subject": fact.subject[:MAX_SUBJECT],
        "fingerprint": fingerprint,
    }


def open_mail_vectors(
    bucket: Bucket, url: str, encoder: str, precision: str, *, keys_only: bool = False
) -> MailVectors:
    """Return the index of an encoder in the bucket at `url`; it may not exist yet.

    With `keys_only` it can list and delete keys, and no server is asked for the dimension.
    """
    if keys_only:
        spec = name_spec(index_name(encoder, precision))
    else:
        spec = index_spec(encoder, precision)
    fingerprint = compute_fingerprint(encoder, precision)
    return MailVectors(bucket.index(spec), url, encoder, precision, fingerprint)


def open_mail_bucket(database: Database, url: str) -> Bucket:
    """Open the bucket that MAIL_VECTORS names; `pgvector:` is in the mail database."""
    try:
        if not url.startswith("pgvector:"):
            return open_bucket(url)
        if database.embedded and not vector_cpu_ok():
            raise ValueError(
                "the embedded server's pgvector needs AVX2 (x86-64) or SVE (arm64), which this "
                "processor lacks; set MAIL_PG_DSN to a server of your own, or use lance:"
            )
        return open_bucket(url, dsn=database.url())
    except ValueError as error:
        raise BucketError(f"MAIL_VECTORS={url!r}: {error}") from None


def check_mail_bucket(database: Database, url: str) -> None:
    """Check that the bucket that MAIL_VECTORS names can be filled, before anything is encoded.

    Raises:
        BucketError: it cannot be opened, or `pgvector:` lacks the extension and cannot create it.
    """
    open_mail_bucket(database, url)
    if not url.startswith("pgvector:"):
        return
    try:
        with database.connect("index") as connection, connection.transaction(force_rollback=True):
            connection.execute("create extension if not exists vector")
    except psycopg.DatabaseError as error:
        reason = " ".join(str(error.diag.message_primary or error).split())
        raise BucketError(
            f"MAIL_VECTORS={url!r}: the server has no extension `vector` ({reason}); install "
            "pgvector there and run `create extension vector` as its administrator, or set another "
            "MAIL_VECTORS, such as lance:PATH"
        ) from error


def open_vectors_bucket(database: Database, url: str) -> MailBucket:
    """Open the bucket of MAIL_VECTORS, to list and delete its indexes; see open_mail_bucket."""
    return MailBucket(open_mail_bucket(database, url), url)


def open_known_index(database: Database, name: str) -> VectorIndex:
    """Open an index of any encoder by its name in the manifest, to delete from it."""
    url, index = split_manifest_name(name)
    return open_mail_bucket(database, url).index(name_spec(index))
