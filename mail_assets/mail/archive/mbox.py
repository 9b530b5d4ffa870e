"""Split an mbox archive of any dialect into raw messages, and read one back by its offset."""

import re
from collections.abc import Iterator
from mmap import mmap
from pathlib import Path
from typing import NamedTuple

from mail_assets.mail.archive.compression import BUFFER, ArchiveError, open_archive
from mail_assets.mail.archive.containers import find_container
from mail_assets.mail.archive.dialects import DIALECTS
from mail_assets.mail.archive.from_lines import BOM
from mail_assets.mail.archive.starts import Start, find_starts
from mail_assets.mail.archive.unpacked import unpacked

MAX_MESSAGE = 100 << 20  # bytes; a longer message is cut and marked

# Pine and UW-IMAP keep their own notes in a first pseudo message
_FOLDER_DATA = re.compile(
    rb"\nSubject: DON'T DELETE THIS MESSAGE -- FOLDER INTERNAL DATA\r?\n", re.I
)
_UNQUOTE = {
    "mboxrd": re.compile(rb"^>(>*From )", re.M),
    "mboxo": re.compile(rb"^>(From )", re.M),
}


class RawMessage(NamedTuple):
    """One message of an archive.

    `archive[offset:offset + length]` of the decompressed archive is the From_ line and the
    message as written, without the blank line that mbox adds behind it.
    """

    offset: int
    length: int
    from_line: bytes  # without its line end; empty for bytes found before the first From_ line
    raw: bytes  # header and body, `>From ` quoting undone where the dialect has it
    truncated: bool  # longer than max_message
    suspicious: bool  # perhaps a wrong split; see starts.py


def split_archive(path: Path, dialect: str, max_message: int = MAX_MESSAGE) -> Iterator[RawMessage]:
    """Messages of an archive in file order; raises ArchiveError where it is damaged."""
    with unpacked(path) as data:
        yield from split_mbox(data, dialect, max_message, name=str(path))


def split_mbox(
    data: bytes | mmap, dialect: str, max_message: int = MAX_MESSAGE, *, name: str = "archive"
) -> Iterator[RawMessage]:
    """Messages of a decompressed archive in order; raises ArchiveError where it is no mbox.

    Bytes before the first From_ line are a message that lost its From_ line, unless they are
    blank. What a mail program keeps of its own in a pseudo message is left out.
    """
    if dialect not in DIALECTS:
        raise ValueError(f"mbox dialect {dialect!r} is not known; use one of {', '.join(DIALECTS)}")
    starts = find_starts(data, dialect)
    first = starts[0].offset if starts else len(data)
    if text := data[: min(first, max_message)].removeprefix(BOM).strip():
        if container := find_container(data):
            raise ArchiveError(f"{name}: is no mbox but {container}; convert it at the source")
        if not starts:
            raise ArchiveError(
                f"{name}: is no mbox: no line `From sender date` with a header field behind it; "
                f"it begins with {text[:60]!r}"
            )
        starts.insert(0, Start(0, 0, suspicious=True))
    ends = [*(start.offset for start in starts[1:]), len(data)]
    for start, end in zip(starts, ends, strict=False):  # an empty archive has an end alone
        if start.offset > first or not _is_folder_data(data, start.header):
            yield _message(data, start, end, dialect, max_message)


def read_range(path: Path, offset: int, length: int) -> bytes:
    """`archive[offset:offset + length]` of the decompressed archive."""
    with open_archive(path) as archive:
        if archive.seekable():
            archive.seek(offset)
        else:
            left = offset
            while left and (skipped := archive.read(min(left, BUFFER))):
                left -= len(skipped)
        data = archive.read(length)
    if len(data) < length:
        raise ArchiveError(
            f"{path}: holds no {length} bytes at offset {offset}; "
            "it is not the archive that these figures were taken from"
        )
    return data


def extract_message(data: bytes, dialect: str) -> bytes:
    """Header and body of a message as RawMessage.raw has them, by the bytes of its range."""
    line = data.find(b"\n") + 1 if data.startswith(b"From ") else 0
    return _unquote(data[line:], dialect)


def _unquote(raw: bytes, dialect: str) -> bytes:
    if dialect not in _UNQUOTE or b">From " not in raw:
        return raw
    return _UNQUOTE[dialect].sub(rb"\1", raw)


def _is_folder_data(data: bytes | mmap, header: int) -> bool:
    return _FOLDER_DATA.search(data, header, header + 2_000) is not None


def _message(
    data: bytes | mmap, start: Start, end: int, dialect: str, max_message: int
) -> RawMessage:
    truncated = end - start.offset > max_message
    if truncated:
        end = start.offset + max_message
    # PostgreSQL's archives add no blank line, so one that is there is the message's own.
    elif dialect != "pg":
        tail = data[max(start.header, end - 3) : end]
        end -= 2 if tail.endswith(b"\n\r\n") else 1 if tail.endswith(b"\n\n") else 0
    raw = _unquote(data[start.header : end], dialect)
    from_line = data[start.offset : start.header].rstrip(b"\r\n")
    length = end - start.offset
    return RawMessage(start.offset, length, from_line, raw, truncated, start.suspicious)
