"""Compare a whole index with its manifest and what it should hold, and repair it on request.

The vector index should hold the chunks, the word index the messages. A month's own run repairs what
it knows of. This finds the rest: keys that somebody else has put into the index, months whose list
was dropped, entries lost or doubled by a fault. Values are not compared, only that an entry was
made from what its chunk or message says now.
"""

from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import psycopg

from mail_assets.indexes.mail_index import MISSING, MailIndex
from mail_assets.month import ListMonth
from mail_assets.tables.bucket_keys import (
    Fault,
    add_outdated,
    compare_keys,
    fault_keys,
    intended_months,
    mark_for_writing,
    read_faults,
)
from mail_assets.tables.indexes import drop_keys, read_manifest
from mail_assets.tables.partitions import Partition, locked

#: missing: a chunk or message without a written entry. stale: in the manifest, without a chunk or
#: message. foreign: in the index, and in no manifest here. doubled: listed twice. outdated: made
#: from what the chunk or message said before.
FAULTS = ("missing", "stale", "foreign", "doubled", "outdated")


@dataclass(frozen=True)
class Reconciliation:
    """Result of a comparison: figures, and the differences before anything was repaired."""

    index: str
    figures: Mapping[str, int]
    faults: tuple[Fault, ...]

    @property
    def clean(self) -> bool:
        """Return whether keys in the index = keys in the manifest = chunks or messages."""
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
            **self.figures,
            **self.counts,
            "faults": [fault.as_json() for fault in self.faults],
        }


def reconcile(
    connection: psycopg.Connection,
    mail_index: MailIndex[Any],
    *,
    repair: bool = False,
    delete_foreign: bool = False,
) -> Reconciliation:
    """Compare an index with all rows that it should hold.

    With `repair`, what is stale or doubled is deleted from the index, and what is missing, doubled
    or outdated is marked as not written: the next run of its month writes it. Of an index that does
    not exist everything is missing. Foreign keys may be another database's, so they are deleted
    only with `delete_foreign`.

    Raises:
        MissingIndexError, MissingWordsError: there is no such index, and it is not to be repaired.
    """
    manifest = mail_index.manifest
    try:
        keys = compare_keys(connection, manifest, mail_index.index.keys())
    except MISSING:
        if not repair:
            raise
        keys = compare_keys(connection, manifest, ())
    for month in intended_months(connection, manifest):
        add_outdated(connection, month, _outdated(connection, mail_index, month))
    figures = {"bucket": keys.bucket, mail_index.source: keys.expected, "manifest": keys.manifest}
    found = Reconciliation(mail_index.name, figures, tuple(read_faults(connection)))
    if repair:
        mark_for_writing(connection, manifest)
    for fault in found.faults:
        if (repair and fault.fault in ("stale", "doubled")) or (
            delete_foreign and fault.fault == "foreign"
        ):
            _delete(connection, mail_index, fault)
    return found


def _outdated(
    connection: psycopg.Connection, mail_index: MailIndex[Any], month: ListMonth
) -> list[str]:
    manifest = read_manifest(connection, mail_index.part(month))
    digests = mail_index.read_digests(connection, month)
    return [
        key
        for key, digest in digests.items()
        if (entry := manifest.get(key)) and entry.written and entry.digest != digest
    ]


def _delete(connection: psycopg.Connection, mail_index: MailIndex[Any], fault: Fault) -> None:
    with locked(connection, Partition(mail_index.table, fault.month)):
        for keys in fault_keys(connection, fault):
            with suppress(*MISSING):  # without the index there are none of its keys either
                mail_index.index.delete(keys)
            if fault.fault == "stale":
                drop_keys(connection, mail_index.manifest, keys)
