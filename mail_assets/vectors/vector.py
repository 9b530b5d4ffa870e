"""A vector with its key and metadata, a match of a query, and the check of both as input.

Input is checked here, before a backend sees it, because the services check different things: one
stores a zero vector, one answers a wrong dimension with a retryable 500.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from mail_assets.vectors.filters import IndexSpec, is_number, is_text

Floats: TypeAlias = npt.NDArray[np.float32]
MetadataValue: TypeAlias = str | int | float | bool | list[str]
Metadata: TypeAlias = dict[str, MetadataValue]

# The narrower of AWS S3 Vectors and Supabase Vector Buckets in each case.
MAX_KEY_BYTES = 1024
MAX_METADATA_BYTES = 40_960
MAX_FILTERABLE_BYTES = 2_048
# Cosine distance does not depend on length, but its arithmetic does: half precision (pgvector)
# has no digits left below 1e-4 and ends at 65,504, squares in float32 vanish below 1e-19.
# Encoders give lengths near 1.
MIN_LENGTH, MAX_LENGTH = 1e-2, 1e4


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


class InputFault(NamedTuple):
    """Why a vector cannot go into an index, and what to do about it."""

    what: str
    remedy: str


def values_fault(values: Floats, spec: IndexSpec, whose: str) -> InputFault | None:
    """Return what some backend would refuse or mangle of `values`, or None."""
    if values.shape != (spec.dimension,):
        return InputFault(
            f"{whose} has shape {values.shape}, the index ({spec.dimension},)",
            "encode with the model that the index was made for, or make a new index",
        )
    if not np.isfinite(values).all():
        return InputFault(f"{whose} holds NaN or Inf", "look for the fault in its encoder")
    length = float(np.linalg.norm(values.astype(np.float64)))
    if length == 0:
        return InputFault(f"{whose} is the zero vector, without direction", "leave it out")
    if not MIN_LENGTH <= length <= MAX_LENGTH:
        return InputFault(
            f"{whose} has length {length:.3g}, outside {MIN_LENGTH:g}..{MAX_LENGTH:g}",
            "normalise it to length 1",
        )
    return None


def record_fault(vector: Vector, spec: IndexSpec) -> InputFault | None:
    """Return what some backend would refuse of the key and the metadata, or None."""
    key, metadata = vector.key, vector.metadata
    if not is_text(key) or not 1 <= _bytes(key) <= MAX_KEY_BYTES:
        return InputFault(
            f"key {key[:80]!r} is not 1 to {MAX_KEY_BYTES} bytes of UTF-8 without NUL",
            "shorten it to a hash",
        )
    for name, value in metadata.items():
        if reason := _unfit(name, value, spec):
            return InputFault(f"key {key!r}, metadata {name!r}: {reason}", "correct it")
    total = _bytes(metadata)
    filterable = _bytes({k: v for k, v in metadata.items() if k in spec.fields})
    if filterable > MAX_FILTERABLE_BYTES or total > MAX_METADATA_BYTES:
        return InputFault(
            f"key {key!r} has {total} bytes of metadata, {filterable} of them filterable; "
            f"the limits are {MAX_METADATA_BYTES} and {MAX_FILTERABLE_BYTES}",
            "shorten its longest value, or declare it non_filterable",
        )
    return None


def json_bound(vector: Vector) -> int:
    """Return an upper bound of the vector's size as JSON, in bytes.

    A float32 takes at most 15 characters and a separator; escapes to ASCII and the spaces
    after separators make at most three of each byte of compact UTF-8 JSON.
    """
    return 18 * vector.values.size + 3 * (_bytes(vector.key) + _bytes(vector.metadata)) + 200


def restore_int(value: MetadataValue) -> MetadataValue:
    """Return a whole number as int: not every backend remembers how it was written."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _unfit(name: str, value: object, spec: IndexSpec) -> str | None:
    """Say why an index of `spec` cannot hold a metadata value, or return None."""
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
    """Return the size in UTF-8 of a key, or of metadata as compact JSON with its names."""
    text = value
    if not isinstance(text, str):
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return len(text.encode())
