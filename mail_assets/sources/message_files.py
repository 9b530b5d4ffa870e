"""Read mail from files of mail programs: one message per file, or one mbox with many months.

Folders with one message per file are a Maildir, MH, Apple Mail's .emlx, or .eml files. A key is
"size-mtime:name", with the name percent-encoded; a file that is written again gets a new key.
Symbolic links are not followed, so no file outside of the folder is read. A file may be compressed,
as Dovecot does; its first bytes identify the format. Files that are not read are listed in
`remarks`.

A single mbox is a Google Takeout, a folder of Thunderbird, or an export. A key is "digest offset
length": a digest of a message's bytes, and its position in the decompressed file. The file is read
once after each change. The cache keeps the month of each message, and the decompressed file if the
mbox is compressed. A month's archive has the messages as they are in the file, so the list's
`dialect` is that of the file. A From_ line without a date is replaced by one with a date.
"""

import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, unquote_to_bytes

from mail_assets.mail.archive.boundaries import is_usual
from mail_assets.mail.archive.compression import (
    ArchiveError,
    UnpackingError,
    copy_unpacked,
    open_archive,
    open_unpacked,
    unpacked,
)
from mail_assets.mail.archive.mbox import MAX_MESSAGE, find_dialect, split_mbox
from mail_assets.mail.message.dates import parse_date
from mail_assets.sources.archive_file import unpacking_refusal, write_whole
from mail_assets.sources.message_source import (
    MONTH_RULE_VERSION,
    Arrival,
    Pairs,
    find_months,
    format_message,
    month_of_message,
    read_pairs,
    write_pairs,
)
from mail_assets.sources.source import SourceError, list_again

MAX_READ = MAX_MESSAGE + (1 << 20)  # bytes; the parser cuts a longer message and flags it
MAX_TIME = 1 << 32  # seconds; a larger number at the start of a file's name is not a time
_HEAD = 4 << 10  # bytes in which a file with a numeric name must have a header field

_INFO = re.compile(r"[:;!]2,")  # flags follow; `;` and `!` on systems without `:` in names
_DELIVERED = re.compile(r"([0-9]{1,10})\.", re.ASCII)

# MH (also nnml of Gnus, Sylpheed, Claws Mail, ezmlm, news spools) numbers the files; Cyrus adds a
# dot. The name of a deleted message begins with "," or "#" until the file is removed.
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
    """Files of a folder: key -> file, in order; and remark -> names of files."""

    files: dict[str, MessageFile] = field(default_factory=dict)
    remarks: defaultdict[str, list[str]] = field(default_factory=lambda: defaultdict(list))


class MessageFiles:
    """Messages of a folder with one message per file; `find` lists its files."""

    def __init__(self, find: Callable[[], Found], months_file: Path) -> None:
        self._find = find
        self._months_file = months_file
        self._found = Found()
        self._by_arrival: frozenset[str] = frozenset()

    @property
    def remarks(self) -> dict[str, list[str]]:
        """Remarks of the last listing: files left out, or with a guessed month. See Messages."""
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
            except FileNotFoundError:  # a mail program moved it from new/ to cur/ or set a flag
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


# An .emlx: a line with the number of bytes, the message, and a property list of Apple Mail.
_COUNT = re.compile(rb"[ \t]{0,10}([0-9]{1,10})[ \t]{0,20}\r?\n(?=[!-9;-~]{1,256}[ \t]{0,8}:)")
_PLIST = re.compile(rb"\s{0,4}(?:<\?xml|<!DOCTYPE plist|<plist)")
_RECEIVED = re.compile(rb"<key>date-received</key>\s{0,20}<(?:integer|real)>([0-9]{1,10})[.<]")


def read_emlx(data: bytes) -> tuple[bytes, datetime | None]:
    """Return the message of a file that may be an .emlx, and its time of arrival if recorded.

    A wrong byte count does not truncate the message.
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

    Files of new/ and cur/ are read, with any flags; tmp/ is not. Folders of Maildir++, whose names
    begin with a dot, are sources of their own; they are reported as remarks.
    https://cr.yp.to/proto/maildir.html

    Raises:
        FileNotFoundError: a file was moved during the listing.
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
    """Return whether a folder is a Maildir: it has cur/, or both new/ and tmp/."""
    return (folder / "cur").is_dir() or ((folder / "new").is_dir() and (folder / "tmp").is_dir())


def _count_messages(maildir: Path) -> int:
    places = [maildir / name for name in ("new", "cur") if (maildir / name).is_dir()]
    return sum(entry.is_file(follow_symlinks=False) for one in places for entry in _entries(one))


def find_single_files(folder: Path) -> Found:
    """Return the messages of a folder and its subfolders, in the order of their paths.

    Files that end in .eml or .emlx, and files with numeric names, are messages. Hidden files are
    ignored; other files and links are reported as remarks.

    Raises:
        FileNotFoundError: a file was moved during the listing.
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
    """Return whether an entry is a regular file that is named like a message."""
    named = _form(entry.name) is not None or _NUMBERED.fullmatch(entry.name) is not None
    return named and entry.is_file(follow_symlinks=False)


