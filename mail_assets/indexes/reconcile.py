"""Compare a whole index with its manifest and what it should hold, and repair it on request.

An index of vectors should hold the chunks, one of words the messages. A month's own run repairs
what it knows of. This finds what no run knows: keys that somebody else has put into the index,
months whose list was dropped, entries lost or doubled by a fault. Values are not compared, only
that an entry was made from what its chunk or message says now.
"""

from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import psycopg

from mail_assets.indexes.vectors import MailIndex
from mail_assets.indexes.words import MailWords
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
from mail_assets.vectors.index import MissingIndexError
from mail_assets.words.index import MissingWordsError

#: missing: a chunk or message whose entry is not known to be there. stale: in the manifest, without
#: a chunk or message. foreign: in the index, and nobody here has put it there. doubled: listed
#: twice. outdated: made from what the chunk or its message said before.
FAULTS = ("missing", "stale", "foreign", "doubled", "outdated")

#: What the index of a manifest should hold, by the manifest's table.
HELD = {"vectors": "chunks", "words": "messages"}


@dataclass(frozen=True)
class Reconciliation:
    """What was compared, and how it differed before anything was repaired."""

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
    filled: MailIndex | MailWords,
    *,
    repair: bool = False,
    delete_foreign: bool = False,
) -> Reconciliation:
    """Compare an index with all chunks, or with all messages.

    With `repair` what is stale or doubled is deleted from the index, and what is missing, doubled
    or outdated is marked as not written: the next run of its month writes it. Of an index that is
    not there everything is missing. Foreign keys may be another database's, so they go only with
    `delete_foreign`.

    Raises:
        MissingIndexError, MissingWordsError: there is no such index, and it is not to be repaired.
    """
    manifest = filled.manifest
    try:
        keys = compare_keys(connection, manifest, filled.index.keys())
    except (MissingIndexError, MissingWordsError):
        if not repair:
            raise
        keys = compare_keys(connection, manifest, ())
    for month in intended_months(connection, manifest):
        add_outdated(connection, month, _outdated(connection, filled, month))
    figures = {
        "bucket": keys.bucket,
        HELD[manifest.table]: keys.expected,
        "manifest": keys.manifest,
    }
    found = Reconciliation(filled.name, figures, tuple(read_faults(connection)))
    if repair:
        mark_for_writing(connection, manifest)
    for fault in found.faults:
        if (repair and fault.fault in ("stale", "doubled")) or (
            delete_foreign and fault.fault == "foreign"
        ):
            _delete(connection, filled, fault)
    return found


def _outdated(
    connection: psycopg.Connection, filled: MailIndex | MailWords, month: ListMonth
) -> list[str]:
    """Return the written keys of a month that would be made otherwise now."""
    manifest = read_manifest(connection, filled.part(month))
    digests = filled.read_digests(connection, month)
    return [
        key
        for key, digest in digests.items()
        if (entry := manifest.get(key)) and entry.written and entry.digest != digest
    ]


def _delete(connection: psycopg.Connection, filled: MailIndex | MailWords, fault: Fault) -> None:
    """Delete the keys of a fault from the index, and what is stale from the manifest too."""
    with locked(connection, Partition(filled.manifest.table, fault.month)):
        for keys in fault_keys(connection, fault):
            with suppress(MissingIndexError, MissingWordsError):  # nor is any of its keys
                filled.index.delete(keys)
            if fault.fault == "stale":
                drop_keys(connection, filled.manifest, keys)
