"""The contract of a vector index, which every backend implements, and of its bucket.

An index holds vectors of one dimension under string keys, each with some metadata, and finds the
nearest by cosine distance. The interface follows the S3 Vectors API, which allows the least.

Input is checked here, before a backend sees it, because the services differ: one stores a zero
vector, another answers a wrong dimension with a retryable 500.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import ClassVar, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from mail_assets.errors import MonthError, UnavailableError
from mail_assets.vectors.filters import (
    FieldType,
    Filter,
    check_filter,
    check_length,
    is_number,
    is_text,
)

Floats: TypeAlias = npt.NDArray[np.float32]
MetadataValue: TypeAlias = str | int | float | bool | list[str]
Metadata: TypeAlias = dict[str, MetadataValue]

# The lower limit of AWS S3 Vectors and Supabase Vector Buckets in each case.
MAX_DIMENSION = 4096
MAX_FIELDS = 50
MAX_NON_FILTERABLE = 10
MAX_KEY_BYTES = 1024
MAX_METADATA_BYTES = 40_960
MAX_FILTERABLE_BYTES = 2_048
# Cosine distance does not depend on length, but its computation does: half precision (pgvector) has
# no digits below 1e-4 and ends at 65,504, and squares in float32 become 0 below 1e-19. Encoders
# return lengths near 1.
MIN_LENGTH, MAX_LENGTH = 1e-2, 1e4

_INDEX_NAME = re.compile(r"[a-z0-9][a-z0-9.-]{1,43}[a-z0-9]", re.ASCII)
_FIELD_NAME = re.compile(r"[a-z][a-z0-9_]{0,62}", re.ASCII)
# Columns of the backends with tables.
_RESERVED = frozenset({"key", "vector", "embedding", "distance"})


@dataclass(frozen=True)
class IndexSpec:
    """Name, dimension and metadata fields of an index; no backend can alter them later.

    Searches filter by `fields`; metadata named in `non_filterable` is only stored. Other names are
    refused.

    Raises:
        ValueError: some backend could not hold the name, the dimension or a field.
    """

    name: str
    dimension: int
    fields: Mapping[str, FieldType]
    non_filterable: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not _INDEX_NAME.fullmatch(self.name):
            raise ValueError(
                f"index name {self.name!r}: use 3 to 45 of a-z, 0-9, '.' and '-', "
                "with a letter or digit at both ends"
            )
        if not 1 <= self.dimension <= MAX_DIMENSION:
            raise ValueError(
                f"index {self.name}: dimension {self.dimension} is not in 1..{MAX_DIMENSION}"
            )
        names = [*self.fields, *self.non_filterable]
        for name in names:
            if not _FIELD_NAME.fullmatch(name) or name in _RESERVED:
                raise ValueError(
                    f"index {self.name}: metadata field {name!r}: use up to 63 of a-z, 0-9 and "
                    f"'_', starting with a letter, other than {', '.join(sorted(_RESERVED))}"
                )
        if len(set(names)) < len(names):
            raise ValueError(f"index {self.name}: a metadata field is declared twice: {names}")
        if len(names) > MAX_FIELDS or len(self.non_filterable) > MAX_NON_FILTERABLE:
            raise ValueError(
                f"index {self.name}: {len(names)} metadata fields, {len(self.non_filterable)} of "
                f"them not filterable; the limits are {MAX_FIELDS} and {MAX_NON_FILTERABLE}"
            )
        for name, kind in self.fields.items():
            if kind not in ("string", "number"):
                raise ValueError(f"index {self.name}: field {name}: no such type as {kind!r}")


@dataclass(frozen=True)
class Vector:
    """One entry of an index; `values` has shape (dimension,), or (0,) if not asked for.

    A whole number in `metadata` comes back as int, even if it was written as float.
    """

    key: str
    values: Floats
    metadata: Metadata


@dataclass(frozen=True)
class Match:
    """One result of a query; `distance` is 1 - cosine similarity, 0 (same direction) to 2.

    `row` is the row in the index if the distance is an estimate; see VectorIndex.measure.
    """

    key: str
    distance: float
    metadata: Metadata
    row: int | None = None


@dataclass(frozen=True)
class Capabilities:
    """Limits of a backend's requests, and whether it lists keys by filter."""

    max_batch: int  # vectors in one write, keys in one delete
    max_bytes: int  # of one write, as JSON
    max_get: int  # keys in one read
    max_top_k: int
    max_dimension: int
    list_filter: bool
    max_constraints: int = 100  # in a filter; each value of $in counts; the limit of S3 Vectors


