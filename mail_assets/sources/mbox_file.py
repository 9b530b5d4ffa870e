"""One mbox file that holds many months: a Google Takeout, a folder of Thunderbird, an export.

A key is "digest offset length": the place of a message in the decompressed file, and a digest of
its bytes. The file is read once after each change. Kept are the month of each message, and the
decompressed file if it is compressed.

A month's archive has the messages as they are in the file, so the list's `dialect` is that of the
file. A From_ line without a date is replaced by a dated one.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from hashlib import sha256
from pathlib import Path

from mail_assets.mail.archive.boundaries import is_usual
from mail_assets.mail.archive.compression import (
    ArchiveError,
    UnpackingError,
    copy_unpacked,
    open_archive,
    unpacked,
)
from mail_assets.mail.archive.mbox import find_dialect, split_mbox
from mail_assets.mail.message.dates import parse_date
from mail_assets.sources.archive_file import unpacking_refusal, write_whole
from mail_assets.sources.message_source import (
    MONTH_RULE_VERSION,
    Pairs,
    month_of_message,
    read_pairs,
    write_pairs,
)
from mail_assets.sources.source import SourceError

_DIALECT = "plain"  # by default
_FROM_LINE = b"From MAILER-DAEMON Thu Jan  1 00:00:00 1970\n"  # for a message that has lost its own

# The first fields of a message in a folder of Thunderbird, and its bit for a deleted message, which
# stays in the file until the folder is compacted. (nsMsgMessageFlags.h)
_STATUS = re.compile(
    rb"(?:X-(?:Account-Key|UIDL): [^\n]{0,300}\n){0,4}X-Mozilla-Status: ([0-9A-Fa-f]{4})"
)
_DELETED = 0x0008
_NO_MONTH = "deleted"


class MboxFile:
    """The messages of one mbox file, plain or compressed."""

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
    """Yield (month, key) of the messages of a plain file; errors call it `name`.

    Deleted ones have _NO_MONTH.
    """
    arrived: datetime | None = None
    with unpacked(path) as data:
        for message in split_mbox(data, find_dialect(data) or _DIALECT, name=name):
            line = parse_date(message.from_line.decode("latin-1"))
            # a message without a date of its own arrived with the one before it
            arrived = line.at if line else arrived
            digest = _digest(data[message.offset : message.offset + message.length])
            key = f"{digest} {message.offset} {message.length}"
            is_deleted = _is_deleted(message.raw)
            yield _NO_MONTH if is_deleted else month_of_message(message.raw, arrived), key


def _as_entry(data: bytes) -> bytes:
    """Return a message as an mbox has it, with a dated From_ line that no other must vouch for."""
    if b"\n" not in data:  # of a classic Mac
        data = data.replace(b"\r", b"\n")
    if not is_usual(data):
        data = _FROM_LINE + (data.partition(b"\n")[2] if data.startswith(b"From ") else data)
    return data + (b"\n" if data.endswith(b"\n") else b"\n\n")


def _digest(data: bytes) -> str:
    return sha256(data).hexdigest()[:32]


def _is_deleted(raw: bytes) -> bool:
    status = _STATUS.match(raw)  # the fields of the sender come later
    return status is not None and bool(int(status[1], 16) & _DELETED)
