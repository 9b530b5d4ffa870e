"""The files of embeddings: whole, sorted, and the same bytes for the same vectors."""

import hashlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mail_assets.store.embeddings import (
    EmbeddingsError,
    file_fingerprint,
    file_key,
    parts_prefix,
    read_vectors,
    write_vectors,
)
from mail_assets.store.objects import ObjectStore, open_store

KEY = file_key("dev", "2024-03", "f1")

FLOATS = st.lists(st.floats(width=32, allow_nan=False), min_size=4, max_size=4)
HASHES = st.binary(min_size=32, max_size=32)


@pytest.fixture
def store(tmp_path: Path) -> ObjectStore:
    return open_store(tmp_path / "store")


def vectors(
    count: int, dimension: int = 8
) -> dict[bytes, np.ndarray[tuple[int], np.dtype[np.float32]]]:
    random = np.random.default_rng(count)
    return {
        hashlib.sha256(bytes([n])).digest(): random.normal(size=dimension).astype(np.float32)
        for n in range(count)
    }


@settings(deadline=None, max_examples=50, derandomize=True)
@given(st.dictionaries(HASHES, FLOATS, min_size=1, max_size=20))
def test_what_is_written_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, content: dict[bytes, list[float]]
) -> None:
    store = open_store(tmp_path_factory.mktemp("store"))
    write_vectors(store, KEY, content, "f1")
    found = read_vectors(store, KEY)
    assert {text_hash: vector.tolist() for text_hash, vector in found.items()} == content
    assert {vector.dtype for vector in found.values()} == {np.dtype(np.float32)}


def test_the_same_vectors_make_the_same_bytes(store: ObjectStore) -> None:
    content = vectors(50)
    size = write_vectors(store, KEY, content, "f1")
    with store.fetch(KEY) as path:
        first = path.read_bytes()
    write_vectors(store, KEY, dict(reversed(content.items())), "f1")
    with store.fetch(KEY) as path:
        assert path.read_bytes() == first
    assert size == len(first) == store.size(KEY)


def test_only_the_wanted_vectors_are_read(store: ObjectStore) -> None:
    content = vectors(5)
    write_vectors(store, KEY, content, "f1")
    one, two, *_ = content
    assert read_vectors(store, KEY, [one, two, b"unknown"]).keys() == {one, two}
    assert read_vectors(store, KEY, []) == {}
    assert np.array_equal(read_vectors(store, KEY, [two])[two], content[two])


def test_a_file_that_is_not_there_has_no_vectors(store: ObjectStore) -> None:
    assert read_vectors(store, KEY) == {}


def test_parts_are_neither_a_months_file_nor_another_encoders(store: ObjectStore) -> None:
    part = f"{parts_prefix('dev', '2024-03', 'f1')}0001.parquet"
    write_vectors(store, part, vectors(3), "f1")
    assert not store.exists(KEY)
    assert read_vectors(store, KEY) == {}
    assert [*store.keys(parts_prefix("dev", "2024-03", "f1"))] == [part]
    assert [*store.keys(parts_prefix("dev", "2024-03", "f"))] == []
    write_vectors(store, KEY, vectors(2), "f1")
    assert len(read_vectors(store, KEY)) == 2
    assert [*store.keys(parts_prefix("dev", "2024-03", "f1"))] == [part]


def test_a_file_says_who_made_it(store: ObjectStore) -> None:
    write_vectors(store, KEY, vectors(1), "f1")
    assert file_fingerprint(store, KEY) == "f1"


def test_a_longer_vector_than_the_others_is_refused(store: ObjectStore) -> None:
    content: dict[bytes, object] = {b"1" * 32: [0.0, 1.0], b"2" * 32: [0.0]}
    with pytest.raises(ValueError, match="inhomogeneous"):
        write_vectors(store, KEY, content, "f1")
    assert not store.exists(KEY)


def test_a_damaged_file_is_named_with_its_remedy(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    store.put_bytes("embeddings/l/2024-01/f.parquet", b"PAR1 but not really")
    with pytest.raises(EmbeddingsError, match=r"f\.parquet is damaged .* materialize embeddings"):
        read_vectors(store, "embeddings/l/2024-01/f.parquet")
