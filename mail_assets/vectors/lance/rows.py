"""Vectors as rows of a LanceDB table: its Arrow schema, to rows and back."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from mail_assets.lance.table import PRIMARY_KEY, READ_SINGLY
from mail_assets.vectors.spec import IndexSpec
from mail_assets.vectors.vector import Metadata, Vector, restore_int


def arrow_schema(spec: IndexSpec) -> pa.Schema:
    """Return key, vector, the fields, and what is not filterable as JSON (large_string)."""
    kinds = {"string": pa.string(), "number": pa.float64()}
    return pa.schema(
        [
            pa.field("key", pa.string(), nullable=False, metadata={**PRIMARY_KEY, **READ_SINGLY}),
            pa.field("vector", pa.list_(pa.float32(), spec.dimension)),
            *(pa.field(name, kinds[kind]) for name, kind in spec.fields.items()),
            *(pa.field(name, pa.large_string()) for name in spec.non_filterable),
        ]
    )


def column_types(schema: pa.Schema) -> dict[str, str]:
    """Return the columns by name, in terms that can be compared."""
    return {field.name: str(field.type) for field in schema}


def vector_dimension(schema: pa.Schema) -> int:
    """Return how many numbers each vector of a table has."""
    return int(schema.field("vector").type.list_size)


def filterable_fields(schema: pa.Schema) -> list[str]:
    """Return the columns of the fields that can be filtered by, in their order."""
    others = ("key", "vector")
    return [f.name for f in schema if f.name not in others and f.type != pa.large_string()]


def to_arrow(batch: Sequence[Vector], spec: IndexSpec) -> pa.Table:
    """Return vectors as rows."""
    schema = arrow_schema(spec)
    values = np.concatenate([vector.values for vector in batch])
    columns = [
        pa.array([vector.key for vector in batch], pa.string()),
        pa.FixedSizeListArray.from_arrays(pa.array(values), spec.dimension),
    ]
    for name in [*spec.fields, *spec.non_filterable]:
        given = (vector.metadata.get(name) for vector in batch)
        if name in spec.non_filterable:
            given = (None if value is None else json.dumps(value) for value in given)
        columns.append(pa.array(list(given), schema.field(name).type))
    return pa.Table.from_arrays(columns, schema=schema)


def row_metadata(row: Mapping[str, Any], spec: IndexSpec) -> Metadata:
    """Return a row's metadata, without what is null."""
    given = {name: restore_int(row[name]) for name in spec.fields if row[name] is not None}
    hidden = (name for name in spec.non_filterable if row[name] is not None)
    return given | {name: restore_int(json.loads(row[name])) for name in hidden}
