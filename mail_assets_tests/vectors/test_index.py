"""The spec of an index, and the batches that it cuts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mail_assets.vectors.index import IndexSpec, Vector, json_bound
from mail_assets.vectors.s3vectors import S3VectorsIndex

SPEC = IndexSpec("mail", 4, {"list": "string"}, ("subject",))


@pytest.mark.parametrize(("change", "reason"), [
    ({"name": "ab"}, "index name 'ab'"),
    ({"name": "a" * 46}, "3 to 45"),
    ({"name": "Mail"}, "3 to 45"),
    ({"name": "mail_v1"}, "3 to 45"),
    ({"name": "-mail"}, "letter or digit at both ends"),
    ({"name": "mail."}, "letter or digit at both ends"),
    ({"name": "mail\n"}, "index name"),
    ({"dimension": 0}, "dimension 0"),
    ({"dimension": 4097}, r"4097 is not in 1\.\.4096"),
    ({"fields": {"List": "string"}}, "field 'List'"),
    ({"fields": {"key": "string"}}, "other than distance, embedding, key, vector"),
    ({"fields": {"a`b": "string"}}, "field 'a`b'"),
    ({"fields": {"list": "text"}}, "list: no such type as 'text'"),
    ({"non_filterable": ("list",)}, "declared twice"),
    ({"non_filterable": tuple("abcdefghijk")}, "11 of them not filterable"),
    ({"fields": {f"f{n}": "number" for n in range(50)}}, "51 metadata fields"),
])  # fmt: skip
def test_spec_that_some_backend_cannot_hold_is_refused(change: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        replace(SPEC, **change)


@pytest.mark.parametrize("name", ["abc", "a" * 45, "chunks-v1.minilm", "0-0"])
def test_index_names_of_all_services_are_accepted(name: str) -> None:
    assert replace(SPEC, name=name).name == name


class Recorder(S3VectorsIndex):
    """An index that keeps its batches instead of sending them."""

    def __init__(self, spec: IndexSpec) -> None:
        super().__init__(spec, None, "mail", "nowhere")
        self.batches: list[list[Vector]] = []

    def _put(self, batch: Sequence[Vector]) -> None:
        self.batches.append(list(batch))


def wire_bytes(vector: Vector) -> int:
    record = {
        "key": vector.key,
        "data": {"float32": [float(str(value)) for value in vector.values]},
        "metadata": vector.metadata,
    }
    return len(json.dumps(record))


text = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=40)
floats = st.floats(-1000, 1000, width=32)


@settings(max_examples=100)
@given(
    st.builds(
        Vector,
        text.filter(bool),
        st.lists(floats, min_size=4, max_size=4).map(lambda x: np.array(x, np.float32)),
        st.fixed_dictionaries(
            {}, optional={"list": text, "subject": text | st.lists(text) | st.integers(-9, 9)}
        ),
    )
)
def test_estimated_size_is_an_upper_bound(vector: Vector) -> None:
    assert wire_bytes(vector) <= json_bound(vector)


def test_batches_keep_to_the_limits_of_a_request() -> None:
    narrow = Recorder(SPEC)
    values = np.ones(4, np.float32)
    narrow.put(Vector(f"k{n}", values, {}) for n in range(1_200))
    assert [len(batch) for batch in narrow.batches] == [500, 500, 200]

    wide = Recorder(replace(SPEC, dimension=4096))
    values = np.full(4096, -1.2345678e-3, np.float32)
    wide.put(Vector(f"k{n}", values, {"subject": "ü" * 15_000}) for n in range(200))
    assert sum(len(batch) for batch in wide.batches) == 200
    assert len(wide.batches) > 1
    # Of equal vectors the last has the longest key; all of them take seconds to write as JSON.
    assert all(len(batch) * wire_bytes(batch[-1]) < 20 << 20 for batch in wide.batches)
