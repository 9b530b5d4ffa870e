"""mbox archives as bytes: opening them, splitting them into raw messages, reading one back.

What lives here: everything that knows where a message starts and ends. What does not: the
meaning of its bytes (`mail_assets.mail.message`) and where archives come from.

A line starts a message when all of this holds:

1. it begins with `From ` and carries an asctime date near its end;
2. it is not the first line of `git format-patch` output (`From <hex> Mon Sep 17 00:00:00
   2001`), which stands unquoted, header lines and all, inside messages that carry patches;
3. the next line looks like a header field.

No blank line is asked for: pipermail archives lack it before one message in six, and
PostgreSQL's archives never promise it. What stays undecidable is a whole mbox message quoted
raw inside a body; such a split mostly lacks Message-ID and Date and is marked `suspicious`.
"""

import bz2
import gzip
import io
import lzma
import mmap
import re
import zlib
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple, Protocol

import zstandard

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

DIALECTS = ("pg", "plain", "mboxrd", "mboxo", "pipermail")
MAX_MESSAGE = 100 << 20  # bytes; a longer message is cut and marked
BLOCK = 1 << 20  # bytes read at a time from a stream
ZSTD_INPUT = 4 << 10  # bytes; these hold at most about 1,000 blocks of 128 KiB decompressed

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


class ArchiveError(ValueError):
    """An archive that cannot be read to its end, or that is no mbox."""


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
        if not isinstance(archive, io.BufferedReader) or isinstance(archive.raw, _Decompressed):
            yield from split_stream(archive, dialect, max_message, name=str(path))
        elif path.stat().st_size:
            with mmap.mmap(archive.fileno(), 0, access=mmap.ACCESS_READ) as view:
                yield from _split_mapped(view, dialect, max_message, str(path))


def _split_mapped(
    view: mmap.mmap, dialect: str, max_message: int, name: str
) -> Iterator[RawMessage]:
    build = _builder(dialect)
    starts = _starts(view, 0, len(view))
    lead = view[: min(starts[0] if starts else len(view), max_message)]
    yield from _before_first(lead, bool(starts), build, name)
    for start, end in pairwise([*starts, len(view)]):
        yield build(view[start : min(end, start + max_message)], start, end - start > max_message)


def split_stream(
    stream: BinaryIO,
    dialect: str,
    max_message: int = MAX_MESSAGE,
    *,
    block: int = BLOCK,
    name: str = "stream",
) -> Iterator[RawMessage]:
    """The same messages from any readable stream of decompressed bytes.

    Memory stays near one message and two blocks, whatever the size of the archive.
    """
    build = _builder(dialect)
    window = bytearray()  # archive[base : base + len(window)]
    base = scanned = start = 0  # offsets in the archive; start is that of the open message
    head: bytes | None = None  # the first max_message bytes of an open message longer than that
    opened = ended = False
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
            cut = min(end, start + max_message)
            chunk = bytes(window[start - base : cut - base]) if head is None else head
            if opened:
                yield build(chunk, start, end - start > max_message)
            else:
                yield from _before_first(chunk, end < limit or not ended, build, name)
            start, head, opened = end, None, True
        scanned = limit
        if head is None and scanned - start > max_message:
            head = bytes(window[start - base : start - base + max_message])
        keep = (start if head is None else scanned) - 1  # one byte more: is it a line end?
        if keep > base:
            del window[: keep - base]
            base = keep


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


def open_archive(path: Path) -> BinaryIO:
    """Open plain, gzip, bzip2, xz or zstd input, known by its first bytes and not by its name."""
    file = path.open("rb")
    magic = file.read(6)
    file.seek(0)
    for start, kind, opener in _COMPRESSIONS:
        if magic.startswith(start):
            raw = _Decompressed(path, kind, opener(file), file)
            return io.BufferedReader(raw, BLOCK)
    return file


