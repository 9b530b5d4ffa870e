"""Errors of a full disk name the path and the free space, in every part of the program."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from mail_assets.files import find_full_disk
from mail_assets.store.open import open_store
from mail_assets_tests.cli.conftest import Home


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 256 kB with 4 kB free."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, check=False).returncode:
        pytest.skip("only root may mount a small disk")
    try:
        (folder / "ballast").write_bytes(bytes(252 << 10))
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_store_names_the_file_that_found_no_room(small_disk: Path) -> None:
    store = open_store(str(small_disk / "store"))
    with pytest.raises(OSError, match="No space left") as caught:
        store.put_bytes("archives/one.mbox", bytes(20_000))
    full = find_full_disk(caught.value, ())
    assert str(full).startswith(
        f"no space is left for {small_disk}/store/archives/one.mbox: 0.0 of "
    )


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("lance error: LanceError(IO): No space left on device (os error 28)"),
        OSError(28, "No space left on device"),
        OSError(122, "Disk quota exceeded"),
    ],
)
def test_fullest_folder_is_named_when_the_error_names_none(
    small_disk: Path, tmp_path: Path, error: Exception
) -> None:
    try:
        raise ValueError("something else") from error
    except ValueError as raised:
        full = find_full_disk(raised, [tmp_path, small_disk / "not" / "made"])
    assert f"no space is left for {small_disk}/not/made: " in str(full)
    assert find_full_disk(ValueError("no room"), [small_disk]) is None


@pytest.mark.slow
@pytest.mark.parametrize("place", ["MAIL_STORE", "MAIL_WORDS", "MAIL_VECTORS"])
def test_backfill_names_the_full_disk(
    tmp_path: Path, home_dsn: str, model_cache: Path, small_disk: Path, place: str
) -> None:
    (tmp_path / "home").mkdir()
    home = Home(tmp_path / "home", home_dsn, model_cache)
    folder = small_disk / "here"
    home.environ[place] = str(folder) if place == "MAIL_STORE" else f"lance:{folder}"
    result = home.run("backfill", "--fast")
    assert result.exit_code == 1
    assert "no space is left for" in result.stderr
    assert "max_retries" not in result.stderr
    (small_disk / "ballast").unlink()
