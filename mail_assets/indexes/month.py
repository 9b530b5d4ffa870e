"""Make one month's part of an index equal to what it should hold.

The order is what lets a killed run converge: intend in the manifest, put what is new, delete
what is stale, then mark it written. It also spares a run that fills many months to look for the
keys of each: where the manifest has nothing of a month, nobody has written to it since the run
began, and the index has of it what it had then.

[index_upkeep] Maintain an index while it is being filled, so that it stays quick through a long backfill.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeVar, cast

import psycopg

from mail_assets.month import ListMonth, month_number
from mail_assets.tables.indexes import Entry, IndexMonth, drop_keys, mark_intended, mark_written
from mail_assets.tables.partitions import Partition, locked_if_free
from mail_assets.vectors.filters import Filter
from mail_assets.vectors.index import MetadataValue, MissingIndexError, VectorError
from mail_assets.words.index import MissingWordsError, WordsError
from mail_assets.workspace import Workspace

Item_contra = TypeVar("Item_contra", contravariant=True)
Item = TypeVar("Item")


class Writable(Protocol[Item_contra]):
    """An index as a step writes it: of vectors or of words."""

    def put(self, items: Iterable[Item_contra], /) -> object:
        """Insert or overwrite."""

    def insert(self, items: Iterable[Item_contra], /) -> object:
        """Put what is not there."""

    def delete(self, keys: Iterable[str], /, among: Filter | None = None) -> object:
        """Delete by key, among the entries that a filter matches."""


class Listable(Protocol):
    """An index of vectors or of words that lists its keys by filter."""

    def find_values(self, field: str, filter: Filter, /) -> Iterator[tuple[str, MetadataValue]]:
        """Iterate over the keys that match, each with its value of a field."""


class MonthKeys(NamedTuple):
    """The keys of a month: wanted, with what they are made from; in the manifest; in the index.

    `present` counts: a run that had lost its lock may have written a key a second time.
    """

    wanted: Mapping[str, bytes]
    manifest: Mapping[str, Entry]
    present: Counter[str]

    @property
    def absent(self) -> list[str]:
        """What is to be written, and is not in the index once what is doubled was deleted."""
        return [key for key in self.wanted if self.present[key] != 1]

    @property
    def outdated(self) -> list[str]:
        """What is in the index, and is to be written again."""
        return [
            key
            for key, digest in self.wanted.items()
            if self.present[key] == 1 and self.manifest.get(key) != (digest, True)
        ]

    @property
    def doubled(self) -> list[str]:
        """What is wanted, and stands in the index more than once."""
        return [key for key in self.wanted if self.present[key] > 1]

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
    absent, outdated, stale = keys.absent, keys.outdated, keys.stale
    among = month_filter(part.month)
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


def find_keys(index: Listable, months: Collection[ListMonth]) -> dict[ListMonth, Counter[str]]:
    """Return the keys that an index has of some months, and how often, in one look for each list.

    However many months are asked for, it reads each fragment that was written lately: 17 ms in a
    long backfill.
    """
    found = {month: Counter[str]() for month in months}
    for name in sorted({month.list_name for month in months}):
        numbers = {month_number(one.month): one for one in months if one.list_name == name}
        for key, number in index.find_values("month", _months_filter(name, [*numbers])):
            found[numbers[cast(int, number)]][key] += 1
    return found


def find_unfilled(index: Listable, months: Collection[ListMonth]) -> frozenset[ListMonth]:
    """Return these months where an index has nothing of any of them, otherwise none.

    None of one month either: it is as quick to list its keys.
    """
    if len(months) == 1:
        return frozenset()
    try:
        for name in {month.list_name for month in months}:
            numbers = [month_number(one.month) for one in months if one.list_name == name]
            if any(True for _ in index.find_values("month", _months_filter(name, numbers))):
                return frozenset()
    except (MissingIndexError, MissingWordsError):
        pass
    return frozenset(months)


def month_filter(month: ListMonth) -> Filter:
    """Return the filter that all entries of a month match, and no others."""
    number = month_number(month.month)
    return {"$and": [{"list": {"$eq": month.list_name}}, {"month": {"$eq": number}}]}


def _months_filter(list_name: str, numbers: Sequence[int]) -> Filter:
    return {"$and": [{"list": {"$eq": list_name}}, {"month": {"$in": [*numbers]}}]}


class Maintained(Protocol):
    """An index of vectors or of words, as its upkeep needs it."""

    label: str

    def needs_upkeep(self) -> bool:
        """Tell whether much was written since the last upkeep."""

    def catch_up(self) -> None:
        """Index what is new, in as little time as it takes."""

    def maintain(self) -> None:
        """Bring its search structures up to date."""


def maintain_if_due(workspace: Workspace, index: Maintained) -> bool:
    """Maintain an index that much was written to since the last time; return whether it was done.

    One process does it, and others write meanwhile. A month that is written is done whether this
    works or not: what fails is logged, and tried again after the next month.
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
    except (VectorError, WordsError) as error:
        workspace.log(f"not maintained, which is tried again: {error}")
        return False
