"""Monthly archives in a local folder; other programs may move its files at any time."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from mail_assets.errors import name_some
from mail_assets.month import ListMonth
from mail_assets.sources.archive_file import CHUNK, save_archive
from mail_assets.sources.source import (
    ArchiveSource,
    Fetched,
    SourceError,
    Unchanged,
    list_again,
)
from mail_assets.sources.urls import folder_path, group_by_month


class FolderSource(ArchiveSource):
    """Files of one folder whose names end in a month.

    Hidden files are ignored; other files and subfolders are reported as remarks. A folder that has
    files but no monthly archive is an error. A version is "size-mtime", in bytes and nanoseconds.
    """

    def __init__(self, list_name: str, url: str) -> None:
        super().__init__(list_name, url)
        self._folder = folder_path(url)

    def versions(self) -> dict[ListMonth, str]:
        """Return month -> version; two files of one month have theirs joined by "+"."""
        try:
            return self.by_list_month(list_again(self._versions))
        except FileNotFoundError as error:
            what = f"{error.filename} was moved while its folder was listed; try again"
            raise self.error(None, what, retryable=True) from error

    def fetch(self, month: ListMonth, target: Path, known: str = "") -> Fetched | Unchanged | None:
        """Copy the month's file; a file that changes meanwhile is an error. See ArchiveSource."""
        name = self.only_place(month, self._months())
        if name is None:
            return None
        path = (self._folder / name).absolute()
        try:
            file = path.open("rb")
        except OSError as error:
            raise self.error(month, f"{path} cannot be read: {error.strerror}") from error
        with file:
            version = _version(os.fstat(file.fileno()))
            if version == known:
                return Unchanged(version, path.as_uri())
            changed = self.error(month, f"{path} changed while it was read", retryable=True)
            try:
                with self.refusing(month, str(path)):
                    size, sha256 = save_archive(_chunks(file), target)
            except SourceError as error:
                if _version(os.fstat(file.fileno())) != version:
                    raise changed from error
                raise
            if _version(os.fstat(file.fileno())) != version:
                target.unlink()
                raise changed
        return Fetched(target, version, size, sha256, path.as_uri())

    def _versions(self) -> dict[str, str]:
        return {
            month: "+".join(_version((self._folder / name).stat()) for name in names)
            for month, names in self._months().items()
        }

    def _months(self) -> dict[str, list[str]]:
        try:
            with os.scandir(self._folder) as entries:
                found = {e.name: e.is_file() for e in entries if not e.name.startswith(".")}
        except OSError as error:
            raise self.error(
                None, f"the folder {self._folder.absolute()} cannot be read: {error.strerror}"
            ) from error
        months = group_by_month(name for name, is_file in found.items() if is_file)
        archives = {name for names in months.values() for name in names}
        others = sorted(found.keys() - archives)
        self.remark("left out, no month in the name", [x for x in others if found[x]])
        self.remark("left out, not a file", [x for x in others if not found[x]])
        if others and not months:
            raise self.error(
                None,
                f"the folder {self._folder.absolute()} has no monthly archive, such as"
                f" dev-2024-05.mbox; found: {name_some(others)}. To read one mbox file, a Maildir"
                " or a folder of messages, name its own path as the source (docs/sources.md)",
            )
        return months


def _version(status: os.stat_result) -> str:
    return f"{status.st_size}-{status.st_mtime_ns}"


def _chunks(file: BinaryIO) -> Iterator[bytes]:
    while chunk := file.read(CHUNK):
        yield chunk
