"""Folders of files with one message each: a Maildir, MH, Apple Mail's .emlx, or .eml files.

A key is "size-mtime:name", the name percent-encoded: a file that is written again is another.
Symbolic links are not followed, so nothing outside of the folder is read. A file may be compressed,
as Dovecot stores them; its first bytes tell. What is not read is named in `remarks`.
"""

import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, unquote_to_bytes

from mail_assets.mail.archive.compression import UnpackingError, open_unpacked
from mail_assets.mail.archive.mbox import MAX_MESSAGE
from mail_assets.sources.message_source import Arrival, Pairs, find_months, format_message
from mail_assets.sources.source import SourceError, list_again

MAX_READ = MAX_MESSAGE + (1 << 20)  # bytes; the parser cuts a longer message and flags it
MAX_TIME = 1 << 32  # seconds; a larger number before a file's name is no time
_HEAD = 4 << 10  # bytes in which a file that is only numbered must have a header field

_INFO = re.compile(r"[:;!]2,")  # flags follow; `;` and `!` on systems without `:` in names
_DELIVERED = re.compile(r"([0-9]{1,10})\.", re.ASCII)

# MH (also nnml of Gnus, Sylpheed, Claws Mail, ezmlm, news spools) numbers the files; Cyrus adds a
# dot. A deleted message has a sign in front until it is expired.
_NUMBERED = re.compile(r"[0-9]{1,10}\.?", re.ASCII)
_DELETED = re.compile(r"[,#][0-9]{1,10}", re.ASCII)
_MESSAGE = re.compile(
    r"(?P<form>\.eml|(?P<partial>\.partial)?\.emlx)(?:\.gz|\.bz2|\.xz|\.zst)?", re.I
)
_FIELD = re.compile(
    rb"^(?:From|To|Subject|Date|Message-ID|Received|Return-Path|Path|X-[\w-]{1,60})[ \t]*:",
    re.M | re.I,
)

# Formats of Dovecot that need a library or a key (lib-compression/istream-lz4.c, istream-decrypt.c)
_UNREADABLE = {b"Dovecot-LZ4": "compressed by lz4", b"CRYPTED\x03\x07": "encrypted"}

EMPTY = "left out, empty"
NO_MESSAGE = "left out, no message"
LINK = "left out, a link"
DELETED = "left out, deleted in its mail program"
OTHER_FOLDER = "left out, a folder of its own; name it as a source"
DAMAGED = "left out, compressed data that is damaged or too large"
APART = "left out, attachments that Apple Mail keeps apart"
PARTIAL = "without their attachments, which Apple Mail keeps apart"
BY_FILE_TIME = "filed by the time of the file, since the message has no date"


class MessageFile(NamedTuple):
    """A file with one message, and when the message arrived."""

    path: Path
    arrived: datetime
    is_delivery: bool = False  # the time is in the file's name


@dataclass
class Found:
    """Files of a folder: key -> file, in order; and remark -> the files that it is about."""

    files: dict[str, MessageFile] = field(default_factory=dict)
    remarks: defaultdict[str, list[str]] = field(default_factory=lambda: defaultdict(list))


