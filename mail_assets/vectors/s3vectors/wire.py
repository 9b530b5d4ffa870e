"""Vectors, matches and indexes as JSON of the S3 Vectors API, and back."""

from typing import Any, NamedTuple, TypeAlias

import numpy as np

from mail_assets.vectors.vector import Match, Metadata, Vector, restore_int

WireObject: TypeAlias = dict[str, Any]


class StoredIndex(NamedTuple):
    """What the service says of an index; `hidden` are the names of what is not filterable."""

    dimension: int
    metric: str
    hidden: list[str]
    mode: str


def vector_to_wire(vector: Vector) -> WireObject:
    """Return a vector as put_vectors takes it."""
    # The shortest decimals that give the same float32: float32 widened to 17 digits makes a body
    # 1.6 times as long, and the client slower for it.
    values = [float(str(value)) for value in vector.values]
    wire: WireObject = {"key": vector.key, "data": {"float32": values}}
    return wire | ({"metadata": vector.metadata} if vector.metadata else {})


def vector_from_wire(wire: WireObject) -> Vector:
    """Return a vector from an answer of get_vectors, with what was asked for."""
    values = np.asarray(wire.get("data", {}).get("float32", []), dtype=np.float32)
    return Vector(wire["key"], values, _metadata(wire))


def match_from_wire(wire: WireObject) -> Match:
    """Return a match from an answer of query_vectors."""
    return Match(wire["key"], wire["distance"], _metadata(wire))


def index_from_wire(wire: WireObject) -> StoredIndex:
    """Return an index from an answer of get_index."""
    hidden = wire.get("metadataConfiguration", {}).get("nonFilterableMetadataKeys", [])
    mode = str(wire.get("indexMode", "service")).lower()
    return StoredIndex(wire["dimension"], wire["distanceMetric"], sorted(hidden), mode)


def _metadata(wire: WireObject) -> Metadata:
    return {name: restore_int(value) for name, value in wire.get("metadata", {}).items()}
