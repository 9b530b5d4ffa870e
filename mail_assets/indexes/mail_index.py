"""An index of the mail: the pattern that the vector index and the word index share.

The keys of its entries include list and month. The keys that it should have are in its manifest in
Postgres (tables/indexes.py), because not every backend can list keys by month.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, Self, TypeVar, cast

import psycopg

from mail_assets.indexes.names import manifest_name
from mail_assets.month import ListMonth, month_number
from mail_assets.tables.indexes import IndexMonth, Manifest, NewIndex, mark_lost
from mail_assets.tables.partitions import locked_index
from mail_assets.vectors.filters import Filter
from mail_assets.vectors.index import (
    Bucket,
    MetadataValue,
    MissingIndexError,
    VectorError,
    VectorIndex,
)
from mail_assets.words.index import MissingWordsError, WordIndex, WordsError

#: Errors of an index that does not exist, and of one that fails.
MISSING = (MissingIndexError, MissingWordsError)
FAILED = (VectorError, WordsError)

Index = TypeVar("Index", VectorIndex, WordIndex)


class Listable(Protocol):
    """An index that lists its keys by filter."""

    def find_values(self, field: str, filter: Filter, /) -> Iterator[tuple[str, MetadataValue]]:
        """Iterate over the keys that match, each with its value of a field."""


@dataclass(frozen=True)
class MailIndex(ABC, Generic[Index]):
    """An index, and the URL of the bucket or folder that it is in.

    The URL is in the manifest: another bucket is filled from the start, and the old one stays
    unchanged. `unfilled` are months without entries in the index when the run began.
    """

    #: The table of the manifest; also the name of the asset.
    table: ClassVar[str]
    #: The table whose rows it should have, one entry per row.
    source: ClassVar[str]
    #: Name of its entries, and of their number in the counts of a month.
    entries: ClassVar[str]
    total: ClassVar[str]

    index: Index
    url: str
    unfilled: frozenset[ListMonth] = field(default=frozenset(), kw_only=True)

    @property
    @abstractmethod
    def record(self) -> NewIndex:
        """Its row in the table `indexes`."""

    @property
    def lists_by_filter(self) -> bool:
        """True if the backend lists the keys of a month."""
        return True

    @abstractmethod
    def read_digests(self, connection: psycopg.Connection, month: ListMonth) -> Mapping[str, bytes]:
        """Return the keys that a month should have, each with a digest of its entry."""

    @property
    def name(self) -> str:
        """The name of the index in its bucket."""
        return self.record.name

    @property
    def manifest(self) -> Manifest:
        """The manifest of the index."""
        return Manifest(self.table, manifest_name(self.url, self.name))

    def part(self, month: ListMonth) -> IndexMonth:
        """Return the part of the manifest that a month has."""
        return IndexMonth(self.manifest, month)

    def ensure(self, connection: psycopg.Connection) -> None:
        """Create the index, or verify that it fits; for a new one, mark all its keys as lost."""
        with locked_index(connection, self.table):
            self.index.ensure(lambda: mark_lost(connection, self.manifest))

    def for_run(self, months: Collection[ListMonth]) -> Self:
        """Return the index for a run: it knows which of the months have no entries."""
        if not self.lists_by_filter:
            return self
        return replace(self, unfilled=find_unfilled(self.index, months))

    def month_keys(self, month: ListMonth, intended: Collection[str]) -> Counter[str]:
        """Return the keys of a month that the index has, and how often.

        A backend that cannot list by filter looks up only the `intended` keys, those of the
        manifest. Listing the whole index finds the others.
        """
        if not intended and month in self.unfilled:
            return Counter()
        if self.lists_by_filter:
            return Counter(self.index.find(month_filter(month)))
        return Counter(self._look_up(intended))

    def find_keys(
        self, intended: Mapping[ListMonth, Collection[str]]
    ) -> Mapping[ListMonth, Counter[str]]:
        """Return the keys of some months that the index has; see month_keys."""
        if self.lists_by_filter:
            return find_keys(self.index, intended.keys())
        return {month: self.month_keys(month, keys) for month, keys in intended.items()}

    @abstractmethod
    def find_altered(self, month: ListMonth, entries: Iterable[Any]) -> Set[str]:
        """Return the keys of a month's entries that differ in the index or are missing there."""

    def count_months(self) -> Counter[tuple[object, ...]] | None:
        """Return the number of entries by list and month (yyyymm), with one query of the index.

        None if the backend would have to list every key.
        """
        try:
            if self.lists_by_filter:
                return self.index.count_groups(["list", "month"])
            self.index.describe()  # one request, which fails if there is no index
        except MISSING:
            return Counter()
        return None

    def _look_up(self, keys: Collection[str]) -> Iterable[str]:
        raise NotImplementedError(f"{self.index.label} lists its keys by filter")


class MailBucket(NamedTuple):
    """An open bucket of indexes, and its URL, which identifies it in the tables.

    `table` is the manifest of its indexes: `vectors`, or `words` for the bucket of MAIL_WORDS.
    """

    bucket: Bucket
    url: str
    table: str = "vectors"

    def manifest(self, name: str) -> Manifest:
        """Return the manifest of one of its indexes."""
        return Manifest(self.table, manifest_name(self.url, name))


def find_keys(index: Listable, months: Collection[ListMonth]) -> dict[ListMonth, Counter[str]]:
    """Return the keys of some months that an index has, and how often, with one query per list.

    A query reads each fragment that was written since the last upkeep, for any number of months.
    """
    found = {month: Counter[str]() for month in months}
    for name in sorted({month.list_name for month in months}):
        numbers = {month_number(one.month): one for one in months if one.list_name == name}
        for key, number in index.find_values("month", _months_filter(name, [*numbers])):
            found[numbers[cast(int, number)]][key] += 1
    return found


def find_unfilled(index: Listable, months: Collection[ListMonth]) -> frozenset[ListMonth]:
    """Return these months if an index has no entries of any of them, else none.

    A single month is never returned, because listing its keys takes no longer.
    """
    if len(months) == 1:
        return frozenset()
    try:
        for name in {month.list_name for month in months}:
            numbers = [month_number(one.month) for one in months if one.list_name == name]
            if any(True for _ in index.find_values("month", _months_filter(name, numbers))):
                return frozenset()
    except MISSING:
        pass
    return frozenset(months)


def month_filter(month: ListMonth) -> Filter:
    """Return the filter that matches exactly the entries of a month."""
    number = month_number(month.month)
    return {"$and": [{"list": {"$eq": month.list_name}}, {"month": {"$eq": number}}]}


def _months_filter(list_name: str, numbers: Sequence[int]) -> Filter:
    return {"$and": [{"list": {"$eq": list_name}}, {"month": {"$in": [*numbers]}}]}
