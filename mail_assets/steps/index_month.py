"""Make one month's part of an index equal to what it should hold.

The order is what lets a killed run converge: intend in the manifest, put what is new, delete
what is stale, then mark it written.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import NamedTuple, Protocol, TypeVar

import psycopg

from mail_assets.tables.manifest import (
    Entry,
    IndexMonth,
    drop_keys,
    mark_intended,
    mark_written,
)

Item_contra = TypeVar("Item_contra", contravariant=True)
Item = TypeVar("Item")


class Writable(Protocol[Item_contra]):
    """An index as a step writes it: of vectors or of words."""

    def put(self, items: Iterable[Item_contra], /) -> object:
        """Insert or overwrite."""

    def delete(self, keys: Iterable[str], /) -> object:
        """Delete by key."""


class MonthKeys(NamedTuple):
    """The keys of a month: wanted, with what they are made from; in the manifest; in the index."""

    wanted: Mapping[str, bytes]
    manifest: Mapping[str, Entry]
    present: Set[str]

    @property
    def fresh(self) -> list[str]:
        """What is to be written."""
        return [
            key
            for key, digest in self.wanted.items()
            if key not in self.present or self.manifest.get(key) != (digest, True)
        ]

    @property
    def stale(self) -> set[str]:
        """What is to be deleted."""
        return (self.manifest.keys() | self.present) - self.wanted.keys()


class Changes(NamedTuple):
    """How many keys were written and deleted."""

    written: int
    deleted: int


def write_month(
    connection: psycopg.Connection,
    part: IndexMonth,
    keys: MonthKeys,
    index: Writable[Item],
    make: Callable[[Sequence[str]], Iterable[Item]],
) -> Changes:
    """Write what is fresh and delete what is stale; nothing where there is neither.

    `make` returns the items of some keys. Where it raises, nothing was written.
    """
    fresh, stale = keys.fresh, keys.stale
    if fresh:
        items = make(fresh)
        mark_intended(connection, part, {key: keys.wanted[key] for key in fresh})
        index.put(items)
    if stale:
        index.delete(stale)
        drop_keys(connection, part.manifest, stale)
    mark_written(connection, part)
    return Changes(len(fresh), len(stale))
