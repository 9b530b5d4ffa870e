"""The contract of a vector index, which every backend implements.

An index holds vectors of one dimension under string keys, each with a little metadata; it finds
the nearest by cosine distance. The shape is that of the S3 Vectors API, the narrowest of the
backends. What its signatures need (`spec`, `vector`, `errors`) is imported from here too.

[capabilities] What a backend of vector indexes can do.

[errors] Errors of vector indexes and buckets; cheap to import where they are only caught.

[batches] Cut what is written or read into requests that a backend takes.

[bucket] The contract of a vector bucket: a place for vector indexes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol

import numpy as np

from mail_assets.errors import MonthError, UnavailableError
from mail_assets.vectors.filters import FieldType, Filter, IndexSpec, check_filter, check_length
from mail_assets.vectors.vector import (
    Floats,
    InputFault,
    Match,
    Metadata,
    MetadataValue,
    Vector,
    json_bound,
    record_fault,
    values_fault,
)


@dataclass(frozen=True)
class Capabilities:
    """The limits of a backend's requests, and whether it lists keys by filter."""

    max_batch: int  # vectors in one write, keys in one delete
    max_bytes: int  # of one write, as JSON
    max_get: int  # keys in one read
    max_top_k: int
    max_dimension: int
    list_filter: bool
    max_constraints: int = 100  # in a filter, each value of $in is one; of S3 Vectors


class VectorError(MonthError, UnavailableError):
    """An index or a bucket refuses or fails: names it, the fault and the remedy."""

    notice = "the index cannot be searched at the moment"


class MissingIndexError(VectorError):
    """The index does not exist, or its bucket does not."""


def missing_index(label: str) -> MissingIndexError:
    """Return the error for something, named by `label`, that is not there."""
    return MissingIndexError(
        f"{label}: does not exist; `mail-assets backfill` creates it, or correct the URL"
    )


def batch_vectors(
    vectors: Iterable[Vector], max_count: int, max_bytes: int
) -> Iterator[list[Vector]]:
    """Yield batches of so many vectors and bytes of JSON at most, no key twice in one.

    The last vector under a key stays (Supabase answers 400 to a key that comes twice).
    """
    batch: dict[str, Vector] = {}
    size = 0
    for vector in vectors:
        extra = json_bound(vector)
        if batch and (len(batch) == max_count or size + extra > max_bytes):
            yield list(batch.values())
            batch, size = {}, 0
        batch[vector.key] = vector
        size += extra
    if batch:
        yield list(batch.values())


