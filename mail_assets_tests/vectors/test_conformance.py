"""Every backend stores, returns, deletes and finds vectors alike."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mail_assets.vectors.index import Metadata, Vector, VectorIndex
from mail_assets_tests.vectors.samples import cosine_distance, unit, vector


def test_get_returns_what_was_put(index: VectorIndex) -> None:
    metadata: Metadata = {
        "list": 'O\'Brien "x" \\ % ` 漢字 😀',
        "month": 202401,
        "sender": "",
        "subject": ["a", "b"],
    }
    full, bare = replace(vector(1), metadata=metadata), vector(2)
    assert index.put([full, bare]) == 2
    found = index.get(["key-0001", "key-0002", "absent"], data=True)
    assert list(found) == ["key-0001", "key-0002"]
    assert found["key-0001"].metadata == metadata
    assert found["key-0002"].metadata == {}
    for stored in (full, bare):
        # Half precision in one backend.
        np.testing.assert_allclose(found[stored.key].values, stored.values, atol=5e-4)
        assert found[stored.key].values.dtype == np.float32


def test_non_filterable_metadata_keep_value_and_type(index: VectorIndex) -> None:
    values: list[str | float | bool | list[str]]
    values = ["text", 7, 2.5, -1, True, False, ["one", "two"], [], "x" * 30_000]
    index.put(replace(vector(n), metadata={"subject": value}) for n, value in enumerate(values))
    found = index.get(f"key-{n:04}" for n in range(len(values)))
    got = [stored.metadata["subject"] for stored in found.values()]
    assert got == values
    assert list(map(type, got)) == list(map(type, values))


def test_whole_numbers_come_back_as_int(index: VectorIndex) -> None:
    index.put([vector(1, month=202401.0), vector(2, month=0.5), vector(3, month=2**53)])
    months = [stored.metadata["month"] for stored in index.get(sorted(index.keys())).values()]
    assert months == [202401, 0.5, 2**53]
    assert [type(month) for month in months] == [int, float, int]
    index.put([vector(4, subject=3.0)])
    assert type(index.get(["key-0004"])["key-0004"].metadata["subject"]) is int


def test_get_returns_values_only_when_asked(index: VectorIndex) -> None:
    index.put([vector(1, list="a")])
    found = index.get(["key-0001"])["key-0001"]
    assert found.values.shape == (0,)
    assert found.metadata == {"list": "a"}


def test_a_query_without_metadata_finds_the_same(index: VectorIndex) -> None:
    index.put([vector(n, list="ab"[n % 2], month=n, subject="s") for n in range(8)])
    for where in (None, {"list": "a"}):
        full = index.query(unit(3), 5, where)
        assert all(match.metadata for match in full)
        bare = index.query(unit(3), 5, where, metadata=False)
        assert bare == [replace(match, metadata={}) for match in full]


def test_putting_again_overwrites_and_forgets_old_metadata(index: VectorIndex) -> None:
    index.put([vector(1, list="a", month=1), vector(2)])
    index.put([Vector("key-0001", unit(99), {"list": "b"})])
    found = index.get(["key-0001"], data=True)["key-0001"]
    assert found.metadata == {"list": "b"}
    np.testing.assert_allclose(found.values, unit(99), atol=5e-4)
    assert index.count() == 2


def test_the_last_of_equal_keys_wins_and_counts_once(index: VectorIndex) -> None:
    assert index.put([vector(1, list="first"), vector(2), vector(1, list="last")]) == 2
    assert index.count() == 2
    assert index.get(["key-0001"])["key-0001"].metadata == {"list": "last"}


def test_putting_and_deleting_nothing_is_allowed(index: VectorIndex) -> None:
    assert index.put([]) == 0
    assert index.delete([]) == 0
    assert index.get([]) == {}
    assert list(index.keys()) == []
    assert index.query(unit(1), 10) == []


def test_more_than_a_batch_goes_in_and_out(index: VectorIndex) -> None:
    vectors = [vector(number, month=number % 3) for number in range(1_203)]
    keys = {stored.key for stored in vectors}
    assert index.put(iter(vectors)) == 1_203
    assert index.count() == 1_203
    listed = list(index.keys())
    assert len(listed) == 1_203
    assert set(listed) == keys
    assert index.get(keys).keys() == keys
    assert index.delete(iter([*listed[:1_100], "absent"])) == 1_101
    assert set(index.keys()) == set(listed[1_100:])


def test_deleting_missing_keys_changes_nothing(index: VectorIndex) -> None:
    index.put([vector(1), vector(2)])
    assert index.delete(["absent", "key-0002", "key-0002", "it's"]) == 3
    assert index.delete(["key-0002"]) == 1
    assert list(index.keys()) == ["key-0001"]


def test_any_text_within_limits_is_a_key(index: VectorIndex) -> None:
    keys = ["a", "k" * 1_024, "ü" * 512, "it's", 'a"b\\c`d%s{}', "😀 #1", "--", "$1", "NULL"]
    index.put(Vector(key, unit(n), {}) for n, key in enumerate(keys))
    assert list(index.get(keys)) == keys
    assert [index.query(unit(n), 1)[0].key for n in range(len(keys))] == keys
    for n, key in enumerate(keys, start=1):
        index.delete([key])
        assert list(index.get(keys)) == keys[n:]


def test_a_query_returns_the_nearest_first(index: VectorIndex) -> None:
    vectors = {stored.key: stored for stored in (vector(n, month=n) for n in range(150))}
    index.put(vectors.values())
    query = unit(1_000)
    true = {key: cosine_distance(query, stored.values) for key, stored in vectors.items()}
    for top_k in (1, 7, 100):
        found = index.query(query, top_k)
        distances = [match.distance for match in found]
        assert distances == pytest.approx(sorted(true.values())[:top_k], abs=1e-3)
        assert distances == sorted(distances)
        for match in found:
            assert match.distance == pytest.approx(true[match.key], abs=1e-3)
            assert match.metadata == vectors[match.key].metadata


def test_distances_run_from_same_to_opposite_at_any_length(index: VectorIndex) -> None:
    axis = np.eye(8, dtype=np.float32)
    index.put(
        [
            Vector("same", axis[0] * 3, {}),
            Vector("across", axis[1] * np.float32(0.02), {}),
            Vector("opposite", -axis[0] * 5_000, {}),
        ]
    )
    found = index.query(axis[0] * 7, 3)
    assert [match.key for match in found] == ["same", "across", "opposite"]
    assert [match.distance for match in found] == pytest.approx([0, 1, 2], abs=1e-4)
    assert all(0 <= match.distance <= 2 for match in found)


def test_equal_distances_come_in_key_order(index: VectorIndex) -> None:
    index.put([Vector(key, unit(1), {}) for key in ("c", "a", "d", "b")])
    assert [match.key for match in index.query(unit(1), 4)] == ["a", "b", "c", "d"]
