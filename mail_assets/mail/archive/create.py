"""Write archives, compressed as another one is: the counterpart of compression.py."""

import bz2
import gzip
import lzma
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any

import zstandard

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
