"""The vector index: what every backend offers, the types it speaks, and the rules of its input.

An index holds vectors of one dimension under string keys, each with a little metadata; it finds
the nearest by cosine distance. The shape is that of the S3 Vectors API, the narrowest of the
backends. Input is checked here, before a backend sees it, because the services check different
things: one stores a zero vector, one answers a wrong dimension with a retryable 500.

What does not live here: the filter language (`filters`), the backends, opening by URL (`bucket`).
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from mail_assets.vectors import filters
from mail_assets.vectors.filters import Filter

Floats: TypeAlias = npt.NDArray[np.float32]
MetadataValue: TypeAlias = str | int | float | bool | list[str]
Metadata: TypeAlias = dict[str, MetadataValue]
FieldType: TypeAlias = Literal["string", "number"]

# The narrower of AWS S3 Vectors and Supabase Vector Buckets in each case.
MAX_KEY_BYTES = 1024
MAX_METADATA_BYTES = 40_960
MAX_FILTERABLE_BYTES = 2_048
MAX_FIELDS = 50
MAX_NON_FILTERABLE = 10
# Cosine distance does not depend on length, but its arithmetic does: half precision (pgvector)
# has no digits left below 1e-4 and ends at 65,504, squares in float32 vanish below 1e-19.
# Encoders give lengths near 1.
MIN_LENGTH, MAX_LENGTH = 1e-2, 1e4

_INDEX_NAME = re.compile(r"[a-z0-9][a-z0-9.-]{1,43}[a-z0-9]", re.ASCII)
_FIELD_NAME = re.compile(r"[a-z][a-z0-9_]{0,62}", re.ASCII)
# Columns of the backends with tables.
_RESERVED = frozenset({"key", "vector", "embedding", "distance"})


class VectorError(RuntimeError):
    """An index or bucket refused or failed: names which, what happened and the remedy."""


class MissingIndexError(VectorError):
    """The index does not exist, or its bucket does not."""


@dataclass(frozen=True)
class Vector:
    """One entry of an index; `values` has shape (dimension,), or (0,) where not asked for.

    A whole number in `metadata` comes back as int, whichever way it went in.
    """

    key: str
    values: Floats
    metadata: Metadata


@dataclass(frozen=True)
class Match:
    """One answer to a query; `distance` is 1 - cosine similarity, 0 (same direction) to 2."""

    key: str
    distance: float
    metadata: Metadata


@dataclass(frozen=True)
class IndexSpec:
    """What an index is made for; immutable on every backend once the index exists.

    `fields` are the filterable metadata, `non_filterable` what is only carried along. Metadata
    under any other name is refused.

    Raises:
        ValueError: for a name, dimension or field that some backend could not hold.
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
        if not 1 <= self.dimension <= 4096:
            raise ValueError(f"index {self.name}: dimension {self.dimension} is not in 1..4096")
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
class Caps:
    """What one backend can do: the limits of a request, and whether it lists keys by filter."""

    max_batch: int  # vectors in one write, keys in one delete
    max_bytes: int  # of one write, as JSON
    max_get: int  # keys in one read
    max_top_k: int
    max_dimension: int
    list_filter: bool


