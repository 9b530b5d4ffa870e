"""Folders of files with one message each: a Maildir, or .eml files.

A key is "size-mtime:name", the name percent-encoded: a file that is written again is another.
Symbolic links are not followed, so nothing outside of the folder is read.
"""

import logging
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from mail_assets.mail.archive.mbox import MAX_MESSAGE
from mail_assets.sources.message_source import Arrival, Pairs, find_months, format_message
from mail_assets.sources.source import SourceError, list_again

logger = logging.getLogger(__name__)

MAX_READ = MAX_MESSAGE + (1 << 20)  # bytes; the parser cuts a longer message and flags it
MAX_TIME = 1 << 32  # seconds; a larger number before a file's name is no time

_INFO = re.compile(r"[:;!]2,")  # flags follow; `;` and `!` on systems without `:` in names
_DELIVERED = re.compile(r"([0-9]{1,10})\.", re.ASCII)


class MessageFile(NamedTuple):
    """A file with one message, and when the message arrived."""

    path: Path
    arrived: datetime


class MessageFiles:
    """The messages of a folder; `find` lists its files: key -> file, in order."""

    def __init__(self, find: Callable[[], dict[str, MessageFile]], months_file: Path) -> None:
        self._find = find
        self._months_file = months_file
        self._files: dict[str, MessageFile] = {}

    def months(self) -> Pairs:
        """Return (month, key) of every file. See Messages."""
        self._files = self._list()
        return find_months([*self._files], self._read, self._months_file)

    def entries(self, keys: Sequence[str]) -> Iterator[bytes]:
        """Yield the messages of these keys as mboxrd. See Messages."""
        return (format_message(message.raw) for message in self._read(keys))

    def _list(self) -> dict[str, MessageFile]:
        try:
            return list_again(self._find)
        except FileNotFoundError as error:
            what = f"{error.filename} was moved while its folder was listed; try again"
            raise SourceError(what, retryable=True) from error

    def _read(self, keys: Iterable[str]) -> Iterator[Arrival]:
        for key in keys:
            try:
                raw = self._open(key)
            except FileNotFoundError:  # a mail program has moved it, from new/ to cur/ or to a flag
                self._files = self._list()
                raw = self._open(key)
            if raw.strip():
                yield Arrival(key, raw, self._files[key].arrived)
            else:
                logger.warning("%s is empty: it is left out", self._files[key].path)

    def _open(self, key: str) -> bytes:
        if key not in self._files:
            name = key.partition(":")[2]
            raise SourceError(f"{name} was changed or removed meanwhile; try again", retryable=True)
        path = self._files[key].path
        try:
            with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
                return file.read(MAX_READ)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise SourceError(f"{path} cannot be read: {error.strerror}") from error


def find_maildir_files(folder: Path) -> dict[str, MessageFile]:
    """Return the messages of a Maildir, in the order of their delivery.

    Those of new/ and cur/ with any flags; not tmp/, and not the folders of Maildir++, whose names
    begin with a dot: each of them is a source of its own.
    https://cr.yp.to/proto/maildir.html

    Raises:
        FileNotFoundError: a file was moved meanwhile.
    """
    found = []
    for name in ("new", "cur"):  # in this order: mail moves from new/ to cur/
        for entry in _entries(folder / name):
            if entry.is_file(follow_symlinks=False):
                unique = _INFO.split(entry.name)[0]
                time = _DELIVERED.match(unique)
                delivered = int(time[1]) if time and int(time[1]) < MAX_TIME else 0
                found.append((delivered, unique, entry))
    files = {}
    for delivered, unique, entry in sorted(found, key=lambda x: x[:2]):
        status = entry.stat(follow_symlinks=False)
        files[_key(status, unique)] = MessageFile(
            Path(entry.path), _time(delivered or status.st_mtime)
        )
    return files


def find_eml_files(folder: Path) -> dict[str, MessageFile]:
    """Return the .eml files of a folder and its subfolders, in the order of their paths.

    Hidden ones are ignored; a warning names other files and links.

    Raises:
        FileNotFoundError: a file was moved meanwhile.
    """
    found, others = [], []
    waiting = [folder]
    while waiting:
        for entry in _entries(waiting.pop()):
            if entry.is_dir(follow_symlinks=False):
                waiting.append(Path(entry.path))
            elif is_eml(entry):
                found.append(entry)
            else:
                others.append(os.path.relpath(entry.path, folder))
    if others:
        some = ", ".join(sorted(others)[:3])
        logger.warning("%s: %d files are no .eml and not read: %s", folder, len(others), some)
    files = {}
    for entry in sorted(found, key=lambda x: x.path):
        status = entry.stat(follow_symlinks=False)
        name = os.path.relpath(entry.path, folder)
        files[_key(status, name)] = MessageFile(Path(entry.path), _time(status.st_mtime))
    return files


def is_eml(entry: "os.DirEntry[str]") -> bool:
    """Return whether an entry of a folder is a file, and no link, whose name ends in .eml."""
    return entry.name.lower().endswith(".eml") and entry.is_file(follow_symlinks=False)


def _entries(folder: Path) -> list["os.DirEntry[str]"]:
    try:
        with os.scandir(folder) as entries:
            return [entry for entry in entries if not entry.name.startswith(".")]
    except OSError as error:
        raise SourceError(
            f"the folder {folder.absolute()} cannot be read: {error.strerror}"
        ) from error


def _key(status: os.stat_result, name: str) -> str:
    return f"{status.st_size}-{status.st_mtime_ns}:{quote(os.fsencode(name))}"


def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(min(max(seconds, 0), MAX_TIME), UTC)
