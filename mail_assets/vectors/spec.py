"""The spec of a vector index: its name, its dimension and its metadata fields."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

FieldType: TypeAlias = Literal["string", "number"]

# The narrower of AWS S3 Vectors and Supabase Vector Buckets in each case.
MAX_DIMENSION = 4096
MAX_FIELDS = 50
MAX_NON_FILTERABLE = 10

_INDEX_NAME = re.compile(r"[a-z0-9][a-z0-9.-]{1,43}[a-z0-9]", re.ASCII)
_FIELD_NAME = re.compile(r"[a-z][a-z0-9_]{0,62}", re.ASCII)
# Columns of the backends with tables.
_RESERVED = frozenset({"key", "vector", "embedding", "distance"})


@dataclass(frozen=True)
class IndexSpec:
    """Name, dimension and metadata fields of an index; no backend can alter them later.

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