class VectorError(MonthError, UnavailableError):
    """An index or a bucket refuses or fails; names it, the fault and the remedy."""

    notice = "the index cannot be searched at the moment"


class MissingIndexError(VectorError):
    """The index does not exist, or its bucket does not."""


def missing_index(label: str) -> MissingIndexError:
    """Return the error for an index or a bucket, named by `label`, that does not exist."""
    return MissingIndexError(
        f"{label}: does not exist; `mail-assets backfill` creates it, or correct the URL"
    )


class VectorIndex(ABC):
    """One index of one bucket.

    The public methods check, split and order; a backend implements the abstract ones and may
    rely on checked input. Writes are idempotent: the last vector put under a key stays.
    """

    capabilities: ClassVar[Capabilities]

    def __init__(self, spec: IndexSpec, where: str) -> None:
        """`where` names the bucket in error messages; it has no credentials."""
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
            VectorError: some backend would refuse a vector or store it wrongly; names its key.
        """
        written: set[str] = set()
        for batch in self._checked_batches(vectors):
            self._put(batch)
            written.update(vector.key for vector in batch)
        return len(written)

    def insert(self, vectors: Iterable[Vector]) -> None:
        """Put new vectors without a search for their keys, which may double; raises like `put`."""
        for batch in self._checked_batches(vectors):
            self._insert(batch)

    def delete(self, keys: Iterable[str], among: Filter | None = None) -> int:
        """Delete by key; return the number of distinct keys asked for.

        The services do not report how many existed. `among` is a filter that all these vectors
        match, so that a backend can search fewer entries.
        """
        distinct = list(dict.fromkeys(keys))
        for batch in split(distinct, self.capabilities.max_batch):
            self._delete(batch, among)
        return len(distinct)

    def get(
        self, keys: Iterable[str], data: bool = False, among: Filter | None = None
    ) -> dict[str, Vector]:
        """Return the vectors that exist, with values only if `data`; `among` as in `delete`."""
        distinct = list(dict.fromkeys(keys))
        found = {
            vector.key: vector
            for batch in split(distinct, self.capabilities.max_get)
            for vector in self._get(batch, data, among)
        }
        return {key: found[key] for key in distinct if key in found}

    def query(
        self,
        vector: Floats,
        top_k: int,
        filter: Filter | None = None,
        *,
        metadata: bool = True,
        estimate: bool = False,
    ) -> list[Match]:
        """Return up to `top_k` matches, nearest first, equal distances in key order.

        With a filter, an approximate backend may return fewer than `top_k` although more match.
        Without `metadata` the matches have none, which is faster. With `estimate` the distances may
        be estimates if that is faster; `measure` returns exact ones.

        Raises:
            FilterError: the filter does not fit the index, or is too long for it.
            VectorError: the vector or `top_k` does not fit, or the backend fails.
        """
        if not 1 <= top_k <= self.capabilities.max_top_k:
            raise self.error(f"top_k is {top_k}", f"ask for 1 to {self.capabilities.max_top_k}")
        if filter is not None:
            check_filter(filter, self.spec)
            check_length(filter, self.spec, self.capabilities.max_constraints)
        values = self._checked_values(vector, "the query vector")
        ask = self._estimate if estimate else self._query
        # Rounding can put a vector at -1e-07 from itself.
        clamped = (
            match
            if 0.0 <= match.distance <= 2.0
            else replace(match, distance=min(max(match.distance, 0.0), 2.0))
            for match in ask(values, top_k, filter, metadata)
        )
        return sorted(clamped, key=attrgetter("distance", "key"))

    def measure(self, vector: Floats, matches: Sequence[Match]) -> Mapping[str, float]:
        """Return the exact distances of matches by key; matches that were deleted are left out."""
        return {one.key: one.distance for one in matches}

    def find(self, filter: Filter) -> Iterator[str]:
        """Iterate over the keys whose metadata matches, in no order.

        Raises:
            FilterError: the filter does not fit the index.
            VectorError: the backend has no `capabilities.list_filter`, or fails.
        """
        return (key for key, _ in self.find_values("key", filter))

    def find_values(self, field: str, filter: Filter) -> Iterator[tuple[str, MetadataValue]]:
        """Iterate over matching keys, each with its value of a field; raises as `find` does."""
        check_filter(filter, self.spec)
        return self._find_values(field, filter)

    def count_groups(self, fields: Sequence[str]) -> Counter[tuple[object, ...]]:
        """Count the vectors by the values of some fields."""
        raise self.error(
            "this backend cannot count by fields",
            "look at capabilities.list_filter first, and count in a list of the keys you wrote",
        )

    @abstractmethod
    def ensure(self, before: Callable[[], object] = lambda: None) -> None:
        """Create the index and, if possible, its bucket; or verify that the existing index fits.

        `before` is called before an index is created, and not if there is one.

        Raises:
            VectorError: an index of this name exists with another spec.
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

    def probe(self) -> None:
        """Check what can be checked of its files, and ask it in every way.

        Raises:
            VectorError: a part of it is damaged or does not answer.
        """
        vector = np.ones(self.spec.dimension, np.float32)
        self.query(vector, 1)
        for name, kind in self.spec.fields.items():
            value: MetadataValue = "probe" if kind == "string" else 1
            self.query(vector, 1, {name: {"$eq": value}})

    @abstractmethod
    def drop(self) -> None:
        """Delete the index and its vectors, if there is one."""

    @abstractmethod
    def maintain(self, *, erase: bool = False) -> None:
        """Bring the backend's search structures up to date; services do so themselves.

        Call it from one process at a time, not for each partition. `erase` removes deleted vectors
        from all files, as forgetting needs; a reader may then get a VectorError.
        """

    def catch_up(self) -> None:
        """Index new vectors while an index is being filled; one process at a time."""
        self.maintain()

    def needs_upkeep(self) -> bool:
        """Return whether so much was written since the last upkeep that queries grow slow."""
        return False

    @abstractmethod
    def _put(self, batch: Sequence[Vector]) -> None: ...

    @abstractmethod
    def _delete(self, keys: Sequence[str], among: Filter | None) -> None: ...

    @abstractmethod
    def _get(self, keys: Sequence[str], data: bool, among: Filter | None) -> Iterable[Vector]: ...

    @abstractmethod
    def _query(
        self, vector: Floats, top_k: int, filter: Filter | None, metadata: bool
    ) -> Iterable[Match]: ...

    def _estimate(
        self, vector: Floats, top_k: int, filter: Filter | None, metadata: bool
    ) -> Iterable[Match]:
        return self._query(vector, top_k, filter, metadata)

    def _insert(self, batch: Sequence[Vector]) -> None:
        self._put(batch)

    def _find_values(self, field: str, filter: Filter) -> Iterator[tuple[str, MetadataValue]]:
        raise self.error(
            "this backend cannot list keys by filter",
            "look at capabilities.list_filter first, and keep a list of the keys you wrote",
        )

    def error(self, what: str, remedy: str) -> VectorError:
        """Return an error about this index."""
        return VectorError(f"{self.label}: {what}; {remedy}")

    def mismatch(self, exists: object, wanted: object) -> VectorError:
        """Return the error for an existing index with another spec."""
        return self.error(
            f"exists as {exists}, wanted {wanted}",
            "an index cannot be altered: use another name, or drop() it and fill it again",
        )

    def _checked_batches(self, vectors: Iterable[Vector]) -> Iterator[list[Vector]]:
        most = self.capabilities
        checked = (self._checked(vector) for vector in vectors)
        return batch_vectors(checked, most.max_batch, most.max_bytes)

    def _checked(self, vector: Vector) -> Vector:
        """Return a vector with checked values; refuse a key or metadata that a backend refuses."""
        key, metadata = vector.key, vector.metadata
        checked = replace(vector, values=self._checked_values(vector.values, f"key {key!r}"))
        if not is_text(key) or not 1 <= _bytes(key) <= MAX_KEY_BYTES:
            raise self.error(
                f"key {key[:80]!r} is not 1 to {MAX_KEY_BYTES} bytes of UTF-8 without NUL",
                "shorten it to a hash",
            )
        for name, value in metadata.items():
            if reason := _unfit(name, value, self.spec):
                raise self.error(f"key {key!r}, metadata {name!r}: {reason}", "correct it")
        total = _bytes(metadata)
        filterable = _bytes({k: v for k, v in metadata.items() if k in self.spec.fields})
        if filterable > MAX_FILTERABLE_BYTES or total > MAX_METADATA_BYTES:
            raise self.error(
                f"key {key!r} has {total} bytes of metadata, {filterable} of them filterable; "
                f"the limits are {MAX_METADATA_BYTES} and {MAX_FILTERABLE_BYTES}",
                "shorten its longest value, or declare it non_filterable",
            )
        return checked

    def _checked_values(self, values: Floats, whose: str) -> Floats:
        """Return values as float32; refuse those that a backend refuses or stores wrongly."""
        checked: Floats = np.asarray(values, dtype=np.float32)
        if checked.shape != (self.spec.dimension,):
            raise self.error(
                f"{whose} has shape {checked.shape}, the index ({self.spec.dimension},)",
                "encode with the model that the index was made for, or make a new index",
            )
        if not np.isfinite(checked).all():
            raise self.error(f"{whose} holds NaN or Inf", "look for the fault in its encoder")
        length = float(np.linalg.norm(checked.astype(np.float64)))
        if length == 0:
            raise self.error(f"{whose} is the zero vector, without direction", "leave it out")
        if not MIN_LENGTH <= length <= MAX_LENGTH:
            raise self.error(
                f"{whose} has length {length:.3g}, outside {MIN_LENGTH:g}..{MAX_LENGTH:g}",
                "normalise it to length 1",
            )
        return checked


