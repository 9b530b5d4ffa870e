"""The promises of an object store, from a folder and from S3 (moto's server); their particulars."""

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mail_assets.store.objects import ObjectStore, StoreError, check_key
from mail_assets.store.open import (
    STALE_SECONDS,
    TEMPORARY,
    FolderStore,
    check_store,
    open_store,
    store_folder,
)
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


def test_putting_file_that_is_not_there_stores_nothing(store: ObjectStore, tmp_path: Path) -> None:
    store.put_bytes("a", b"x")
    with pytest.raises(FileNotFoundError, match="nowhere"):
        store.put("a", tmp_path / "nowhere")
    assert read(store, "a") == b"x"


@pytest.mark.parametrize(("prefix", "keys"), [
    ("", ["Z", "a-b/c", "a/b", "a/b.c", "a/b/c", "a/é", "b"]),
    ("a", ["a-b/c", "a/b", "a/b.c", "a/b/c", "a/é"]),
    ("a/", ["a/b", "a/b.c", "a/b/c", "a/é"]),
    ("a/b", ["a/b", "a/b.c", "a/b/c"]),
    ("a/b/", ["a/b/c"]),
    ("c", []),
    ("c/d/", []),
])  # fmt: skip
def test_keys_are_listed_by_prefix_in_the_order_of_their_bytes(
    store: ObjectStore, prefix: str, keys: list[str]
) -> None:
    for key in ("b", "a/é", "a/b/c", "a/b.c", "a-b/c", "Z", *(["a/b"] if is_s3(store) else [])):
        store.put_bytes(key, b"")
    assert list(store.keys(prefix)) == [key for key in keys if key != "a/b" or is_s3(store)]


def is_s3(store: ObjectStore) -> bool:
    return isinstance(store, S3Store)


