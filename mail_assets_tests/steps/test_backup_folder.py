"""The folder of a backup: whose files are in it, and which are deleted."""

from collections.abc import Callable
from pathlib import Path

import pytest

from mail_assets.operations.backup import BackupError, BackupFolder


def write(folder: BackupFolder, *names: str) -> None:
    folder.intend(names)
    for name in names:
        path = folder.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)


def files(folder: Path) -> set[str]:
    paths = (path.relative_to(folder) for path in folder.rglob("*"))
    return {str(path) for path in paths if not path.name.startswith(".")} - {"written.json"}


def link(target: Path, path: Path) -> Path:
    path.symlink_to(target)
    return path


@pytest.mark.parametrize(
    "choose",
    [
        lambda home: home,
        lambda home: home / "backup",
        lambda home: home / "store" / "backup",
        lambda home: home.parent,
        lambda home: home / ".." / home.name,
        lambda home: link(home, home.parent / "link"),
        lambda home: link(home, home.parent / "link") / "backup",
    ],
    ids=["is", "lies in", "lies deep in", "holds", "is by dots", "is by a link", "in by a link"],
)
def test_a_folder_in_use_is_refused_and_not_touched(
    tmp_path: Path, choose: Callable[[Path], Path]
) -> None:
    home = tmp_path / "above" / "home"
    home.mkdir(parents=True)
    folder = choose(home)
    before = files(tmp_path)
    with pytest.raises(BackupError, match="apart from it"):
        BackupFolder(folder, [tmp_path / "other", home])
    assert files(tmp_path) == before


def test_a_home_in_a_former_backup_is_not_taken_for_one(tmp_path: Path) -> None:
    write(BackupFolder(tmp_path), "store/a")
    with pytest.raises(BackupError, match="apart from it"):
        BackupFolder(tmp_path, [tmp_path])


def test_a_folder_with_files_and_no_list_of_a_backup_is_refused(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("mine")
    with pytest.raises(BackupError, match="new or empty"):
        BackupFolder(tmp_path)
    assert files(tmp_path) == {"letter.txt"}


@pytest.mark.parametrize("made", [False, True], ids=["new", "empty"])
def test_a_folder_that_is_new_or_empty_is_taken(tmp_path: Path, made: bool) -> None:
    folder = tmp_path / "a" / "b"
    if made:
        folder.mkdir(parents=True)
        (folder / ".snapshot").mkdir()
    write(BackupFolder(folder), "store/a")
    write(BackupFolder(folder), "store/b")
    assert files(folder) == {"store", "store/a", "store/b"}


@pytest.mark.parametrize("name", ["lists.toml", "store/a", "store"])
def test_a_file_that_no_backup_wrote_is_not_replaced(tmp_path: Path, name: str) -> None:
    write(BackupFolder(tmp_path), "backup.json")
    mine = tmp_path / name
    mine.parent.mkdir(exist_ok=True)
    mine.write_text("mine")
    with pytest.raises(BackupError, match="not written by a backup"):
        BackupFolder(tmp_path).intend(["a", name])
    BackupFolder(tmp_path).remove_others([])
    assert mine.read_text() == "mine"


def test_what_is_not_wanted_goes_with_its_folders_and_the_rest_stays(tmp_path: Path) -> None:
    write(BackupFolder(tmp_path), "rows-1/a.csv", "store/a/b/old", "store/a/kept", "lists.toml")
    (tmp_path / "rows-1" / "mine").write_text("mine")
    folder = BackupFolder(tmp_path)
    write(folder, "rows-2/a.csv", "store/new")
    folder.intend(["store/never/written"])
    folder.remove_others(["rows-2/a.csv", "store/a/kept"])
    assert files(tmp_path) == {
        "lists.toml",
        *("rows-1", "rows-1/mine", "rows-2", "rows-2/a.csv"),
        *("store", "store/a", "store/a/kept"),
    }
    # what was deleted is not a backup's any more
    (tmp_path / "store" / "new").write_text("mine")
    BackupFolder(tmp_path).remove_others([])
    assert {"store/new", "rows-1/mine"} <= files(tmp_path)


def test_backups_at_a_time_delete_nothing_of_each_other_that_is_new(tmp_path: Path) -> None:
    one, other = BackupFolder(tmp_path), BackupFolder(tmp_path)
    write(one, "rows-1/a.csv")
    write(other, "rows-2/a.csv")
    one.remove_others(["rows-1/a.csv"])
    other.remove_others(["rows-2/a.csv"])
    assert {"rows-1/a.csv", "rows-2/a.csv"} <= files(tmp_path)
    BackupFolder(tmp_path).remove_others([])
    assert files(tmp_path) == set()
