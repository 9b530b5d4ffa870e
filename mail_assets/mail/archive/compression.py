"""Archive files as a stream of decompressed bytes: plain, gzip, bzip2, xz or zstd.

The format is known by the first bytes; several compressed streams one after another are read to
the end; whatever is wrong raises one error.

[create] Write archives, compressed as another one is: the counterpart of compression.py.

[unpacked] The decompressed bytes of an archive, mapped into memory and decompressed once.

Where a message starts is decided by comparing it with all others, so an archive is read more
than once; a mapping costs no memory and no second decompression.
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
from typing import IO, TYPE_CHECKING, Any, BinaryIO, Protocol

import zstandard

from mail_assets.errors import DamagedDataError, MonthError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer


BUFFER = 1 << 20  # bytes decompressed at a time
MAX_RATIO = 200  # decompressed to compressed size; mail has 4, the most repetitive list 50
MIN_BOMB_BYTES = 512 << 20  # decompressed bytes below which the ratio does not matter
INPUT = 4 << 10  # bytes; of zstd these hold at most about 1,000 blocks of 128 KiB decompressed


class ArchiveError(MonthError, DamagedDataError):
    """An archive that cannot be read to its end, or that is no mbox."""


class UnpackingError(ArchiveError):
    """Compressed data that cannot be read to its end; `fault` says why, without the file's name."""

    remedy = "fetch the archive again"

    def __init__(self, path: Path, fault: str) -> None:
        super().__init__(path, fault)
        self.path, self.fault = path, fault

    def __str__(self) -> str:
        return f"{self.path}: {self.fault}; {self.remedy}"


class BombError(UnpackingError):
    """Compressed data that holds more than any mail archive does."""

    remedy = "remove it from the source"


def open_archive(path: Path) -> BinaryIO:
    """Open plain, gzip, bzip2, xz or zstd input, known by its first bytes and not by its name.

    Reading raises UnpackingError where the compressed data is damaged or cut off, and BombError
    where it holds more than MIN_BOMB_BYTES, and more than MAX_RATIO times the bytes read so far.
    """
    file = path.open("rb")
    magic = file.read(6)
    file.seek(0)
    for start, kind, opener in _COMPRESSIONS:
        if magic.startswith(start):
            return io.BufferedReader(_Decompressed(path, kind, opener(file), file), BUFFER)
    return file


class _Source(Protocol):
    def read(self, size: int, /) -> bytes: ...


class _Decompressed(io.RawIOBase):
    """Decompressed bytes; whatever the decompressor raises becomes an UnpackingError."""

    def __init__(self, path: Path, kind: str, source: _Source, file: BinaryIO) -> None:
        self._path, self._kind, self._source, self._file = path, kind, source, file
        self._returned = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer", /) -> int:
        view = memoryview(buffer)
        try:
            data = self._source.read(len(view))
        except (EOFError, OSError, zlib.error, lzma.LZMAError, zstandard.ZstdError) as error:
            fault = f"{self._kind} data is damaged or cut off ({error})"
            raise UnpackingError(self._path, fault) from error
        view[: len(data)] = data
        self._returned += len(data)
        if self._returned > max(MIN_BOMB_BYTES, MAX_RATIO * self._file.tell()):
            raise BombError(
                self._path,
                f"{self._kind} data of {self._file.tell()} bytes holds more than "
                f"{self._returned} bytes, {MAX_RATIO} times as many: it is no mail archive but a "
                "decompression bomb",
            )
        return len(data)

    def close(self) -> None:
        self._file.close()
        super().close()


class _Decompressor(Protocol):
    """What the decompressors of one stream have in common: bzip2's, xz's and zstd's."""

    @property
    def eof(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes, /) -> bytes: ...