class Bucket(Protocol):
    """A place for vector indexes: a folder, a service's bucket, a database."""

    where: str  # names it in messages, without credentials

    def index(self, spec: IndexSpec) -> VectorIndex:
        """Return the index of `spec`; call its `ensure` before the first use."""

    def indexes(self) -> list[str]:
        """Return the names of all indexes, sorted."""


def batch_vectors(
    vectors: Iterable[Vector], max_count: int, max_bytes: int
) -> Iterator[list[Vector]]:
    """Yield batches of limited numbers of vectors and bytes of JSON; no batch has a key twice.

    The last vector under a key stays (Supabase answers 400 to a repeated key).
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
    """Cut `items` into pieces of at most `size`."""
    return (items[start : start + size] for start in range(0, len(items), size))


def json_bound(vector: Vector) -> int:
    """Return an upper bound of the vector's size as JSON, in bytes.

    A float32 takes at most 15 characters and a separator. ASCII escapes, and spaces after
    separators, make at most three bytes of each byte of compact UTF-8 JSON.
    """
    return 18 * vector.values.size + 3 * (_bytes(vector.key) + _bytes(vector.metadata)) + 200


def restore_int(value: MetadataValue) -> MetadataValue:
    """Return a whole number as int, because some backends return it as float."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _unfit(name: str, value: object, spec: IndexSpec) -> str | None:
    kind = spec.fields.get(name)
    if kind is None and name not in spec.non_filterable:
        return "the index has no such field"
    if kind == "string" and not isinstance(value, str):
        return f"{value!r} is not a string"
    if kind == "number" and not is_number(value):
        return f"{value!r} is not a finite number within 2**53"
    if isinstance(value, list):
        fits = all(is_text(item) for item in value)
    else:
        fits = isinstance(value, bool) or is_number(value) or is_text(value)
    return None if fits else f"{value!r} is not text without NUL, a number, a boolean or a list"


def _bytes(value: str | Metadata) -> int:
    """Return the size in UTF-8 of a key, or of metadata as compact JSON."""
    text = value
    if not isinstance(text, str):
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return len(text.encode())
