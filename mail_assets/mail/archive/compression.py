"""Read and write compressed archive files: plain, gzip, bzip2, xz or zstd.

The first bytes of a file identify its format. All consecutive compressed streams are read. Every
fault raises UnpackingError. Output comes in pieces of limited size, because 1,285 bytes of bzip2
can contain 1.5 GB.
"""

import bz2
import gzip
import io
import lzma
import mmap
import shutil
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, BinaryIO, NamedTuple, Protocol

import zstandard

from mail_assets.errors import DamagedDataError, MonthError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer


BUFFER = 1 << 20  # bytes decompressed at a time
MAX_RATIO = 200  # decompressed to compressed size; mail has 4, the most repetitive list 50
MIN_BOMB_BYTES = 512 << 20  # decompressed; below this the ratio is not checked
INPUT = 4 << 10  # bytes read at a time
# Bytes of zstd read at a time. The library cannot limit the output: up to 128 KiB for 4 bytes.
ZSTD_INPUT = 512
MAX_MEMORY = 256 << 20  # bytes that a decompressor may take; `xz -9` takes 65 MiB
RESERVE = 64 << 20  # bytes that unpacking leaves free on a disk
MAX_STREAMS = 100  # consecutive streams that `unpack_bytes` reads; each needs a decompressor

_FAULTS = (EOFError, OSError, zlib.error, lzma.LZMAError, zstandard.ZstdError)


class ArchiveError(MonthError, DamagedDataError):
    """An archive cannot be read to its end, or is not an mbox."""


class UnpackingError(ArchiveError):
    """Compressed data cannot be read to its end; `fault` is the reason, without the file's name."""

    remedy = "fetch the archive again"

    def __init__(self, path: Path, fault: str) -> None:
        super().__init__(path, fault)
        self.path, self.fault = path, fault

    def __str__(self) -> str:
        return f"{self.path}: {self.fault}; {self.remedy}"


class BombError(UnpackingError):
    """Compressed data contains more than any mail archive."""

    remedy = "remove it from the source"


class NoRoomError(UnpackingError):
    """Unpacked data does not fit on the disk."""

    remedy = "make room there"


def open_archive(path: Path) -> BinaryIO:
    """Open an archive for reading its decompressed bytes; the file's suffix does not matter.

    Reading raises UnpackingError if the compressed data is damaged or truncated, and BombError if
    it contains more than MIN_BOMB_BYTES and more than MAX_RATIO times the bytes read so far.
    """
    return open_unpacked(path.open("rb"), path)


def open_unpacked(file: BinaryIO, path: Path) -> BinaryIO:
    """Return a file, or a reader of its decompressed bytes, like `open_archive`.

    `file` must be at its beginning; errors name it by `path`.
    """
    found = _find_compression(file.read(6))
    file.seek(0)
    if found is None:
        return file
    streams = _Streams(file, found.stream)
    return io.BufferedReader(_Decompressed(path, found.name, streams, file), BUFFER)


def copy_unpacked(file: BinaryIO, copy: IO[bytes], folder: Path, path: Path) -> None:
    """Copy decompressed bytes to a file on the disk of `folder`, and leave RESERVE bytes free.

    Raises:
        NoRoomError: fewer bytes would be free.
        UnpackingError: the data is damaged.
    """
    while chunk := file.read(BUFFER):
        check_room(folder, len(chunk), path)
        copy.write(chunk)


def check_room(folder: Path, size: int, path: Path) -> None:
    """Raise NoRoomError if `size` more bytes do not fit on the disk of `folder`."""
    free = shutil.disk_usage(folder).free
    if free < RESERVE + size:
        raise NoRoomError(path, f"it unpacks to more than fits on the disk of {folder}")


