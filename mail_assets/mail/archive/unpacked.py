"""The decompressed bytes of an archive, mapped into memory and decompressed once.

Where a message starts is decided by comparing it with all others, so an archive is read more
than once; a mapping costs no memory and no second decompression.
"""

import mmap
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from mail_assets.mail.archive.compression import BUFFER, open_archive


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