BAD_KEYS = [
    *("", "/", "/a", "a/", "a//b", "..", "../a", "a/../b", "a/./b", ".incoming/x", "a/.b", "a\\b"),
    *("a\nb", "a\x00b", "a\ud800", "x" * 201, "é" * 101, "a/" * 500 + "a"),
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


@pytest.mark.parametrize(("url", "kind", "folder"), [
    ("var/store", FolderStore, Path("var/store")),
    ("/var/store", FolderStore, Path("/var/store")),
    ("~/store", FolderStore, Path.home() / "store"),
    ("./s3:/store", FolderStore, Path("s3:/store")),
    ("/var/a:b", FolderStore, Path("/var/a:b")),
    ("file:///var/a%20store", FolderStore, Path("/var/a store")),
    ("file://localhost/var/store", FolderStore, Path("/var/store")),
    ("s3://mail", S3Store, None),
    ("s3://mail/a/prefix/", S3Store, None),
])  # fmt: skip
def test_url_selects_the_store_and_its_folder(
    url: str, kind: type[ObjectStore], folder: Path | None
) -> None:
    check_store(url)
    assert type(open_store(url)) is kind
    assert store_folder(url) == folder


@pytest.mark.parametrize(("url", "reason"), [
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
])  # fmt: skip
def test_other_urls_are_refused_with_a_reason(url: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        check_store(url)
    with pytest.raises(ValueError, match=reason):
        open_store(url)


def test_checking_a_url_loads_no_client_of_s3() -> None:
    code = "import sys, mail_assets.store.objects; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=True)
    assert not {b"boto3", b"botocore"} & set(loaded.stdout.split())


def test_path_and_its_file_url_are_the_same_store(tmp_path: Path) -> None:
    root = tmp_path / "a store"
    open_store(str(root)).put_bytes("a", b"x")
    with open_store(root.as_uri()).fetch("a") as path:
        assert path.read_bytes() == b"x"
    assert open_store(root).url("a") == (root / "a").as_uri()


def test_folders_files_are_private_with_any_umask(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    before = os.umask(0o000)
    try:
        store.put_bytes("a/b", b"x")
    finally:
        os.umask(before)
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "a/b").stat().st_mode & 0o777 == 0o600


def test_put_that_fails_leaves_the_object_and_no_other_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = FolderStore(tmp_path)
    store.put_bytes("a", b"before")

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("mail_assets.store.open.os.fsync", full)
        with pytest.raises(OSError, match="No space left"):
            store.put_bytes("a", b"after")
    assert (tmp_path / "a").read_bytes() == b"before"
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [tmp_path / "a"]


def test_file_and_every_folder_of_a_put_are_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    real = os.fsync

    def fsync(handle: int) -> None:
        synced.append(os.fstat(handle).st_ino)
        real(handle)

    monkeypatch.setattr("mail_assets.store.open.os.fsync", fsync)
    root = tmp_path / "store"
    FolderStore(root).put_bytes("a/b/c", b"x")
    for path in (tmp_path, root, root / "a", root / "a/b", root / "a/b/c"):
        assert path.stat().st_ino in synced
    assert synced[-1] == (root / "a/b").stat().st_ino


WRITER = """
import sys
from mail_assets.store.open import FolderStore
from pathlib import Path
store = FolderStore(Path(sys.argv[1]))
with store._replacing("a/b") as target:
    target.write(b"half")
    target.flush()
    print("writing", flush=True)
    sys.stdin.read()
"""


def test_killed_writers_file_is_never_seen_and_swept_when_old(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    store.put_bytes("a/b", b"before")
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"writing\n"
        writer.send_signal(signal.SIGKILL)
    [left] = (tmp_path / TEMPORARY).iterdir()
    assert left.read_bytes() == b"half"
    assert list(store.keys()) == ["a/b"]
    assert (tmp_path / "a/b").read_bytes() == b"before"
    store.put_bytes("c", b"")
    assert left.exists()  # it might yet be alive
    old = time.time() - STALE_SECONDS - 1
    os.utime(left, (old, old))
    store.put_bytes("c", b"")
    assert not left.exists()


def test_hidden_files_of_others_are_no_objects(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    store.put_bytes("a/b", b"")
    (tmp_path / "a/.DS_Store").write_bytes(b"")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git/config").write_bytes(b"")
    assert list(store.keys()) == ["a/b"]


def test_reader_keeps_its_file_while_another_is_put(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    store.put_bytes("a", b"before")
    with store.fetch("a") as path, path.open("rb") as file:
        store.put_bytes("a", b"after")
        assert file.read() == b"before"


def test_prefix_precedes_every_key_and_hides_neighbours(s3: Any) -> None:
    s3.put_object(Bucket="mail", Key="a/prefix2/x", Body=b"")
    s3.put_object(Bucket="mail", Key="a/prefix/", Body=b"")  # as consoles make folders
    s3.put_object(Bucket="mail", Key="a/prefix/.hidden", Body=b"")
    store = open_store("s3://mail/a/prefix")
    store.put_bytes("k", b"x")
    assert store.url("k") == "s3://mail/a/prefix/k"
    assert s3.get_object(Bucket="mail", Key="a/prefix/k")["Body"].read() == b"x"
    assert list(store.keys()) == ["k"]


def test_download_is_gone_after_its_block(s3: Any) -> None:
    store = open_store("s3://mail")
    store.put_bytes("a/2024-05.gz", b"x")
    with store.fetch("a/2024-05.gz") as path:
        assert path.name == "2024-05.gz"
    assert not path.parent.exists()


def test_listing_of_many_pages_is_read_to_its_end(s3: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOTO_S3_DEFAULT_MAX_KEYS", "5")
    keys = [f"{number:02d}" for number in range(12)]
    for key in keys:
        s3.put_object(Bucket="mail", Key=key, Body=b"")
    assert s3.list_objects_v2(Bucket="mail")["IsTruncated"]
    assert list(open_store("s3://mail").keys()) == keys


def test_missing_bucket_is_named_with_its_remedy(s3: Any, tmp_path: Path) -> None:
    store = open_store("s3://nothing")
    path = tmp_path / "file"
    path.write_bytes(b"x")
    with pytest.raises(StoreError, match=r"s3://nothing/a: .*NoSuchBucket"):
        store.put_bytes("a", b"")
    with pytest.raises(StoreError, match=r"s3://nothing/a: .*NoSuchBucket"):
        store.put("a", path)
    with pytest.raises(StoreError, match=r"s3://nothing/.*NoSuchBucket; create the bucket"):
        list(store.keys())
