"""Every backend refuses bad input before it writes anything."""

from __future__ import annotations

import numpy as np
import pytest

from mail_assets.vectors.index import Vector, VectorError, VectorIndex
from mail_assets_tests.vectors.samples import SPEC, unit, vector

NAN, INFINITE = unit(1), unit(1)
NAN[3], INFINITE[0] = np.nan, -np.inf


BAD_VECTORS: list[tuple[Vector, str]] = [
    (Vector("bad", unit(1, 7), {}), r"'bad' has shape \(7,\), the index \(8,\)"),
    (Vector("bad", unit(1, 8).reshape(2, 4), {}), "shape"),
    (Vector("bad", NAN, {}), "'bad' holds NaN or Inf"),
    (Vector("bad", INFINITE, {}), "'bad' holds NaN or Inf"),
    (Vector("bad", np.zeros(8, np.float32), {}), "'bad' is the zero vector"),
    (Vector("bad", unit(1) * np.float32(1e-6), {}), "length 1e-06"),
    (Vector("bad", unit(1) * np.float32(1e6), {}), r"length 1e\+06"),
    (Vector("", unit(1), {}), "1 to 1024 bytes"),
    (Vector("k" * 1_025, unit(1), {}), "1 to 1024 bytes"),
    (Vector("ü" * 513, unit(1), {}), "1 to 1024 bytes"),
    (Vector("nul\0", unit(1), {}), "without NUL"),
    (Vector("lone \ud800", unit(1), {}), "UTF-8"),
    (Vector("bad", unit(1), {"list": "x" * 2_040}), "2051 of them filterable"),
    (Vector("bad", unit(1), {"list": "ü" * 1_020}), "2051 of them filterable"),
    (Vector("bad", unit(1), {"subject": "x" * 40_960}), "40974 bytes of metadata"),
    (Vector("bad", unit(1), {"text": "x"}), "'text': the index has no such field"),
    (Vector("bad", unit(1), {"list": 1}), "1 is not a string"),
    (Vector("bad", unit(1), {"list": ["a"]}), "is not a string"),
    (Vector("bad", unit(1), {"list": "nul\0"}), "'list'"),
    (Vector("bad", unit(1), {"subject": ["lone \ud800"]}), "'subject'"),
    (Vector("bad", unit(1), {"month": "x"}), "'x' is not a finite number"),
    (Vector("bad", unit(1), {"month": True}), "True is not a finite number"),
    (Vector("bad", unit(1), {"month": float("inf")}), "inf is not a finite number"),
    (Vector("bad", unit(1), {"month": 2**53 + 1}), "is not a finite number"),
    (Vector("bad", unit(1), {"month": -(10**400)}), "is not a finite number"),
]


def test_a_bad_vector_stops_its_whole_batch(
    index: VectorIndex,
) -> None:
    for bad, reason in BAD_VECTORS:
        with pytest.raises(VectorError, match=reason) as caught:
            index.put([vector(1), bad])
        assert SPEC.name in str(caught.value)
    assert index.count() == 0


def test_metadata_at_the_limits_is_stored(index: VectorIndex) -> None:
    widest = "x" * (2_048 - len('{"list":""}'))
    longest = "ü" * ((40_960 - 2_048 - len(',"subject":""')) // 2)
    index.put([vector(1, list=widest, subject=longest)])
    assert index.get(["key-0001"])["key-0001"].metadata == {"list": widest, "subject": longest}


def test_a_bad_query_vector_is_refused(index: VectorIndex) -> None:
    for bad in (unit(1, 9), NAN, INFINITE, np.zeros(8, np.float32)):
        with pytest.raises(VectorError, match="the query vector"):
            index.query(bad, 1)


def test_top_k_outside_the_caps_is_refused(index: VectorIndex) -> None:
    for top_k in (0, -1, index.capabilities.max_top_k + 1):
        with pytest.raises(VectorError, match=f"top_k is {top_k}; ask for 1 to"):
            index.query(unit(1), top_k)