def split(items: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    """Cut `items` into pieces of `size` at most."""
    return (items[start : start + size] for start in range(0, len(items), size))


__all__ = [
    "Capabilities",
    "FieldType",
    "Floats",
    "IndexSpec",
    "Match",
    "Metadata",
    "MissingIndexError",
    "Vector",
    "VectorError",
    "VectorIndex",
]


class VectorIndex(ABC):
    """One index of one bucket.

    The public methods check, split and order; a backend implements the abstract ones and may
    rely on checked input. Writes are idempotent: the last vector put under a key stays.
    """

    capabilities: ClassVar[Capabilities]

    def __init__(self, spec: IndexSpec, where: str) -> None:
        """`where` names the bucket in error messages and holds no credentials."""
        self.spec = spec
        self.label = f"index {spec.name} in {where}"
        if spec.dimension > self.capabilities.max_dimension:
            raise self.error(
                f"dimension {spec.dimension} is over {self.capabilities.max_dimension}",
                "use a smaller model or another backend",
            )

    def put(self, vectors: Iterable[Vector]) -> int:
        """Insert or overwrite; return the number of distinct keys written.

        Written in batches as `vectors` is consumed. After an error some batches may be in place;
        putting the same vectors again completes them.

        Raises:
            VectorError: for a vector that some backend would refuse or mangle, by its key.
        """
        written: set[str] = set()
        for batch in self._checked_batches(vectors):
            self._put(batch)
            written.update(vector.key for vector in batch)
        return len(written)

    def insert(self, vectors: Iterable[Vector]) -> None:
        """Put vectors under keys that the index does not have: nobody looks for them there.

        One that is there all the same may stand in it twice. Raises as `put` does.
        """
        for batch in self._checked_batches(vectors):
            self._insert(batch)

    def delete(self, keys: Iterable[str], among: Filter | None = None) -> int:
        """Delete by key; return the number of distinct keys asked for, there or not.

        The services do not say how many of them existed. `among` is a filter that they are known
        to match: a backend then need not look for them in all that it has.
        """
        distinct = list(dict.fromkeys(keys))
        for batch in split(distinct, self.capabilities.max_batch):
            self._delete(batch, among)
        return len(distinct)

    def get(self, keys: Iterable[str], data: bool = False) -> dict[str, Vector]:
        """Return those of `keys` that exist, with their values only where `data` is true."""
        distinct = list(dict.fromkeys(keys))
        found = {
            vector.key: vector
            for batch in split(distinct, self.capabilities.max_get)
            for vector in self._get(batch, data)
        }
        return {key: found[key] for key in distinct if key in found}

    def query(
        self, vector: Floats, top_k: int, filter: Filter | None = None, *, metadata: bool = True
    ) -> list[Match]:
        """Return up to `top_k` matches, nearest first, equal distances in key order.

        An approximate backend may return fewer than `top_k` under a filter though more match.
        Without `metadata` the matches carry none, and less is read and sent.

        Raises:
            FilterError: where the filter does not fit the index, or is too long for it.
            VectorError: where the vector or `top_k` does not, or the backend fails.
        """
        if not 1 <= top_k <= self.capabilities.max_top_k:
            raise self.error(f"top_k is {top_k}", f"ask for 1 to {self.capabilities.max_top_k}")
        if filter is not None:
            check_filter(filter, self.spec)
            check_length(filter, self.spec, self.capabilities.max_constraints)
        values = self._checked_values(vector, "the query vector")
        found = self._query(values, top_k, filter, metadata)
        # Rounding leaves a vector at -1e-07 from itself.
        clamped = (replace(match, distance=min(max(match.distance, 0.0), 2.0)) for match in found)
        return sorted(clamped, key=lambda match: (match.distance, match.key))

    def find(self, filter: Filter) -> Iterator[str]:
        """Iterate over the keys whose metadata matches, in no order.

        Raises:
            FilterError: where the filter does not fit the index.
            VectorError: where the backend has no `capabilities.list_filter`, or fails.
        """
        return (key for key, _ in self.find_values("key", filter))

    def find_values(self, field: str, filter: Filter) -> Iterator[tuple[str, MetadataValue]]:
        """Iterate over the keys whose metadata matches, each with its value of a field.

        Raises as `find` does.
        """
        check_filter(filter, self.spec)
        return self._find_values(field, filter)

    def count_groups(self, fields: Sequence[str]) -> Counter[tuple[object, ...]]:
        """Return how many vectors have each combination of values of some fields.

        Raises:
            VectorError: where the backend has no `capabilities.list_filter`, or fails.
        """
        return self._count_groups(fields)

    @abstractmethod
    def ensure(self, before: Callable[[], object] = lambda: None) -> None:
        """Create the index, and its bucket where that is possible, or verify that it fits.

        `before` is called before an index is created, and not where there is one.

        Raises:
            VectorError: where an index of this name exists with another spec.
        """

    @abstractmethod
    def keys(self) -> Iterator[str]:
        """Iterate over all keys, in no order."""

    @abstractmethod
    def count(self) -> int:
        """Return the number of vectors; a service without a counter lists them all."""

    @abstractmethod
    def describe(self) -> dict[str, str | int]:
        """Return facts for people: backend, index, dimension, kind of search, sizes if cheap."""

    @abstractmethod
    def drop(self) -> None:
        """Delete the index and its vectors; nothing happens where there is none."""

    @abstractmethod
    def maintain(self, *, erase: bool = False) -> None:
        """Bring the backend's search structures up to date; a service does so by itself.

        Run it in one place at a time, never in every partition. `erase` leaves nothing of deleted
        vectors anywhere, as forgetting needs; who reads while it runs may get a VectorError.
        """

    def catch_up(self) -> None:
        """Index what is new while an index is being filled; run it in one place at a time."""
        self.maintain()

    def needs_upkeep(self) -> bool:
        """Tell whether so much was written since the last upkeep that queries grow slow."""
        return False

    @abstractmethod
    def _put(self, batch: Sequence[Vector]) -> None: ...

    @abstractmethod
    def _delete(self, keys: Sequence[str], among: Filter | None) -> None: ...

    @abstractmethod
    def _get(self, keys: Sequence[str], data: bool) -> Iterable[Vector]: ...

    @abstractmethod
    def _query(
        self, vector: Floats, top_k: int, filter: Filter | None, metadata: bool
    ) -> Iterable[Match]: ...

    def _insert(self, batch: Sequence[Vector]) -> None:
        self._put(batch)

    def _find_values(self, field: str, filter: Filter) -> Iterator[tuple[str, MetadataValue]]:
        raise self.error(
            "this backend cannot list keys by filter",
            "look at capabilities.list_filter first, and keep a list of the keys you wrote",
        )

    def _count_groups(self, fields: Sequence[str]) -> Counter[tuple[object, ...]]:
        raise self.error(
            "this backend cannot count by fields",
            "look at capabilities.list_filter first, and count in a list of the keys you wrote",
        )

    def error(self, what: str, remedy: str) -> VectorError:
        """Return an error about this index."""
        return VectorError(f"{self.label}: {what}; {remedy}")

    def mismatch(self, exists: object, wanted: object) -> VectorError:
        """Return the error for an index that was made for another spec."""
        return self.error(
            f"exists as {exists}, wanted {wanted}",
            "an index cannot be altered: use another name, or drop() it and fill it again",
        )

    def _checked_batches(self, vectors: Iterable[Vector]) -> Iterator[list[Vector]]:
        most = self.capabilities
        checked = (self._checked(vector) for vector in vectors)
        return batch_vectors(checked, most.max_batch, most.max_bytes)

    def _checked(self, vector: Vector) -> Vector:
        checked = replace(vector, values=self._checked_values(vector.values, f"key {vector.key!r}"))
        self._refuse(record_fault(checked, self.spec))
        return checked

    def _checked_values(self, values: Floats, whose: str) -> Floats:
        checked: Floats = np.asarray(values, dtype=np.float32)
        self._refuse(values_fault(checked, self.spec, whose))
        return checked

    def _refuse(self, fault: InputFault | None) -> None:
        if fault is not None:
            raise self.error(fault.what, fault.remedy)


class Bucket(Protocol):
    """A place for vector indexes, whatever the backend."""

    where: str  # for messages, without credentials

    def index(self, spec: IndexSpec) -> VectorIndex:
        """Return the index of `spec`; call its `ensure` before the first use."""

    def indexes(self) -> list[str]:
        """Return the names of all indexes, sorted."""
