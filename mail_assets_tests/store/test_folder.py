"""Particulars of a folder: syncing, the umask, files of killed writers and of others."""

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mail_assets.store.open import STALE_SECONDS, TEMPORARY, FolderStore, open_store


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
