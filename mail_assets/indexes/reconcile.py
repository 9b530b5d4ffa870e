"""Compare a whole index with its manifest and its expected keys, and repair it on request.

The vector index should have all chunks, the word index all messages. The run of a month repairs the
keys of its manifest. This finds the rest: keys that somebody else has put into the index, months
whose list was dropped, entries lost or doubled by a fault. Values are not compared, only whether an
entry was made from the present chunk or message.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import psycopg

from mail_assets.indexes.mail_index import MISSING, MailIndex
from mail_assets.month import ListMonth
from mail_assets.postgres.statements import copy_rows, statement
from mail_assets.tables.indexes import Manifest, drop_keys, read_manifest
from mail_assets.tables.partitions import Partition, locked

#: Keys of one page, and of one delete in a bucket.
KEYS_PER_PAGE = 10_000


class Fault(NamedTuple):
    """Keys of one month that differ in one way; keys of no month are foreign."""

    fault: str
    month: ListMonth | None
    keys: int
    examples: Sequence[str]

    def as_json(self) -> dict[str, Any]:
        """Return the fault for json.dumps; list and month are empty for foreign keys."""
        place = self.month.columns if self.month else {"list": "", "month": ""}
        return {"fault": self.fault, **place, "keys": self.keys, "examples": self.examples}


def _compare_keys(
    connection: psycopg.Connection, manifest: Manifest, keys: Iterable[str]
) -> tuple[int, int, int]:
    """Compare the keys of an index with its manifest and its expected keys.

    Returns three numbers of keys: listed by the index, expected, and written by the manifest. The
    functions below read the last comparison of the connection.
    """
    connection.execute(statement("reconcile", "clear"))
    connection.execute(statement("reconcile", f"expect_{manifest.table}"))
    connection.execute(statement("reconcile", f"intend_{manifest.table}"))
    connection.execute(statement("reconcile", "stage"))
    copy_rows(connection, statement("reconcile", "copy"), zip(keys))
    parameters = {"index_name": manifest.index_name}
    connection.execute(statement("reconcile", "compare"), parameters)
    row = connection.execute(statement("reconcile", "figures"), parameters).fetchone()
    return row or (0, 0, 0)


def intended_months(connection: psycopg.Connection, manifest: Manifest) -> list[ListMonth]:
    """Return the months that have keys in an index."""
    rows = connection.execute(
        statement("reconcile", "months"), {"index_name": manifest.index_name}
    ).fetchall()
    return [ListMonth(*row) for row in rows]


def _read_faults(connection: psycopg.Connection) -> list[Fault]:
    rows = connection.execute(statement("reconcile", "faults")).fetchall()
    return [
        Fault(fault, ListMonth(list_name, month) if list_name else None, keys, examples)
        for fault, list_name, month, keys, examples in rows
    ]


def _fault_keys(connection: psycopg.Connection, fault: Fault) -> Iterator[list[str]]:
    place = fault.month.columns if fault.month else {"list": None, "month": None}
    parameters = {**place, "fault": fault.fault, "most": KEYS_PER_PAGE}
    after = ""
    while True:
        rows = connection.execute(
            statement("reconcile", "page"), {**parameters, "after": after}
        ).fetchall()
        if not rows:
            return
        yield [key for (key,) in rows]
        after = rows[-1][0]


#: missing: a chunk or message without a written entry. stale: in the manifest, without a chunk or
#: message. foreign: in the index, but not in the manifest. doubled: listed twice. outdated: made
#: from an earlier chunk or message.
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
        """Return the result for json.dumps."""
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
    """Compare an index with all rows that it should have.

    With `repair`, stale and doubled entries are deleted from the index, and missing, doubled and
    outdated ones are marked as not written: the next run of their month writes them. If the index
    does not exist, all entries are missing. Foreign keys may belong to another database, so they
    are deleted only with `delete_foreign`.

    Raises:
        MissingIndexError, MissingWordsError: there is no such index, and `repair` is not set.
    """
    manifest = mail_index.manifest
    try:
        counts = _compare_keys(connection, manifest, mail_index.index.keys())
    except MISSING:
        if not repair:
            raise
        counts = _compare_keys(connection, manifest, ())
    for month in intended_months(connection, manifest):
        outdated = {**month.columns, "keys": _outdated(connection, mail_index, month)}
        connection.execute(statement("reconcile", "outdated"), outdated)
    figures = dict(zip(("bucket", mail_index.source, "manifest"), counts, strict=True))
    found = Reconciliation(mail_index.name, figures, tuple(_read_faults(connection)))
    if repair:  # what is missing, doubled or outdated is not written
        connection.execute(statement("reconcile", "mark"), {"index_name": manifest.index_name})
    for fault in found.faults:
        if (repair and fault.fault in ("stale", "doubled")) or (
            delete_foreign and fault.fault == "foreign"
        ):
            _delete(connection, mail_index, fault)
    return found


def _outdated(
    connection: psycopg.Connection, mail_index: MailIndex[Any], month: ListMonth
) -> list[str]:
    """Return the keys of vectors or documents that a run would write differently now."""
    manifest = read_manifest(connection, mail_index.part(month))
    digests = mail_index.read_digests(connection, month)
    return [
        key
        for key, digest in digests.items()
        if (entry := manifest.get(key)) and entry.written and entry.digest != digest
    ]


def _delete(connection: psycopg.Connection, mail_index: MailIndex[Any], fault: Fault) -> None:
    with locked(connection, Partition(mail_index.table, fault.month)):
        for keys in _fault_keys(connection, fault):
            with suppress(*MISSING):  # an index that does not exist has no keys
                mail_index.index.delete(keys)
            if fault.fault == "stale":
                drop_keys(connection, mail_index.manifest, keys)