class MessageFiles:
    """The messages of a folder; `find` lists its files."""

    def __init__(self, find: Callable[[], Found], months_file: Path) -> None:
        self._find = find
        self._months_file = months_file
        self._found = Found()
        self._by_arrival: frozenset[str] = frozenset()

    @property
    def remarks(self) -> dict[str, list[str]]:
        """Remarks of the last listing: files that it left out or had to guess. See Messages."""
        return {what: sorted(names) for what, names in self._found.remarks.items()}

    def months(self) -> Pairs:
        """Return (month, key) of every file. See Messages."""
        self._found = self._list()
        files = self._found.files
        found = find_months([*files], self._read, self._months_file)
        self._by_arrival = found.by_arrival
        by_time = [key for key in files if key in found.by_arrival and not files[key].is_delivery]
        self._found.remarks[BY_FILE_TIME] = [_name(key) for key in by_time]
        return found.pairs

    def entries(self, keys: Sequence[str]) -> Iterator[bytes]:
        """Yield the messages of these keys as mboxrd. See Messages."""
        for message in self._read(keys):
            arrived = message.arrived if message.key in self._by_arrival else None
            yield format_message(message.raw, arrived)

    def _list(self) -> Found:
        try:
            return list_again(self._find)
        except FileNotFoundError as error:
            what = f"{error.filename} was moved while its folder was listed; try again"
            raise SourceError(what, retryable=True) from error

    def _read(self, keys: Iterable[str]) -> Iterator[Arrival]:
        for key in keys:
            try:
                raw = self._open(key)
            except UnpackingError as error:
                self._found.remarks[DAMAGED].append(f"{_name(key)} ({error.fault})")
                continue
            except FileNotFoundError:  # a mail program has moved it, from new/ to cur/ or to a flag
                self._found.files = self._list().files
                raw = self._open(key)
            file = self._found.files[key]
            fault = _fault(raw, file.path.name)
            if fault:
                self._found.remarks[fault].append(_name(key))
                continue
            raw, received = read_emlx(raw)
            yield Arrival(key, raw, received or file.arrived)

    def _open(self, key: str) -> bytes:
        if key not in self._found.files:
            what = f"{_name(key)} was changed or removed meanwhile; try again"
            raise SourceError(what, retryable=True)
        path = self._found.files[key].path
        try:
            with (
                os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file,
                open_unpacked(file, path) as unpacked,
            ):
                return unpacked.read(MAX_READ)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise SourceError(f"{path} cannot be read: {error.strerror}") from error


def _fault(raw: bytes, name: str) -> str:
    if not raw.strip():
        return EMPTY
    for begin, what in _UNREADABLE.items():
        if raw.startswith(begin):
            return f"left out, {what}"
    if _NUMBERED.fullmatch(name) and not _FIELD.search(raw, 0, _HEAD):
        return NO_MESSAGE
    return ""


# An .emlx: a line with the number of bytes, the message, and a property list with what Apple Mail
# knows of it.
_COUNT = re.compile(rb"[ \t]{0,10}([0-9]{1,10})[ \t]{0,20}\r?\n(?=[!-9;-~]{1,256}[ \t]{0,8}:)")
_PLIST = re.compile(rb"\s{0,4}(?:<\?xml|<!DOCTYPE plist|<plist)")
_RECEIVED = re.compile(rb"<key>date-received</key>\s{0,20}<(?:integer|real)>([0-9]{1,10})[.<]")


def read_emlx(data: bytes) -> tuple[bytes, datetime | None]:
    """Return the message of a file that may be an .emlx, and the time of its arrival if noted.

    A count that is wrong cuts nothing off.
    """
    count = _COUNT.match(data)
    if count is None:
        return data, None
    end = count.end() + int(count[1])
    if not _PLIST.match(data, end):
        end = data.rfind(b"<?xml") if data.rstrip().endswith(b"</plist>") else len(data)
        end = len(data) if end < count.end() else end
    received = _RECEIVED.search(data, end)
    return data[count.end() : end], _time(int(received[1])) if received else None