def _form(name: str) -> re.Match[str] | None:
    begin = name.lower().rfind(".eml")
    if begin > 7 and name[:begin].lower().endswith(".partial"):
        begin -= len(".partial")
    return _MESSAGE.fullmatch(name, begin) if begin > 0 else None


def _order(entry: "os.DirEntry[str]") -> str:
    """Return the path of a file with its number padded, so that 9 comes before 10."""
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


_DIALECT = "plain"  # if none is detected
_FROM_LINE = b"From MAILER-DAEMON Thu Jan  1 00:00:00 1970\n"  # for a message without a dated one

# The first fields of a message in a folder of Thunderbird, and the bit of a deleted message. Such a
# message stays in the file until the folder is compacted. (nsMsgMessageFlags.h)
_STATUS = re.compile(
    rb"(?:X-(?:Account-Key|UIDL): [^\n]{0,300}\n){0,4}X-Mozilla-Status: ([0-9A-Fa-f]{4})"
)
_DELETED_BIT = 0x0008
_NO_MONTH = "deleted"


class MboxFile:
    """Messages of one mbox file, plain or compressed."""

    def __init__(self, path: Path, months_file: Path) -> None:
        self._path = path
        self._months_file = months_file
        self._unpacked = months_file.with_name("unpacked.mbox")
        self.remarks: dict[str, list[str]] = {}

    def months(self) -> Pairs:
        """Return (month, key) of every message. See Messages."""
        with self._refusing():
            state = self._state()
            compressed = self._is_compressed()
            known, months = read_pairs(self._months_file)
            if known == state and (self._unpacked.exists() or not compressed):
                return self._without_deleted(months)
            changed = SourceError(f"{self._path} changed while it was read", retryable=True)
            try:
                if compressed:
                    self._unpack()
                path = self._unpacked if compressed else self._path
                months = [*_scan(path, str(self._path))]
            except ArchiveError as error:
                if self._state() != state:
                    raise changed from error
                raise
            if self._state() != state:
                raise changed
            write_pairs(self._months_file, state, months)
        return self._without_deleted(months)

    def _without_deleted(self, months: Pairs) -> Pairs:
        places = [f"at byte {key.split()[1]}" for month, key in months if month == _NO_MONTH]
        self.remarks = {f"left out, deleted in Thunderbird, of {self._path.name}": places}
        return [(month, key) for month, key in months if month != _NO_MONTH]

    def entries(self, keys: Sequence[str]) -> Iterator[bytes]:
        """Yield the messages of these keys as they are in the file. See Messages."""
        with self._refusing():
            path = self._unpacked if self._is_compressed() else self._path
            with path.open("rb") as file:
                for key in keys:
                    digest, offset, length = key.split()
                    file.seek(int(offset))
                    data = file.read(int(length))
                    if _digest(data) != digest:
                        what = f"{self._path} changed meanwhile; try again"
                        raise SourceError(what, retryable=True)
                    yield _as_entry(data)

    def _state(self) -> str:
        status = self._path.stat()
        return f"rule {MONTH_RULE_VERSION}, {status.st_size}-{status.st_mtime_ns}"

    def _is_compressed(self) -> bool:
        with open_archive(self._path) as file:
            return not file.seekable()

    def _unpack(self) -> None:
        with open_archive(self._path) as file, write_whole(self._unpacked) as copy:
            copy_unpacked(file, copy, self._unpacked.parent, self._path)

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        try:
            yield
        except UnpackingError as error:
            refusal = unpacking_refusal(error, downloaded=False)
            raise SourceError(f"{self._path}: {refusal}") from error
        except ArchiveError as error:
            raise SourceError(f"{error}") from error
        except OSError as error:
            raise SourceError(f"{self._path} cannot be read: {error.strerror}") from error


def _scan(path: Path, name: str) -> Iterator[tuple[str, str]]:
    """Yield (month, key) of messages of a file that errors call `name`; deleted: _NO_MONTH."""
    arrived: datetime | None = None
    with unpacked(path) as data:
        for message in split_mbox(data, find_dialect(data) or _DIALECT, name=name):
            line = parse_date(message.from_line.decode("latin-1"))
            # a message without a dated From_ line gets the time of the message before it
            arrived = line.at if line else arrived
            digest = _digest(data[message.offset : message.offset + message.length])
            key = f"{digest} {message.offset} {message.length}"
            is_deleted = _is_deleted(message.raw)
            yield _NO_MONTH if is_deleted else month_of_message(message.raw, arrived), key


def _as_entry(data: bytes) -> bytes:
    """Return a message in mbox form; replace a From_ line that has no usual date."""
    if b"\n" not in data:  # line ends of a classic Mac
        data = data.replace(b"\r", b"\n")
    if not is_usual(data):
        data = _FROM_LINE + (data.partition(b"\n")[2] if data.startswith(b"From ") else data)
    return data + (b"\n" if data.endswith(b"\n") else b"\n\n")


def _digest(data: bytes) -> str:
    return sha256(data).hexdigest()[:32]


def _is_deleted(raw: bytes) -> bool:
    status = _STATUS.match(raw)  # only at the start: fields of the sender come later
    return status is not None and bool(int(status[1], 16) & _DELETED_BIT)
