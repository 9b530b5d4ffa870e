"""The promises of an object store, from a folder and from S3 (moto's server)."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mail_assets.store.objects import ObjectStore, check_key
from mail_assets.store.open import FolderStore, check_store, open_store, store_folder
from mail_assets.store.s3 import S3Store


@pytest.fixture(params=["folder", "bucket", "prefix"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> ObjectStore:
    if request.param == "folder":
        return open_store(tmp_path / "not" / "yet" / "made")
    request.getfixturevalue("s3")
    return open_store("s3://mail" if request.param == "bucket" else "s3://mail/a/prefix/")


def read(store: ObjectStore, key: str) -> bytes:
    with store.fetch(key) as path:
        return path.read_bytes()


# --- promises of every store ------------------------------------------------------------------


def test_object_is_read_back_and_last_put_wins(store: ObjectStore, tmp_path: Path) -> None:
    key = "archives/pgsql-hackers/2024-05.gz"
    path = tmp_path / "file"
    path.write_bytes(b"first")
    store.put(key, path)
    assert (read(store, key), store.size(key), store.exists(key)) == (b"first", 5, True)
    assert path.read_bytes() == b"first"
    store.put_bytes(key, b"")
    assert (read(store, key), store.size(key), store.exists(key)) == (b"", 0, True)


def test_file_of_many_parts_is_read_back_whole(store: ObjectStore, tmp_path: Path) -> None:
    data = os.urandom(1 << 20) * 20  # S3 takes 8 MiB a part
    path = tmp_path / "file"
    path.write_bytes(data)
    store.put("big", path)
    assert store.size("big") == len(data)
    assert read(store, "big") == data


def test_object_can_be_put_onto_itself(store: ObjectStore) -> None:
    store.put_bytes("a", b"x")
    with store.fetch("a") as path:
        store.put("a", path)
    assert read(store, "a") == b"x"


def test_missing_object_is_named_by_its_url(store: ObjectStore) -> None:
    assert not store.exists("a/b")
    with pytest.raises(FileNotFoundError, match=r"the store has no object .*a/b") as found:
        store.size("a/b")
    assert store.url("a/b") in str(found.value)
    with (
        pytest.raises(FileNotFoundError, match=r"the store has no object .*a/b"),
        store.fetch("a/b"),
    ):
        pass


def test_deleting_is_done_once_and_harmless_twice(store: ObjectStore) -> None:
    store.put_bytes("a/b", b"x")
    store.put_bytes("a/c", b"x")
    store.delete("a/b")
    store.delete("a/b")
    assert list(store.keys()) == ["a/c"]


def test_putting_a_file_that_is_not_there_stores_nothing(
    store: ObjectStore, tmp_path: Path
) -> None:
    store.put_bytes("a", b"x")
    with pytest.raises(FileNotFoundError, match="nowhere"):
        store.put("a", tmp_path / "nowhere")
    assert read(store, "a") == b"x"


@pytest.mark.parametrize(
    ("prefix", "keys"),
    [
        ("", ["Z", "a-b/c", "a/b", "a/b.c", "a/b/c", "a/é", "b"]),
        ("a", ["a-b/c", "a/b", "a/b.c", "a/b/c", "a/é"]),
        ("a/", ["a/b", "a/b.c", "a/b/c", "a/é"]),
        ("a/b", ["a/b", "a/b.c", "a/b/c"]),
        ("a/b/", ["a/b/c"]),
        ("c", []),
        ("c/d/", []),
    ],
)
def test_keys_are_listed_by_prefix_in_the_order_of_their_bytes(
    store: ObjectStore, prefix: str, keys: list[str]
) -> None:
    for key in ("b", "a/é", "a/b/c", "a/b.c", "a-b/c", "Z", *(["a/b"] if is_s3(store) else [])):
        store.put_bytes(key, b"")
    assert list(store.keys(prefix)) == [key for key in keys if key != "a/b" or is_s3(store)]


def is_s3(store: ObjectStore) -> bool:
    return isinstance(store, S3Store)


BAD_KEYS = [
    "",
    "/",
    "/a",
    "a/",
    "a//b",
    "..",
    "../a",
    "a/../b",
    "a/./b",
    ".incoming/x",
    "a/.b",
    "a\\b",
    "a\nb",
    "a\x00b",
    "a\ud800",
    "x" * 201,
    "é" * 101,
    "a/" * 500 + "a",
]


@pytest.mark.parametrize("key", BAD_KEYS)
def test_malformed_key_is_refused_everywhere(tmp_path: Path, key: str) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"")
    for store in (FolderStore(tmp_path / "store"), S3Store("mail", "")):
        with pytest.raises(ValueError, match="cannot be a store key"):
            store.put(key, path)
        with pytest.raises(ValueError, match="cannot be a store key"):
            store.put_bytes(key, b"")
        with pytest.raises(ValueError, match="cannot be a store key"):
            store.fetch(key).__enter__()
        for method in (store.exists, store.size, store.delete, store.url):
            with pytest.raises(ValueError, match="cannot be a store key"):
                method(key)
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize("prefix", ["/", "../", "a//", "a/../b", ".inc"])
def test_malformed_prefix_is_refused(store: ObjectStore, prefix: str) -> None:
    with pytest.raises(ValueError, match="cannot be a store key"):
        list(store.keys(prefix))


@given(st.text(max_size=20))
@settings(max_examples=200)
def test_key_that_passes_stays_inside_the_folder(key: str) -> None:
    try:
        check_key(key)
    except ValueError:
        return
    root = Path("/store")
    assert Path(os.path.normpath(root / key)) == root / key
    assert (root / key).is_relative_to(root)
    assert root / key != root


# --- which URLs are stores --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "kind", "folder"),
    [
        ("var/store", FolderStore, Path("var/store")),
        ("/var/store", FolderStore, Path("/var/store")),
        ("~/store", FolderStore, Path.home() / "store"),
        ("./s3:/store", FolderStore, Path("s3:/store")),
        ("/var/a:b", FolderStore, Path("/var/a:b")),
        ("file:///var/a%20store", FolderStore, Path("/var/a store")),
        ("file://localhost/var/store", FolderStore, Path("/var/store")),
        ("s3://mail", S3Store, None),
        ("s3://mail/a/prefix/", S3Store, None),
    ],
)
def test_url_selects_the_store_and_its_folder(
    url: str, kind: type[ObjectStore], folder: Path | None
) -> None:
    check_store(url)
    assert type(open_store(url)) is kind
    assert store_folder(url) == folder


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("", "store is needed"),
        ("http://example.org/", "cannot be at http://"),
        ("file://server/share", "no folder of this machine"),
        ("file://", "no folder of this machine"),
        ("s3://", "no bucket"),
        ("s3:///prefix", "no bucket"),
        ("s3:/mail", "two slashes"),
        ("S3:mail", "two slashes"),
        ("file:/var/store", "two slashes"),
        ("s3://key:secret@bucket", "no bucket"),
    ],
)
def test_other_urls_are_refused_with_a_reason(url: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        check_store(url)
    with pytest.raises(ValueError, match=reason):
        open_store(url)


def test_checking_a_url_loads_no_client_of_s3() -> None:
    code = "import sys, mail_assets.store.objects; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=True)
    assert not {b"boto3", b"botocore"} & set(loaded.stdout.split())