def find_maildir_files(folder: Path) -> Found:
    """Return the messages of a Maildir, in the order of their delivery.

    Those of new/ and cur/ with any flags; not tmp/, and not the folders of Maildir++, whose names
    begin with a dot: each of them is a source of its own, and is named.
    https://cr.yp.to/proto/maildir.html

    Raises:
        FileNotFoundError: a file was moved meanwhile.
    """
    listing = Found()
    found = []
    for name in ("new", "cur"):  # in this order: mail moves from new/ to cur/
        if not (folder / name).is_dir() and is_maildir(folder):
            continue
        for entry in _entries(folder / name):
            if entry.is_file(follow_symlinks=False):
                unique = _INFO.split(entry.name)[0]
                time = _DELIVERED.match(unique)
                delivered = int(time[1]) if time and int(time[1]) < MAX_TIME else 0
                found.append((delivered, unique, entry))
            else:
                kind = LINK if entry.is_symlink() else NO_MESSAGE
                listing.remarks[kind].append(f"{name}/{entry.name}")
    for delivered, unique, entry in sorted(found, key=lambda x: x[:2]):
        status = entry.stat(follow_symlinks=False)
        listing.files[_key(status, unique)] = MessageFile(
            Path(entry.path), _time(delivered or status.st_mtime), is_delivery=bool(delivered)
        )
    for place in folder.iterdir():
        if place.is_dir() and not place.is_symlink() and (messages := _count_messages(place)):
            listing.remarks[OTHER_FOLDER].append(f"{place.name} with {messages} files")
    return listing


def is_maildir(folder: Path) -> bool:
    """Return whether a folder has one of the two folders of a Maildir where messages are."""
    return (folder / "cur").is_dir() or ((folder / "new").is_dir() and (folder / "tmp").is_dir())


def _count_messages(maildir: Path) -> int:
    places = [maildir / name for name in ("new", "cur") if (maildir / name).is_dir()]
    return sum(entry.is_file(follow_symlinks=False) for one in places for entry in _entries(one))


def find_single_files(folder: Path) -> Found:
    """Return the messages of a folder and its subfolders, in the order of their paths.

    Files that end in .eml or .emlx, and numbered ones. Hidden ones are ignored; other files and
    links are named.

    Raises:
        FileNotFoundError: a file was moved meanwhile.
    """
    listing = Found()
    found = []
    waiting = [(folder, False)]
    while waiting:
        place, apart = waiting.pop()
        entries = _entries(place)
        has_messages = any(entry.name == "Messages" for entry in entries)
        for entry in entries:
            name = os.path.relpath(entry.path, folder)
            if entry.is_symlink():
                listing.remarks[LINK].append(name)
            elif entry.is_dir(follow_symlinks=False):
                is_apart = entry.name == "Attachments" and has_messages
                waiting.append((Path(entry.path), apart or is_apart))
            elif apart:
                listing.remarks[APART].append(name)
            elif is_single_file(entry):
                found.append((_order(entry), entry, name))
            else:
                kind = DELETED if _DELETED.fullmatch(entry.name) else NO_MESSAGE
                listing.remarks[APART if name.endswith(".emlxpart") else kind].append(name)
    for _, entry, name in sorted(found, key=lambda x: x[0]):
        status = entry.stat(follow_symlinks=False)
        listing.files[_key(status, name)] = MessageFile(Path(entry.path), _time(status.st_mtime))
        form = _form(entry.name)
        if form and form["partial"]:
            listing.remarks[PARTIAL].append(name)
    return listing


def is_single_file(entry: "os.DirEntry[str]") -> bool:
    """Return whether an entry of a folder is a file, and no link, named as a message is."""
    named = _form(entry.name) is not None or _NUMBERED.fullmatch(entry.name) is not None
    return named and entry.is_file(follow_symlinks=False)


def _form(name: str) -> re.Match[str] | None:
    begin = name.lower().rfind(".eml")
    if begin > 7 and name[:begin].lower().endswith(".partial"):
        begin -= len(".partial")
    return _MESSAGE.fullmatch(name, begin) if begin > 0 else None


def _order(entry: "os.DirEntry[str]") -> str:
    """Return the path of a file, its number padded: 9 comes before 10."""
    if not _NUMBERED.fullmatch(entry.name):
        return entry.path
    return entry.path.removesuffix(entry.name) + entry.name.zfill(11)


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


def _name(key: str) -> str:
    return os.fsdecode(unquote_to_bytes(key.partition(":")[2]))


def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(min(max(seconds, 0), MAX_TIME), UTC)
