"""The folder of a backup, and the list of what backups wrote there: nothing else is ever deleted.

A file is listed before it is written, and until it is deleted, so that what a killed backup left
behind is known to the next one. Files of others in the folder stay as they are.
"""

import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from mail_assets.store.folder import FolderStore

#: A JSON list of paths below the folder.
WRITTEN = "written.json"


class BackupError(RuntimeError):
    """A folder cannot have a backup, holds no whole one, or one that cannot be restored here."""


class BackupFolder:
    """A folder that backups are written into, one after another.

    Files are named by their paths below it, as `store/archives/...`.
    """

    def __init__(self, path: Path, apart_from: Sequence[Path] = ()) -> None:
        """Open or make a folder that is not, holds not and lies not in one of `apart_from`.

        Raises:
            BackupError: it overlaps with one of these, or has files and none of a backup.
        """
        _refuse_overlap(path, apart_from)
        path.mkdir(parents=True, exist_ok=True)
        self.path = path
        self._files = FolderStore(path)
        # hidden: what a killed writer of the list left, and what file systems keep (.snapshot)
        shown = {one.name for one in path.iterdir() if not one.name.startswith(".")}
        if shown and WRITTEN not in shown:
            raise BackupError(
                f"{path} has files, but no {WRITTEN} of a former backup: choose a folder that is "
                "new or empty"
            )
        self._known = self._read()

    def refuse_other_home(self, archives: Iterable[str]) -> None:
        """Check that the folder has one of a home's archives, if it has any.

        An archive is named by its content and is kept for years: who has none of them is a home
        that was made anew, or another one, and its backup would delete them all.

        Raises:
            BackupError: there are archives, all of another home.
        """
        former = {name for name in self._known if name.startswith("store/archives/")}
        if former and former.isdisjoint(archives):
            raise BackupError(
                f"{self.path} has the backup of another home: none of its {len(former)} archives "
                "is here; look at MAIL_HOME and MAIL_PG_DSN, or choose another folder"
            )

    def intend(self, names: Iterable[str]) -> None:
        """List files that are about to be written.

        Raises:
            BackupError: there is one that no backup wrote; it is left as it is.
        """
        fresh = {*names} - self._known
        for name in sorted(fresh):
            if os.path.lexists(self.path / name):
                raise BackupError(
                    f"{self.path / name} was not written by a backup: move it away, or choose "
                    "another folder"
                )
        if fresh:
            self._known |= fresh
            self._write(self._read() | fresh)

    def remove_others(self, wanted: Iterable[str]) -> None:
        """Delete what backups wrote into subfolders, but for the files that are wanted."""
        others = {name for name in self._known if "/" in name}.difference(wanted)
        for name in others:
            self._files.delete(name)
            _remove_empty(self.path / name, self.path)
        self._known -= others
        self._write(self._read() - others)

    def _read(self) -> set[str]:
        """Return the list as it is now: another backup into the folder may have extended it."""
        path = self.path / WRITTEN
        return {*json.loads(path.read_text(encoding="utf-8"))} if path.exists() else set()

    def _write(self, names: set[str]) -> None:
        self._files.put_bytes(WRITTEN, json.dumps(sorted(names), indent=0).encode())


def _refuse_overlap(folder: Path, others: Iterable[Path]) -> None:
    here = folder.resolve()
    for other in others:
        there = other.resolve()
        if here.is_relative_to(there) or there.is_relative_to(here):
            raise BackupError(
                f"{folder} cannot hold a backup of {other}: choose a folder apart from it"
            )


def _remove_empty(file: Path, root: Path) -> None:
    """Remove the folders above a deleted file, up to `root`, that hold nothing any more."""
    for folder in file.parents:
        if folder == root or not folder.is_dir() or any(folder.iterdir()):
            return
        folder.rmdir()
