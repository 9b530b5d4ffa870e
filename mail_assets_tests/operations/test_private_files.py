"""Files with mail are readable only by this account, in a home filled by the whole chain."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from mail_assets.files import create_private, keep_files_private, make_private_folder
from mail_assets.operations.backup import BackupFolder
from mail_assets.sources.archive_file import write_whole
from mail_assets.sources.message_source import hold_folder
from mail_assets.store.open import FolderStore
from mail_assets_tests.world import World, mail

OTHERS = 0o077


@pytest.fixture(params=[0o022, 0o000], ids=["022", "000"])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    """The umask of most accounts, and the most generous one."""
    former = os.umask(request.param)
    yield request.param
    os.umask(former)


@pytest.mark.parametrize("umask", [0o022], indirect=True)
def test_filled_home_is_of_this_account_alone(umask: int, world: World) -> None:
    world.load(mail("a", "A text about the harbour.\n"), last="vectors")
    backup = BackupFolder(world.home / "backup")
    assert backup.path.is_dir()
    for name in ("store", "vectors", "words", "backup"):
        assert stat.S_IMODE((world.home / name).stat().st_mode) == 0o700, name
    store = [*(world.home / "store").rglob("*")]
    assert any(path.suffix == ".parquet" for path in store)
    for path in store:
        assert not stat.S_IMODE(path.stat().st_mode) & OTHERS, path


def test_files_and_folders_of_mail_are_private(umask: int, tmp_path: Path) -> None:
    home = tmp_path / "a" / "home"
    make_private_folder(home)
    store = FolderStore(home / "store")
    store.put_bytes("archives/dev/2024-03", b"x")
    with write_whole(home / "cache" / "dev" / "months") as file:
        file.write(b"x")
    with hold_folder(home / "cache" / "sources" / "dev"):
        pass
    with create_private(home / "rows.csv") as file:
        file.write(b"x")
    for path in [tmp_path / "a", *(tmp_path / "a").rglob("*")]:
        wanted = 0o700 if path.is_dir() else 0o600
        assert stat.S_IMODE(path.stat().st_mode) == wanted, path


def test_folder_that_exists_keeps_its_mode(umask: int, tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o750)
    make_private_folder(shared / "home")
    assert stat.S_IMODE(shared.stat().st_mode) == 0o750
    assert stat.S_IMODE((shared / "home").stat().st_mode) == 0o700


def test_process_that_keeps_files_private_makes_no_others(umask: int, tmp_path: Path) -> None:
    keep_files_private()
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "folder").mkdir()
    for path in tmp_path.iterdir():
        assert not stat.S_IMODE(path.stat().st_mode) & OTHERS, path