class VectorIndex(ABC):
    """One index of one bucket.

    The public methods check, split and order; a backend implements the abstract ones and may
    rely on checked input. Writes are idempotent: the last vector put under a key stays.
    """

    caps: ClassVar[Caps]

    def __init__(self, spec: IndexSpec, where: str) -> None:
        """`where` names the bucket in error messages and holds no credentials."""
        self.spec = spec
        self.label = f"index {spec.name} in {where}"
        if spec.dimension > self.caps.max_dimension:
            raise self.error(
                f"dimension {spec.dimension} is over {self.caps.max_dimension}",
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
        for batch in self._batches(vectors):
            self._put(batch)
            written.update(vector.key for vector in batch)
        return len(written)

    def delete(self, keys: Iterable[str]) -> int:
        """Delete by key; return the number of distinct keys asked for, there or not.

        The services do not say how many of them existed.
        """
        distinct = list(dict.fromkeys(keys))
        for batch in batches(distinct, self.caps.max_batch):
            self._delete(batch)
        return len(distinct)

    def get(self, keys: Iterable[str], data: bool = False) -> dict[str, Vector]:
        """Return those of `keys` that exist, with their values only where `data` is true."""
        distinct = list(dict.fromkeys(keys))
        found = {
            vector.key: vector
            for batch in batches(distinct, self.caps.max_get)
            for vector in self._get(batch, data)
        }
        return {key: found[key] for key in distinct if key in found}

    def query(self, vector: Floats, top_k: int, filter: Filter | None = None) -> list[Match]:
        """Return up to `top_k` matches, nearest first, equal distances in key order.

        An approximate backend may return fewer than `top_k` under a filter though more match.

        Raises:
            FilterError: where the filter does not fit the index.
            VectorError: where the vector or `top_k` does not, or the backend fails.
        """
        if not 1 <= top_k <= self.caps.max_top_k:
            raise self.error(f"top_k is {top_k}", f"ask for 1 to {self.caps.max_top_k}")
        if filter is not None:
            filters.check(filter, self.spec)
        found = self._query(self._values(vector, "the query vector"), top_k, filter)
        # Rounding leaves a vector at -1e-07 from itself.
        clamped = (replace(match, distance=min(max(match.distance, 0.0), 2.0)) for match in found)
        return sorted(clamped, key=lambda match: (match.distance, match.key))

    def find(self, filter: Filter) -> Iterator[str]:
        """Iterate over the keys whose metadata matches, in no order, where `caps.list_filter`."""
        if not self.caps.list_filter:
            raise self.error(
                "this backend cannot list keys by filter",
                "look at caps.list_filter first, and keep a list of the keys you wrote",
            )
        filters.check(filter, self.spec)
        return self._find(filter)

    @abstractmethod
    def ensure(self) -> None:
        """Create the index, and its bucket where that is possible, or verify that it fits.

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
    def maintain(self) -> None:
        """Bring the backend's search structures up to date; a service does so by itself.

        Run it in one place at a time, never in every partition.
        """

    @abstractmethod
    def _put(self, batch: Sequence[Vector]) -> None: ...

    @abstractmethod
    def _delete(self, keys: Sequence[str]) -> None: ...

    @abstractmethod
    def _get(self, keys: Sequence[str], data: bool) -> Iterable[Vector]: ...

    @abstractmethod
    def _query(self, vector: Floats, top_k: int, filter: Filter | None) -> Iterable[Match]: ...

    def _find(self, filter: Filter) -> Iterator[str]:
        raise NotImplementedError

    def error(self, what: str, remedy: str) -> VectorError:
        """Return an error about this index."""
        return VectorError(f"{self.label}: {what}; {remedy}")

    def mismatch(self, exists: object, wanted: object) -> VectorError:
        """Return the error for an index that was made for another spec."""
        return self.error(
            f"exists as {exists}, wanted {wanted}",
            "an index cannot be altered: use another name, or drop() it and fill it again",
        )

    def _batches(self, vectors: Iterable[Vector]) -> Iterator[list[Vector]]:
        """Yield checked batches within `caps`, no key twice in one (Supabase answers 400)."""
        batch: dict[str, Vector] = {}
        size = 0
        for vector in vectors:
            checked = replace(vector, values=self._values(vector.values, f"key {vector.key!r}"))
            extra = self._json_size(checked)
            if batch and (len(batch) == self.caps.max_batch or size + extra > self.caps.max_bytes):
                yield list(batch.values())
                batch, size = {}, 0
            batch[vector.key] = checked
            size += extra
        if batch:
            yield list(batch.values())

    def _values(self, values: Floats, whose: str) -> Floats:
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

    def _json_size(self, vector: Vector) -> int:
        """Check key and metadata; return an upper bound of the vector's size as JSON.

        A float32 takes at most 15 characters and a separator; escapes to ASCII and the spaces
        after separators make at most three of each byte of compact UTF-8 JSON.
        """
        key, metadata = vector.key, vector.metadata
        if not filters.is_text(key) or not 1 <= _bytes(key) <= MAX_KEY_BYTES:
            raise self.error(
                f"key {key[:80]!r} is not 1 to {MAX_KEY_BYTES} bytes of UTF-8 without NUL",
                "shorten it to a hash",
            )
        for name, value in metadata.items():
            if problem := self._problem(name, value):
                raise self.error(f"key {key!r}, metadata {name!r}: {problem}", "correct it")
        total = _bytes(metadata)
        filterable = _bytes({k: v for k, v in metadata.items() if k in self.spec.fields})
        if filterable > MAX_FILTERABLE_BYTES or total > MAX_METADATA_BYTES:
            raise self.error(
                f"key {key!r} has {total} bytes of metadata, {filterable} of them filterable; "
                f"the limits are {MAX_METADATA_BYTES} and {MAX_FILTERABLE_BYTES}",
                "shorten its longest value, or declare it non_filterable",
            )
        return 18 * self.spec.dimension + 3 * (_bytes(key) + total) + 200

    def _problem(self, name: str, value: object) -> str | None:
        kind = self.spec.fields.get(name)
        if kind is None and name not in self.spec.non_filterable:
            return "the index has no such field"
        if kind == "string" and not isinstance(value, str):
            return f"{value!r} is not a string"
        if kind == "number" and not filters.is_number(value):
            return f"{value!r} is not a finite number within 2**53"
        if isinstance(value, list):
            fits = all(filters.is_text(item) for item in value)
        else:
            fits = isinstance(value, bool) or filters.is_number(value) or filters.is_text(value)
        return None if fits else f"{value!r} is not text without NUL, a number, a boolean or a list"


def batches(items: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    """Cut `items` into runs of at most `size`."""
    return (items[start : start + size] for start in range(0, len(items), size))


def missing(label: str) -> MissingIndexError:
    """Return the error for something, named by `label`, that is not there."""
    return MissingIndexError(
        f"{label}: does not exist; create it with ensure(), or correct the URL of the bucket"
    )


def plain(value: MetadataValue) -> MetadataValue:
    """Return a whole number as int: not every backend remembers how it was written."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _bytes(value: str | Metadata) -> int:
    """Return the size in UTF-8 of a key, or of metadata as compact JSON with its names."""
    text = value
    if not isinstance(text, str):
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return len(text.encode())
