"""Compare a whole index with the manifest and the chunks, and repair it on request.

A month's own run repairs what it knows of. This finds what no run knows: keys that somebody else
has put into the bucket, months whose list was dropped, vectors lost or doubled by a fault. Values
are not compared, only that a vector was made from what its chunk says now.
"""

from collections import Counter
from dataclasses import dataclass
from typing import Any

import psycopg

from mail_assets.month import ListMonth
from mail_assets.steps.vector_index import MailIndex
from mail_assets.steps.write_vectors import vector_digest
from mail_assets.tables.bucket_keys import (
    Fault,
    KeyCounts,
    add_outdated,
    compare_keys,
    fault_keys,
    intended_months,
    mark_for_writing,
    read_faults,
)
from mail_assets.tables.chunks import read_facts
from mail_assets.tables.manifest import drop_keys, read_manifest
from mail_assets.tables.partitions import Partition, locked

#: missing: a chunk without a vector that is known to be there. stale: in the manifest, without a
#: chunk. foreign: in the bucket, and nobody here has put it there. doubled: listed twice.
#: outdated: made from what the chunk or its message said before.
FAULTS = ("missing", "stale", "foreign", "doubled", "outdated")


@dataclass(frozen=True)
class Reconciliation:
    """What was compared, and how it differed before anything was repaired."""

    index: str
    figures: KeyCounts
    faults: tuple[Fault, ...]

    @property
    def clean(self) -> bool:
        """Return whether keys in the bucket = keys in the manifest = chunks."""
        return not self.faults

    @property
    def counts(self) -> dict[str, int]:
        """Return the keys of each kind of fault, zeros included."""
        counts = Counter[str]()
        for fault in self.faults:
            counts[fault.fault] += fault.keys
        return {name: counts[name] for name in FAULTS}

    def as_json(self) -> dict[str, Any]:
        """Return all of it as json.dumps takes it."""
        return {
            "index": self.index,
            "clean": self.clean,
            **self.figures._asdict(),
            **self.counts,
            "faults": [fault.as_json() for fault in self.faults],
        }


def reconcile(
    connection: psycopg.Connection,
    mail_index: MailIndex,
    *,
    repair: bool = False,
    delete_foreign: bool = False,
) -> Reconciliation:
    """Compare an index with all chunks.

    With `repair` what is stale or doubled is deleted from the bucket, and what is missing, doubled
    or outdated is marked as not written: the next run of its month writes it. Foreign keys may be
    another database's, so they go only with `delete_foreign`.

    Raises:
        MissingIndexError: there is no such index in the bucket.
    """
    index, index_name = mail_index.index, mail_index.manifest_name
    figures = compare_keys(connection, index_name, index.keys())
    for month in intended_months(connection, index_name):
        add_outdated(connection, month, _outdated(connection, mail_index, month))
    found = Reconciliation(index.spec.name, figures, tuple(read_faults(connection)))
    if repair:
        mark_for_writing(connection, index_name)
    for fault in found.faults:
        if (repair and fault.fault in ("stale", "doubled")) or (
            delete_foreign and fault.fault == "foreign"
        ):
            _delete(connection, mail_index, fault)
    return found


def _outdated(connection: psycopg.Connection, mail_index: MailIndex, month: ListMonth) -> list[str]:
    """Return the written keys of a month whose vectors its chunks would make otherwise now."""
    manifest = read_manifest(connection, mail_index.part(month))
    return [
        fact.key
        for fact in read_facts(connection, month)
        if (entry := manifest.get(fact.key))
        and entry.written
        and entry.digest != vector_digest(fact, month, mail_index.fingerprint)
    ]


def _delete(connection: psycopg.Connection, mail_index: MailIndex, fault: Fault) -> None:
    """Delete the keys of a fault from the bucket, and what is stale from the manifest too."""
    with locked(connection, Partition("vectors", fault.month)):
        for keys in fault_keys(connection, fault):
            mail_index.index.delete(keys)
            if fault.fault == "stale":
                drop_keys(connection, mail_index.manifest_name, keys)
