"""Make one month's part of an index equal to what it should have.

The order allows a run to be killed and repeated: write the keys to the manifest, put new entries,
delete stale ones, then mark the keys as written.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import Any, NamedTuple

import psycopg

from mail_assets.indexes.mail_index import FAILED, MailIndex, month_filter
from mail_assets.month import ListMonth
from mail_assets.tables.indexes import Entry, drop_keys, mark_intended, mark_written, read_manifest
from mail_assets.tables.partitions import Partition, locked_if_free
from mail_assets.vectors.index import VectorIndex
from mail_assets.words.index import WordIndex
from mail_assets.workspace import Workspace


class MonthKeys(NamedTuple):
    """Keys of a month: wanted, each with a digest of its entry; in the manifest; in the index.

    `present` counts, because a run that had lost its lock may have written a key a second time.
    `altered` are keys whose entries in the index differ from what was written, if compared.
    """

    wanted: Mapping[str, bytes]
    manifest: Mapping[str, Entry]
    present: Counter[str]
    altered: Set[str] = frozenset()

    @property
    def absent(self) -> list[str]:
        """Keys to write that the index does not have, once the doubled ones are deleted."""
        return [key for key in self.wanted if self.present[key] != 1]

    @property
    def outdated(self) -> list[str]:
        """Keys to write that the index has."""
        return [
            key
            for key, digest in self.wanted.items()
            if self.present[key] == 1
            and (self.manifest.get(key) != (digest, True) or key in self.altered)
        ]

    @property
    def doubled(self) -> list[str]:
        """Wanted keys that the index has more than once."""
        return [key for key in self.wanted if self.present[key] > 1]

    @property
    def stale(self) -> set[str]:
        """Keys to delete."""
        return (self.manifest.keys() | self.present) - self.wanted.keys()


class Changes(NamedTuple):
    """Numbers of keys that were written and deleted."""

    written: int
    deleted: int


def compare_month(
    connection: psycopg.Connection, mail_index: MailIndex[Any], month: ListMonth, made: int | None
) -> MonthKeys:
    """Return the keys of a month: wanted, in the manifest, and in the index.

    `made` is the number of entries that the last run made from the same inputs, None if the inputs
    have changed. If it is given, the manifest has the wanted keys and no row is read, unless keys
    were lost or removed since.
    """
    manifest = read_manifest(connection, mail_index.part(month))
    if made == len(manifest) and all(entry.written for entry in manifest.values()):
        wanted: Mapping[str, bytes] = {key: entry.digest for key, entry in manifest.items()}
    else:
        wanted = mail_index.read_digests(connection, month)
    wanted = dict(sorted(wanted.items()))  # a server may sort text differently
    return MonthKeys(wanted, manifest, mail_index.month_keys(month, manifest.keys()))


def find_altered(
    mail_index: MailIndex[Any],
    month: ListMonth,
    keys: MonthKeys,
    make: Callable[[Sequence[str]], Iterable[Any]],
) -> MonthKeys:
    """Return the keys of a month, with those whose entry differs from what `make` returns."""
    present = [key for key in keys.wanted if keys.present[key] == 1]
    altered = mail_index.find_altered(month, make(present)) if present else frozenset[str]()
    return keys._replace(altered=altered)


def write_month(
    connection: psycopg.Connection,
    mail_index: MailIndex[Any],
    month: ListMonth,
    keys: MonthKeys,
    make: Callable[[Sequence[str]], Iterable[Any]],
) -> Changes:
    """Write new and outdated entries, and delete stale ones.

    `make` returns the entries of some keys. If it raises, nothing was written.
    """
    index, part, among = mail_index.index, mail_index.part(month), month_filter(month)
    absent, outdated, stale = keys.absent, keys.outdated, keys.stale
    fresh = [*absent, *outdated]
    if fresh:
        new, rewritten = make(absent), make(outdated)
        mark_intended(connection, part, {key: keys.wanted[key] for key in fresh})
        if keys.doubled:
            index.delete(keys.doubled, among)
        index.insert(new)
        if outdated:
            index.put(rewritten)
    if stale:
        index.delete(stale, among)
        drop_keys(connection, part.manifest, stale)
    mark_written(connection, part)
    return Changes(len(fresh), len(stale))


def maintain_if_due(workspace: Workspace, index: VectorIndex | WordIndex) -> bool:
    """Maintain an index after many writes; return whether it was done.

    So it stays fast during a long backfill. One process does it while others write. A failure is
    logged and does not fail the month; the next month tries again.
    """
    try:
        if not index.needs_upkeep():
            return False
        upkeep = Partition(f"upkeep of {index.label}", None)
        with locked_if_free(workspace.connection, upkeep) as free:
            if free:
                workspace.log(f"maintaining {index.label}")
                index.catch_up()
        return free
    except FAILED as error:
        workspace.log(f"not maintained, which is tried again: {error}")
        return False