class _Streams:
    """Compressed streams one after another, zero bytes between them (xz file format, 2.2).

    The libraries' readers leave out without a word what stands behind the first: zstd's all of it,
    those of bzip2 and xz what begins with padding or with damage.
    """

    def __init__(self, file: BinaryIO, make: Callable[[], _Decompressor]) -> None:
        self._file, self._make = file, make
        self._stream = make()
        self._inside = False  # a stream has begun and not ended
        self._output = b""

    def read(self, size: int) -> bytes:
        while not self._output and (data := self._file.read(INPUT)):
            self._output = b"".join(self._decompress(data))
        if not self._output and self._inside:
            raise EOFError("the file ends inside a compressed stream")
        out, self._output = self._output[:size], self._output[size:]
        return out

    def _decompress(self, data: bytes) -> Iterator[bytes]:
        while data := data if self._inside else data.lstrip(b"\0"):
            if not self._inside:
                self._stream = self._make()
            yield self._stream.decompress(data)
            self._inside = not self._stream.eof
            data = self._stream.unused_data


def _read_streams(make: Callable[[], _Decompressor]) -> Callable[[BinaryIO], _Source]:
    return lambda file: _Streams(file, make)


_COMPRESSIONS: tuple[tuple[bytes, str, Callable[[BinaryIO], _Source]], ...] = (
    (b"\x1f\x8b", "gzip", lambda file: gzip.GzipFile(fileobj=file)),
    (b"BZh", "bzip2", _read_streams(bz2.BZ2Decompressor)),
    (b"\xfd7zXZ\x00", "xz", _read_streams(lzma.LZMADecompressor)),
    (
        b"\x28\xb5\x2f\xfd",
        "zstd",
        _read_streams(lambda: zstandard.ZstdDecompressor().decompressobj()),
    ),
)


_SUFFIXES = {
    b"\x1f\x8b": ".gz",
    b"BZh": ".bz2",
    b"\xfd7zXZ\x00": ".xz",
    b"\x28\xb5\x2f\xfd": ".zst",
}


def archive_suffix(path: Path) -> str:
    """Return the suffix that tells a reader how the file is compressed; "" if it is not."""
    with path.open("rb") as file:
        magic = file.read(6)
    return next((suffix for start, suffix in _SUFFIXES.items() if magic.startswith(start)), "")


@contextmanager
def create_archive(path: Path, suffix: str) -> Iterator[IO[bytes]]:
    """Open a new file whose content is compressed as `suffix` says; the same input, the same bytes.

    Raises:
        KeyError: `suffix` is none that `archive_suffix` returns.
    """
    with ExitStack() as opened:
        file: IO[Any] = opened.enter_context(path.open("xb"))
        if suffix:
            file = opened.enter_context(_COMPRESSORS[suffix](file))
        yield file


_COMPRESSORS: dict[str, Any] = {
    # neither the name nor the time of writing goes into the file
    ".gz": lambda file: gzip.GzipFile("", "wb", fileobj=file, mtime=0),
    ".bz2": lambda file: bz2.BZ2File(file, "wb"),
    ".xz": lambda file: lzma.LZMAFile(file, "wb"),  # noqa: SIM115
    ".zst": lambda file: zstandard.ZstdCompressor().stream_writer(file, closefd=False),
}


def unpacked_path(path: Path) -> Path:
    """Return where the decompressed bytes of a file stand that was just fetched and verified."""
    return path.with_name(f"{path.name}.unpacked")


@contextmanager
def unpacked(path: Path) -> Iterator[bytes | mmap.mmap]:
    """Yield the decompressed bytes of an archive; they are gone behind the block.

    A compressed archive is written to an unnamed temporary file, unless its bytes stand beside it
    already; one that is not is mapped where it is, and must not be cut meanwhile: archives are
    replaced, never rewritten.

    Raises:
        ArchiveError: the compressed data is damaged, cut off or a decompression bomb.
    """
    with ExitStack() as opened:
        copied = unpacked_path(path)
        file = opened.enter_context(copied.open("rb") if copied.exists() else open_archive(path))
        if not file.seekable():
            copy = opened.enter_context(tempfile.TemporaryFile())
            shutil.copyfileobj(file, copy, BUFFER)
            copy.flush()
            file = copy
        if not file.seek(0, 2):  # nothing cannot be mapped
            yield b""
            return
        yield opened.enter_context(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
