"""Files of embeddings: whole, sorted, and equal for equal vectors."""

import hashlib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mail_assets.month import ListMonth
from mail_assets.store import embeddings
from mail_assets.store.embeddings import (
    EmbeddingsFileError,
    copy_embeddings,
    file_key,
    merge_embeddings,
    part_key,
    parts_prefix,
    read_contents,
    read_embeddings,
    read_fingerprint,
    read_hashes,
    write_embeddings,
)
from mail_assets.store.objects import ObjectStore
from mail_assets.store.open import open_store

MARCH = ListMonth("dev", "2024-03")
KEY = file_key(MARCH, "f1")

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


@settings(max_examples=50)
@given(st.dictionaries(HASHES, FLOATS, min_size=1, max_size=20))
def test_written_embeddings_are_read_back(
    tmp_path_factory: pytest.TempPathFactory, content: dict[bytes, list[float]]
) -> None:
    store = open_store(tmp_path_factory.mktemp("store"))
    write_embeddings(store, KEY, content, "f1")
    found = read_embeddings(store, KEY)
    assert {text_hash: vector.tolist() for text_hash, vector in found.items()} == content
    assert {vector.dtype for vector in found.values()} == {np.dtype(np.float32)}


def test_same_vectors_make_the_same_bytes(store: ObjectStore) -> None:
    content = vectors(50)
    size = write_embeddings(store, KEY, content, "f1")
    with store.fetch(KEY) as path:
        first = path.read_bytes()
    write_embeddings(store, KEY, dict(reversed(content.items())), "f1")
    with store.fetch(KEY) as path:
        assert path.read_bytes() == first
    assert size == len(first) == store.size(KEY)


def test_only_the_wanted_vectors_are_read(store: ObjectStore) -> None:
    content = vectors(5)
    write_embeddings(store, KEY, content, "f1")
    one, two, *_ = content
    assert read_embeddings(store, KEY, [one, two, b"unknown"]).keys() == {one, two}
    assert read_embeddings(store, KEY, []) == {}
    assert np.array_equal(read_embeddings(store, KEY, [two])[two], content[two])


def test_file_that_is_not_there_has_no_vectors(store: ObjectStore) -> None:
    assert read_embeddings(store, KEY) == {}


def test_parts_are_neither_a_months_file_nor_another_encoders(store: ObjectStore) -> None:
    part = f"{parts_prefix(MARCH, 'f1')}0001.parquet"
    write_embeddings(store, part, vectors(3), "f1")
    assert not store.exists(KEY)
    assert read_embeddings(store, KEY) == {}
    assert [*store.keys(parts_prefix(MARCH, "f1"))] == [part]
    assert [*store.keys(parts_prefix(MARCH, "f"))] == []
    write_embeddings(store, KEY, vectors(2), "f1")
    assert len(read_embeddings(store, KEY)) == 2
    assert [*store.keys(parts_prefix(MARCH, "f1"))] == [part]


def test_file_has_the_fingerprint_of_its_encoder(store: ObjectStore) -> None:
    write_embeddings(store, KEY, vectors(1), "f1")
    assert read_fingerprint(store, KEY) == "f1"


def test_longer_vector_than_the_others_is_refused(store: ObjectStore) -> None:
    content: dict[bytes, object] = {b"1" * 32: [0.0, 1.0], b"2" * 32: [0.0]}
    with pytest.raises(ValueError, match="inhomogeneous"):
        write_embeddings(store, KEY, content, "f1")
    assert not store.exists(KEY)


