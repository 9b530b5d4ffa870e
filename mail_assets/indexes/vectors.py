"""The vector index of the mail: its name, what its vectors carry, and how to open it.

What does not live here: filling it (write_vectors.py), and which index search asks
(index_lifecycle.py).
"""

import json
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import psycopg

from mail_assets.encoding.open import compute_fingerprint, find_dimension, short_name
from mail_assets.errors import WrongInputError
from mail_assets.indexes.month import find_keys, find_unfilled, month_filter
from mail_assets.month import ListMonth, month_number
from mail_assets.postgres.database import Database
from mail_assets.postgres.programs import vector_cpu_ok
from mail_assets.tables.chunks import ChunkFacts, read_facts
from mail_assets.tables.indexes import IndexMonth, Manifest
from mail_assets.tables.partitions import digest_of
from mail_assets.vectors.filters import FieldType
from mail_assets.vectors.index import Bucket, IndexSpec, Metadata, VectorIndex
from mail_assets.vectors.open import open_bucket

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
VECTORS_VERSION = "2"

#: Characters kept of what mail can make arbitrarily long: 2 KB of filterable metadata is
#: the limit of S3 Vectors, and a character can take 6 bytes of its JSON.
MAX_ID, MAX_SENDER, MAX_SUBJECT = 200, 80, 400


class BucketError(WrongInputError):
    """A bucket that cannot be opened: names MAIL_VECTORS, its value and the remedy."""


class MailBucket(NamedTuple):
    """An open bucket and its URL, which is what the tables call it.

    `table` has the keys of its indexes: `vectors`, or `words` where MAIL_WORDS names the bucket.
    """

    bucket: Bucket
    url: str
    table: str = "vectors"

    def manifest(self, name: str) -> Manifest:
        """Return the manifest of one of its indexes."""
        return Manifest(self.table, manifest_name(self.url, name))


@dataclass(frozen=True)
class MailIndex:
    """An index of a bucket, and the fingerprint of the encoder that makes its vectors.

    `bucket` is the bucket's URL: it is in the manifest, so that another bucket is filled from
    the start and the old one stays as it is. Of the months that are `unfilled` it had nothing when
    the run began.
    """

    index: VectorIndex
    bucket: str
    fingerprint: str
    unfilled: frozenset[ListMonth] = frozenset()

    @property
    def name(self) -> str:
        """The name of the index in its bucket."""
        return self.index.spec.name

    @property
    def manifest(self) -> Manifest:
        """Where the keys are that it should have."""
        return Manifest("vectors", manifest_name(self.bucket, self.name))

    def part(self, month: ListMonth) -> IndexMonth:
        """Return a month's part of the index, as the manifest knows it."""
        return IndexMonth(self.manifest, month)

    def for_run(self, months: Collection[ListMonth]) -> Self:
        """Return the index with those months of a run that are unfilled, see index_month.py."""
        if not self.index.capabilities.list_filter:
            return self
        return replace(self, unfilled=find_unfilled(self.index, months))

    def month_keys(self, month: ListMonth, intended: Collection[str]) -> Counter[str]:
        """Return the keys of a month that the bucket has, and how often.

        Where it cannot list by filter, only the `intended` keys, those of its manifest, are looked
        up: keys that nobody knows of are found by listing the whole index.
        """
        if not intended and month in self.unfilled:
            return Counter()
        if self.index.capabilities.list_filter:
            return Counter(self.index.find(month_filter(month)))
        return Counter([*self.index.get([*intended])])

    def find_keys(
        self, intended: Mapping[ListMonth, Collection[str]]
    ) -> Mapping[ListMonth, Counter[str]]:
        """Return the keys of some months that the bucket has, as month_keys does for one."""
        if self.index.capabilities.list_filter:
            return find_keys(self.index, intended.keys())
        return {month: self.month_keys(month, keys) for month, keys in intended.items()}

    def read_digests(self, connection: psycopg.Connection, month: ListMonth) -> Mapping[str, bytes]:
        """Return the keys that a month should have, and what their vectors are made from."""
        facts = read_facts(connection, month)
        return {fact.key: vector_digest(fact, month, self.fingerprint) for fact in facts}


def index_name(encoder: str, precision: str) -> str:
    """Return the name of an encoder's index: it carries the fingerprint, and fits in 45."""
    return f"mail{VECTORS_VERSION}-{short_name(encoder)}-{compute_fingerprint(encoder, precision)}"


def index_spec(encoder: str, precision: str) -> IndexSpec:
    """Return the index of an encoder; a server may be asked for the dimension, once."""
    return IndexSpec(
        name=index_name(encoder, precision),
        dimension=find_dimension(encoder),
        fields=FIELDS,
        non_filterable=NON_FILTERABLE,
    )


def name_spec(name: str) -> IndexSpec:
    """Return a spec for what looks at the name alone: to list or delete keys, and to drop."""
    return IndexSpec(name, dimension=1, fields={})


def manifest_name(bucket: str, index: str) -> str:
    """Return what the manifest calls an index: its name alone may stand in two buckets."""
    return f"{bucket} {index}"


def vector_digest(fact: ChunkFacts, month: ListMonth, encoder: str) -> bytes:
    """Return what changes when the vector or what it carries would change."""
    carried = json.dumps(vector_metadata(fact, month, encoder), sort_keys=True)
    return bytes.fromhex(digest_of(VECTORS_VERSION, fact.text_hash, carried))


def vector_metadata(fact: ChunkFacts, month: ListMonth, encoder: str) -> Metadata:
    """Return what the vector of a chunk carries."""
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


def open_mail_index(bucket: Bucket, url: str, encoder: str, precision: str) -> MailIndex:
    """Return the index of an encoder in the bucket at `url`; it may not exist yet."""
    index = bucket.index(index_spec(encoder, precision))
    return MailIndex(index, url, compute_fingerprint(encoder, precision))


def open_mail_keys(bucket: Bucket, url: str, encoder: str, precision: str) -> MailIndex:
    """Return the index of an encoder to list and delete its keys: no server is asked for it."""
    index = bucket.index(name_spec(index_name(encoder, precision)))
    return MailIndex(index, url, compute_fingerprint(encoder, precision))


def open_mail_bucket(database: Database, url: str) -> Bucket:
    """Open the bucket that MAIL_VECTORS names; `pgvector:` is in the mail database.

    Raises:
        BucketError: the bucket needs what is not set, or this processor cannot run it.
    """
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


def open_known_index(database: Database, name: str) -> VectorIndex:
    """Open an index by the manifest's name for it, to delete from it, whatever made it.

    Raises:
        BucketError: the bucket cannot be opened.
    """
    url, _, index_name = name.rpartition(" ")
    return open_mail_bucket(database, url).index(name_spec(index_name))