class _ZstdFrames:
    """zstd frames one after another.

    The library's own reader stops after the first frame and takes a cut file for a whole one.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._frame = zstandard.ZstdDecompressor().decompressobj()
        self._inside = False  # a frame has begun and not ended
        self._output = b""

    def read(self, size: int) -> bytes:
        while not self._output and (data := self._file.read(ZSTD_INPUT)):
            self._output = b"".join(self._decompress(data))
        if not self._output and self._inside:
            raise EOFError("the file ends inside a zstd frame")
        out, self._output = self._output[:size], self._output[size:]
        return out

    def _decompress(self, data: bytes) -> Iterator[bytes]:
        while data:
            if not self._inside:
                self._frame = zstandard.ZstdDecompressor().decompressobj()
            yield self._frame.decompress(data)
            self._inside = not self._frame.eof
            data = self._frame.unused_data


class _Source(Protocol):
    def read(self, size: int, /) -> bytes: ...


class _Decompressed(io.RawIOBase):
    """Decompressed bytes; whatever the decompressor raises becomes an ArchiveError."""

    def __init__(self, path: Path, kind: str, source: _Source, file: BinaryIO) -> None:
        self._path, self._kind, self._source, self._file = path, kind, source, file
        self._given = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer", /) -> int:
        view = memoryview(buffer)
        try:
            data = self._source.read(len(view))
        except (EOFError, OSError, zlib.error, lzma.LZMAError, zstandard.ZstdError) as error:
            raise ArchiveError(
                f"{self._path}: {self._kind} data is damaged or cut off after "
                f"{self._given} decompressed bytes ({error}); fetch the archive again"
            ) from error
        view[: len(data)] = data
        self._given += len(data)
        return len(data)

    def close(self) -> None:
        self._file.close()
        super().close()


_COMPRESSIONS: tuple[tuple[bytes, str, Callable[[BinaryIO], _Source]], ...] = (
    (b"\x1f\x8b", "gzip", lambda file: gzip.GzipFile(fileobj=file)),
    (b"BZh", "bzip2", bz2.BZ2File),
    (b"\xfd7zXZ\x00", "xz", lzma.LZMAFile),
    (b"\x28\xb5\x2f\xfd", "zstd", _ZstdFrames),
)


def _is_start(view: bytearray | mmap.mmap, at: int) -> bool:
    line = _FROM_LINE.match(view, at)
    return (
        line is not None
        and _GIT_LINE.match(view, at) is None
        and _FIELD.match(view, line.end()) is not None
    )


def _starts(view: bytearray | mmap.mmap, begin: int, end: int) -> list[int]:
    """Positions of From_ lines in [begin, end); needs the byte before begin, if there is one."""
    found = []
    if begin == 0:
        first = len(_BOM) if view[: len(_BOM)] == _BOM else 0
        if _is_start(view, first):
            found.append(first)
    at = max(begin - 1, 0)
    while (at := view.find(b"\nFrom ", at, end + 4)) >= 0:
        at += 1
        if _is_start(view, at):
            found.append(at)
    return found


def _builder(dialect: str) -> Callable[[bytes, int, bool], RawMessage]:
    """What makes a RawMessage of a From_ line and all bytes up to the next one."""
    if dialect not in DIALECTS:
        raise ValueError(f"mbox dialect {dialect!r} is not known; use one of {', '.join(DIALECTS)}")
    unquote = _UNQUOTE.get(dialect)

    def build(chunk: bytes, offset: int, truncated: bool) -> RawMessage:
        # PostgreSQL's archives add no blank line, so one that stands there is the message's own.
        if dialect != "pg" and not truncated:
            blank = 2 if chunk.endswith(b"\n\r\n") else 1 if chunk.endswith(b"\n\n") else 0
            chunk = chunk[: len(chunk) - blank]
        body = _HEADER_END.search(chunk)
        head = chunk[: body.start()] if body else chunk
        suspicious = _ID_OR_DATE.search(head) is None
        line, _, raw = chunk.partition(b"\n") if chunk.startswith(b"From ") else (b"", b"", chunk)
        if unquote:
            raw = unquote.sub(rb"\1", raw)
        return RawMessage(offset, len(chunk), line.rstrip(b"\r"), raw, truncated, suspicious)

    return build


def _before_first(
    lead: bytes, any_start: bool, build: Callable[[bytes, int, bool], RawMessage], name: str
) -> Iterator[RawMessage]:
    """Bytes before the first From_ line: blank, or a message that lost its From_ line."""
    text = lead.removeprefix(_BOM).strip()
    if text and not any_start:
        raise ArchiveError(
            f"{name}: is no mbox: no line `From sender date` with a header field behind it; "
            f"it begins with {text[:60]!r}"
        )
    if text:
        yield build(lead, 0, False)._replace(suspicious=True)