def test_damaged_file_is_named_with_its_remedy(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    store.put_bytes("embeddings/l/2024-01/f.parquet", b"PAR1 but not really")
    with pytest.raises(EmbeddingsFileError, match=r"f\.parquet is damaged .* --only embeddings"):
        read_embeddings(store, "embeddings/l/2024-01/f.parquet")


@settings(max_examples=100)
@given(data=st.data(), group=st.integers(1, 4))
def test_merged_file_equals_the_one_written_at_once(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, group: int
) -> None:
    store = open_store(tmp_path_factory.mktemp("store"))
    content = vectors(data.draw(st.integers(1, 25)))
    wanted = sorted(data.draw(st.sets(st.sampled_from([*content]), min_size=1)))
    # each hash lies in one source at least
    places = {h: data.draw(st.sets(st.integers(0, 3), min_size=1)) for h in content}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(embeddings, "GROUP", group)
        patch.setattr("mail_assets.store.open.os.fsync", lambda handle: None)  # 1,500 of them
        sources = []
        for number in range(4):
            if held := {h: v for h, v in content.items() if number in places[h]}:
                sources.append(f"sources/{number}.parquet")
                write_embeddings(store, sources[-1], held, "f1")
        size = merge_embeddings(store, sources, wanted, KEY, "f1")
        with store.fetch(KEY) as path:
            merged = path.read_bytes()
        assert write_embeddings(store, KEY, {h: content[h] for h in wanted}, "f1") == size
        with store.fetch(KEY) as path:
            assert path.read_bytes() == merged


def test_merging_takes_no_more_memory_for_more_parts(
    store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embeddings, "GROUP", 50)
    numbers = np.random.default_rng(1).normal(size=(4_000, 96)).astype(np.float32)
    content = {n.to_bytes(32, "big"): vector for n, vector in enumerate(numbers)}
    hashes, parts, before = [*content], [], pa.default_memory_pool()
    for start in range(0, len(hashes), 50):
        parts.append(f"parts/{start}.parquet")
        write_embeddings(
            store, parts[-1], {h: content[h] for h in hashes[start : start + 50]}, "f1"
        )
    peaks = []
    for count in (8, 80):
        pool = pa.proxy_memory_pool(before)
        pa.set_memory_pool(pool)
        try:
            merge_embeddings(store, parts[:count], hashes[: 50 * count], KEY, "f1")
        finally:
            pa.set_memory_pool(before)
        peaks.append(pool.max_memory())
    assert peaks[1] < 1.5 * peaks[0]
    assert peaks[1] < numbers.nbytes / 2


def test_file_may_be_a_source_of_its_own_successor(store: ObjectStore) -> None:
    content = vectors(5)
    write_embeddings(store, KEY, content, "f1")
    merge_embeddings(store, [KEY], sorted(content)[1:3], KEY, "f1")
    assert read_hashes(store, KEY) == sorted(content)[1:3]
    assert read_fingerprint(store, KEY) == "f1"


def test_hash_that_no_source_holds_is_no_file(store: ObjectStore) -> None:
    content = vectors(5)
    write_embeddings(store, KEY, content, "f1")
    with pytest.raises(KeyError):
        merge_embeddings(store, [KEY], sorted([*content, b"\0" * 32]), "merged.parquet", "f1")
    assert not store.exists("merged.parquet")


def test_copy_is_a_part_with_the_vectors_found(
    store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embeddings, "GROUP", 2)
    content, prefix = vectors(9), parts_prefix(ListMonth("dev", "2024-04"), "f1")
    write_embeddings(store, KEY, content, "f1")
    wanted = {*sorted(content)[3:8], b"\0" * 32}
    found = copy_embeddings(store, KEY, wanted, prefix, 8)
    assert found == wanted - {b"\0" * 32}
    [part] = store.keys(prefix)
    assert part == part_key(prefix, min(found))
    assert read_contents(store, part) == (sorted(found), 8)
    assert read_fingerprint(store, part) == "f1"
    copied = read_embeddings(store, part)
    assert all(np.array_equal(copied[text_hash], content[text_hash]) for text_hash in found)


def test_without_vectors_nothing_is_copied(store: ObjectStore) -> None:
    write_embeddings(store, KEY, vectors(3), "f1")
    assert copy_embeddings(store, KEY, {b"\0" * 32}, "parts/", 8) == set()
    assert copy_embeddings(store, KEY, {*vectors(3)}, "parts/", 9) == set(), "another dimension"
    assert copy_embeddings(store, "absent.parquet", {b"\0" * 32}, "parts/", 8) == set()
    assert [*store.keys()] == [KEY]


@pytest.mark.parametrize("place", [0, 200, -10], ids=["start", "middle", "end"])
def test_damaged_file_is_named_by_every_reader(place: int, store: ObjectStore) -> None:
    content = vectors(40)
    write_embeddings(store, KEY, content, "f1")
    with store.fetch(KEY) as path:
        broken = bytearray(path.read_bytes())
        broken[place : place + 9] = b"\xff" * len(broken[place : place + 9])
        path.write_bytes(broken)
    with pytest.raises(EmbeddingsFileError, match="is damaged"):
        merge_embeddings(store, [KEY], sorted(content), "merged.parquet", "f1")
    assert not store.exists("merged.parquet")