class _Decompressed(io.RawIOBase):
    """A reader of decompressed bytes; errors of the decompressor become UnpackingError."""

    def __init__(self, path: Path, kind: str, source: "_Streams", file: BinaryIO) -> None:
        self._path, self._kind, self._source, self._file = path, kind, source, file
        self._returned = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer", /) -> int:
        view = memoryview(buffer)
        try:
            data = self._source.read(len(view))
        except _FAULTS as error:
            fault = f"{self._kind} data is damaged or cut off ({error})"
            raise UnpackingError(self._path, fault) from error
        view[: len(data)] = data
        self._returned += len(data)
        if self._returned > max(MIN_BOMB_BYTES, MAX_RATIO * self._file.tell()):
            raise BombError(
                self._path,
                f"{self._kind} data of {self._file.tell()} bytes unpacks to more than "
                f"{self._returned} bytes, {MAX_RATIO} times as many: it is not a mail archive but "
                "a decompression bomb",
            )
        return len(data)

    def close(self) -> None:
        self._file.close()
        super().close()


class _Decompressor(Protocol):
    @property
    def eof(self) -> bool: ...

    @property
    def needs_input(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


class _Gzip:
    """A decompressor of one gzip member with the interface of bz2 and lzma."""

    def __init__(self) -> None:
        self._member = zlib.decompressobj(zlib.MAX_WBITS | 16)

    @property
    def eof(self) -> bool:
        return self._member.eof

    @property
    def needs_input(self) -> bool:
        return not self._member.unconsumed_tail

    @property
    def unused_data(self) -> bytes:
        return self._member.unused_data

    def decompress(self, data: bytes, max_length: int) -> bytes:
        return self._member.decompress(self._member.unconsumed_tail + data, max_length)


class _Zstd:
    """A decompressor of one zstd frame with the interface of bz2 and lzma."""

    def __init__(self) -> None:
        decompressor = zstandard.ZstdDecompressor(max_window_size=MAX_MEMORY)
        self._frame = decompressor.decompressobj()
        self._input = b""

    @property
    def eof(self) -> bool:
        return self._frame.eof

    @property
    def needs_input(self) -> bool:
        return not self._input

    @property
    def unused_data(self) -> bytes:
        return self._frame.unused_data + self._input

    def decompress(self, data: bytes, _: int) -> bytes:
        data = self._input + data
        out = self._frame.decompress(data[:ZSTD_INPUT])
        self._input = data[ZSTD_INPUT:]
        return out


class _Streams:
    """Consecutive compressed streams, with zero bytes between them (xz file format, 2.2).

    The readers of the libraries silently skip data after the first stream: zstd all of it, bzip2
    and xz data that begins with padding or damage.
    """

    def __init__(self, file: BinaryIO, make: Callable[[], _Decompressor]) -> None:
        self._file, self._make = file, make
        self._stream: _Decompressor | None = None  # None between two streams
        self._input = b""
        self._output = b""

    def read(self, size: int) -> bytes:
        while not self._output and self._advance(size):
            pass
        out, self._output = self._output[:size], self._output[size:]
        return out

    def _advance(self, size: int) -> bool:
        """Decompress a piece of the input; return False at its end."""
        stream = self._stream
        if stream is None or stream.needs_input:
            self._input = self._input or self._file.read(INPUT)
            if not self._input:
                if stream is not None:
                    raise EOFError("the file ends inside a compressed stream")
                return False
        if stream is None:
            self._input = self._input.lstrip(b"\0")
            if not self._input:
                return True
            stream = self._stream = self._make()
        data, self._input = self._input, b""
        self._output = stream.decompress(data, size)
        if stream.eof:
            self._input, self._stream = stream.unused_data, None
        return True


class _Compression(NamedTuple):
    name: str
    magic: bytes
    suffix: str
    stream: Callable[[], _Decompressor]
    writer: Callable[[IO[Any]], Any]


_COMPRESSIONS = (
    _Compression(
        *("gzip", b"\x1f\x8b", ".gz"),
        _Gzip,
        # no file name and no time in the header, so that equal input gives equal bytes
        lambda file: gzip.GzipFile("", "wb", fileobj=file, mtime=0),
    ),
    _Compression(
        *("bzip2", b"BZh", ".bz2"),
        bz2.BZ2Decompressor,
        lambda file: bz2.BZ2File(file, "wb"),
    ),
    _Compression(
        *("xz", b"\xfd7zXZ\x00", ".xz"),
        lambda: lzma.LZMADecompressor(memlimit=MAX_MEMORY),
        lambda file: lzma.LZMAFile(file, "wb"),  # noqa: SIM115
    ),
    _Compression(
        *("zstd", b"\x28\xb5\x2f\xfd", ".zst"),
        _Zstd,
        lambda file: zstandard.ZstdCompressor().stream_writer(file, closefd=False),
    ),
)


def _find_compression(magic: bytes) -> _Compression | None:
    return next((one for one in _COMPRESSIONS if magic.startswith(one.magic)), None)


class Unpacked(NamedTuple):
    """The first bytes of decompressed data."""

    data: bytes
    is_cut: bool  # there may be more
    fault: str  # the reason why reading ended, "" if the data is whole


def unpack_bytes(data: bytes, limit: int) -> Unpacked | None:
    """Return at most `limit` decompressed bytes, None if the data is not compressed.

    Never raises: if the data is damaged, the bytes before that are returned. Bytes after the last
    stream are ignored.
    """
    found = _find_compression(data[:6])
    if found is None:
        return None
    out, at = bytearray(), 0
    for _ in range(MAX_STREAMS if limit > 0 else 0):
        stream = found.stream()
        try:
            while not stream.eof and len(out) <= limit:
                piece = data[at : at + INPUT] if stream.needs_input else b""
                at += len(piece)
                if stream.needs_input and not piece:
                    return Unpacked(bytes(out), False, f"{found.name} data is cut off")
                out += stream.decompress(piece, INPUT)
        except _FAULTS:
            return Unpacked(bytes(out[:limit]), False, f"{found.name} data is damaged")
        at -= len(stream.unused_data)
        if len(out) > limit or not data.startswith(found.magic, at):
            return Unpacked(bytes(out[:limit]), len(out) > limit, "")
    return Unpacked(bytes(out), True, "")


def archive_suffix(path: Path) -> str:
    """Return the usual suffix for the compression of a file, "" if it is not compressed."""
    with path.open("rb") as file:
        found = _find_compression(file.read(6))
    return found.suffix if found else ""


@contextmanager
def create_archive(path: Path, suffix: str) -> Iterator[IO[bytes]]:
    """Open a new file, compressed by `suffix`; equal input gives equal bytes.

    Raises:
        KeyError: `archive_suffix` never returns `suffix`.
    """
    writers = {one.suffix: one.writer for one in _COMPRESSIONS}
    with ExitStack() as opened:
        file: IO[Any] = opened.enter_context(path.open("xb"))
        if suffix:
            file = opened.enter_context(writers[suffix](file))
        yield file


def unpacked_path(path: Path) -> Path:
    """Return the path for the decompressed bytes of a file that was just fetched and verified."""
    return path.with_name(f"{path.name}.unpacked")


@contextmanager
def unpacked(path: Path) -> Iterator[bytes | mmap.mmap]:
    """Map the decompressed bytes of an archive into memory during the block.

    Splitting compares all From_ lines of an archive, so it reads the archive more than once. A
    compressed archive is written to an unnamed temporary file, unless `unpacked_path` already has
    its bytes. A plain archive is mapped in place and must not be truncated during the block. So
    archives are replaced, never rewritten.

    Raises:
        ArchiveError: the compressed data is damaged, truncated or a decompression bomb, or does not
            fit on the disk.
    """
    with ExitStack() as opened:
        copied = unpacked_path(path)
        file = opened.enter_context(copied.open("rb") if copied.exists() else open_archive(path))
        if not file.seekable():
            copy = opened.enter_context(tempfile.TemporaryFile())
            copy_unpacked(file, copy, Path(tempfile.gettempdir()), path)
            copy.flush()
            file = copy
        if not file.seek(0, 2):  # an empty file cannot be mapped
            yield b""
            return
        yield opened.enter_context(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
