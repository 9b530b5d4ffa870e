"""mbox archives as bytes: splitting them into raw messages, reading one back.

What lives here: everything that knows where a message starts and ends. What does not: undoing
the compression of the file (`mail_assets.mail.compression`), the meaning of a message's bytes
(`mail_assets.mail.message`) and where archives come from.

A line starts a message when all of this holds:

1. it begins with `From ` and carries an asctime date near its end;
2. it is not the first line of `git format-patch` output (`From <hex> Mon Sep 17 00:00:00
   2001`), which stands unquoted, header lines and all, inside messages that carry patches;
3. the next line looks like a header field.

No blank line is asked for: pipermail archives lack it before one message in six, and
PostgreSQL's archives never promise it. What stays undecidable is a whole mbox message quoted
raw inside a body; such a split mostly lacks Message-ID and Date and is marked `suspicious`.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from mail_assets.mail.compression import ArchiveError, open_archive

__all__ = [
    "BLOCK",
    "DIALECTS",
    "MAX_MESSAGE",
    "ArchiveError",
    "RawMessage",
    "open_archive",
    "read_raw",
    "split",
    "split_stream",
]

DIALECTS = ("pg", "plain", "mboxrd", "mboxo", "pipermail")
MAX_MESSAGE = 100 << 20  # bytes; a longer message is cut and marked
BLOCK = 1 << 20  # bytes read at a time from a stream

# Every repetition is bounded, so whether a line starts a message is decided by LOOKAHEAD bytes.
_FROM_LINE = re.compile(
    rb"From [^\n]{0,200}?(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? {1,4}"
    rb"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) {1,4}\d{1,2} {1,4}\d\d:\d\d(?::\d\d)?"
    rb"[^\n]{0,30}? \d{4}(?!\d)[^\n]{0,40}\n"
)
_GIT_LINE = re.compile(rb"From [0-9a-f]{7,64} Mon Sep 17 00:00:00 2001")
_FIELD = re.compile(rb">?[!-9;-~]{1,256}[ \t]{0,8}:")
LOOKAHEAD = 1024

_BOM = b"\xef\xbb\xbf"
_HEADER_END = re.compile(rb"\n\r?\n")
_ID_OR_DATE = re.compile(rb"\n(?:[Mm][Ee][Ss][Ss][Aa][Gg][Ee]-[Ii][Dd]|[Dd][Aa][Tt][Ee])[ \t]*:")
_UNQUOTE = {
    "mboxrd": re.compile(rb"^>(>*From )", re.M),
    "mboxo": re.compile(rb"^>(From )", re.M),
}


class RawMessage(NamedTuple):
    """One message of an archive.

    `archive[offset:offset + length]` of the decompressed archive is the From_ line and the
    message as it stands, without the blank line that mbox adds behind it.
    """

    offset: int
    length: int
    from_line: bytes  # without its line end; empty for bytes found before the first From_ line
    raw: bytes  # header and body, `>From ` quoting undone where the dialect has it
    truncated: bool  # longer than max_message
    suspicious: bool  # neither Message-ID nor Date: perhaps a wrong split


def split(path: Path, dialect: str, max_message: int = MAX_MESSAGE) -> Iterator[RawMessage]:
    """Messages of an archive in file order; raises ArchiveError where it is damaged."""
    with open_archive(path) as archive:
        yield from split_stream(archive, dialect, max_message, name=str(path))


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
    if dialect not in DIALECTS:
        raise ValueError(f"mbox dialect {dialect!r} is not known; use one of {', '.join(DIALECTS)}")
    stretches = _stretches(stream, max_message, block)
    lead = next(stretches)
    if text := lead.head.removeprefix(_BOM).strip():
        if lead.is_last:
            raise ArchiveError(
                f"{name}: is no mbox: no line `From sender date` with a header field behind it; "
                f"it begins with {text[:60]!r}"
            )
        yield _message(lead, dialect)._replace(suspicious=True)
    for stretch in stretches:
        yield _message(stretch, dialect)


def read_raw(path: Path, offset: int, length: int) -> bytes:
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


class _Stretch(NamedTuple):
    """The bytes from one From_ line, or from the archive's beginning, up to the next."""

    offset: int
    length: int
    head: bytes  # its first max_message bytes
    is_last: bool


def _stretches(stream: BinaryIO, max_message: int, block: int) -> Iterator[_Stretch]:
    """Cut a stream before every From_ line; the first stretch, perhaps empty, is before any."""
    window = bytearray()  # archive[base : base + len(window)]
    base = scanned = start = 0  # offsets in the archive; start is that of the open stretch
    head: bytes | None = None  # of an open stretch that is longer than max_message already
    ended = False
    while not ended:
        data = stream.read(block)
        ended = not data
        window += data
        limit = base + len(window) - (0 if ended else LOOKAHEAD)
        if limit <= scanned and not ended:
            continue
        ends = [base + at for at in _starts(window, scanned - base, limit - base)]
        if ended:
            ends.append(limit)
        for end in ends:
            if head is None:
                head = bytes(window[start - base : min(end, start + max_message) - base])
            yield _Stretch(start, end - start, head, is_last=ended and end == limit)
            start, head = end, None
        scanned = limit
        if head is None and scanned - start > max_message:
            head = bytes(window[start - base : start - base + max_message])
        keep = (start if head is None else scanned) - 1  # one byte more: is it a line end?
        if keep > base:
            del window[: keep - base]
            base = keep


def _starts(window: bytearray, begin: int, end: int) -> list[int]:
    """Positions of From_ lines in [begin, end); needs the byte before begin, if there is one."""
    found = []
    if begin == 0:
        first = len(_BOM) if window.startswith(_BOM) else 0
        if _is_start(window, first):
            found.append(first)
    at = max(begin - 1, 0)
    while (at := window.find(b"\nFrom ", at, end + 4)) >= 0:
        at += 1
        if _is_start(window, at):
            found.append(at)
    return found


def _is_start(window: bytearray, at: int) -> bool:
    line = _FROM_LINE.match(window, at)
    return (
        line is not None
        and _GIT_LINE.match(window, at) is None
        and _FIELD.match(window, line.end()) is not None
    )


def _message(stretch: _Stretch, dialect: str) -> RawMessage:
    chunk, truncated = stretch.head, stretch.length > len(stretch.head)
    # PostgreSQL's archives add no blank line, so one that stands there is the message's own.
    if dialect != "pg" and not truncated:
        blank = 2 if chunk.endswith(b"\n\r\n") else 1 if chunk.endswith(b"\n\n") else 0
        chunk = chunk[: len(chunk) - blank]
    body = _HEADER_END.search(chunk)
    suspicious = _ID_OR_DATE.search(chunk[: body.start()] if body else chunk) is None
    line, _, raw = chunk.partition(b"\n") if chunk.startswith(b"From ") else (b"", b"", chunk)
    if dialect in _UNQUOTE:
        raw = _UNQUOTE[dialect].sub(rb"\1", raw)
    return RawMessage(stretch.offset, len(chunk), line.rstrip(b"\r"), raw, truncated, suspicious)
