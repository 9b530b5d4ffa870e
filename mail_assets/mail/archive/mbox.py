"""Split an mbox archive of any dialect into raw messages, and read one back by its offset."""

import mmap
import re
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from mail_assets.mail.archive.compression import ArchiveError, open_archive
from mail_assets.mail.archive.dialects import DIALECTS
from mail_assets.mail.archive.from_lines import (
    BLOCK,
    BOM,
    Section,
    cut_mapped_file,
    cut_stream,
)

MAX_MESSAGE = 100 << 20  # bytes; a longer message is cut and marked

# Whichever comes first, a field that every message has or the end of the header
_ID_OR_DATE = re.compile(rb"\n(?=[md\r\n])(?:(message-id|date)[ \t]*:|\r?\n)", re.I)
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
    suspicious: bool  # neither Message-ID nor Date: perhaps a wrong split


def split_archive(path: Path, dialect: str, max_message: int = MAX_MESSAGE) -> Iterator[RawMessage]:
    """Messages of an archive in file order; raises ArchiveError where it is damaged.

    A file that is not compressed is mapped into memory, which takes three quarters of the time
    of reading it. It must not be cut while it is read; archives are replaced, never rewritten.
    """
    with open_archive(path) as archive:
        if not archive.seekable() or not path.stat().st_size:  # nothing cannot be mapped
            yield from split_stream(archive, dialect, max_message, name=str(path))
            return
        with mmap.mmap(archive.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
            yield from _messages(cut_mapped_file(mapped, max_message), dialect, str(path))


def split_stream(
    stream: BinaryIO,
    dialect: str,
    max_message: int = MAX_MESSAGE,
    *,
    block: int = BLOCK,
    name: str = "stream",
) -> Iterator[RawMessage]:
    """Messages in a stream of decompressed bytes; raises ArchiveError where it is no mbox.

    Memory stays near one message and two blocks, whatever the size of the archive. Bytes before
    the first From_ line are a message that lost its From_ line, unless they are blank.
    """
    return _messages(cut_stream(stream, max_message, block), dialect, name)


def _messages(stretches: Iterator[Section], dialect: str, name: str) -> Iterator[RawMessage]:
    if dialect not in DIALECTS:
        raise ValueError(f"mbox dialect {dialect!r} is not known; use one of {', '.join(DIALECTS)}")
    lead = next(stretches)
    if text := lead.head.removeprefix(BOM).strip():
        if lead.is_last:
            raise ArchiveError(
                f"{name}: is no mbox: no line `From sender date` with a header field behind it; "
                f"it begins with {text[:60]!r}"
            )
        yield _message(lead, dialect)._replace(suspicious=True)
    for stretch in stretches:
        yield _message(stretch, dialect)


def read_range(path: Path, offset: int, length: int) -> bytes:
    """`archive[offset:offset + length]` of the decompressed archive."""
    with open_archive(path) as archive:
        if archive.seekable():
            archive.seek(offset)
        else:
            left = offset
            while left and (skipped := archive.read(min(left, BLOCK))):
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
    return _UNQUOTE[dialect].sub(rb"\1", raw) if dialect in _UNQUOTE else raw


def _message(stretch: Section, dialect: str) -> RawMessage:
    chunk = stretch.head
    length, truncated = len(chunk), stretch.length > len(chunk)
    # PostgreSQL's archives add no blank line, so one that is there is the message's own.
    if dialect != "pg" and not truncated:
        length -= 2 if chunk.endswith(b"\n\r\n") else 1 if chunk.endswith(b"\n\n") else 0
    line = (chunk.find(b"\n") + 1 or length) if chunk.startswith(b"From ") else 0
    raw = _unquote(chunk[line:length], dialect)
    field = _ID_OR_DATE.search(chunk, 0, length)
    suspicious = field is None or field[1] is None
    from_line = chunk[:line].rstrip(b"\r\n")
    return RawMessage(stretch.offset, length, from_line, raw, truncated, suspicious)
