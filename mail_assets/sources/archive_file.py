"""Write a fetched archive to its file, and refuse what is no archive.

A server sends pages and errors in an archive's place, and connections break: every file is read
through its decompressor to the end before it appears under its name.
"""

import hashlib
import os
import re
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path

from mail_assets.mail.archive.compression import (
    BombError,
    UnpackingError,
    open_archive,
    unpacked_path,
)
from mail_assets.sources.source import SourceError

CHUNK = 1 << 20  # bytes
MAX_UNPACKED = 64 << 30  # bytes; 1 KB of gzip can claim 1 MB, so a 4 GiB file could claim 4 TB
HEAD = 64 << 10  # bytes in which the first From_ line is sought, after what junk may precede it

_FROM_LINE = re.compile(rb"^>?From ", re.MULTILINE)
_BLANK = b"\xef\xbb\xbf \t\r\n"


def verify_archive(
    path: Path,
    *,
    max_unpacked: int = MAX_UNPACKED,
    unpack_to: Path | None = None,
    downloaded: bool = False,
) -> None:
    """Return if a file is an mbox; a compressed one is decompressed to its end, in bounded memory.

    What a compressed file holds is written to `unpack_to`, where that is given: whoever reads the
    archive next need not decompress it again. An empty file is an empty month. What is damaged may
    be whole at the next attempt only where it was `downloaded`.

    Raises:
        SourceError: for a truncated or damaged stream, for one that unpacks to more than
            `max_unpacked` bytes, and for anything that does not begin like an mbox: an HTML
            page, an error in JSON, a ZIP file. Reading on is left to the parser.
    """
    try:
        with ExitStack() as opened:
            archive = opened.enter_context(open_archive(path))
            head = archive.read(HEAD)
            if archive.seekable():  # not compressed: nothing can be damaged or a bomb
                unpacked = archive.seek(0, os.SEEK_END)
            else:
                copy = opened.enter_context(unpack_to.open("wb")) if unpack_to else None
                chunk, unpacked = head, 0
                while chunk and unpacked <= max_unpacked:
                    unpacked += len(chunk)
                    if copy:
                        copy.write(chunk)
                    chunk = archive.read(CHUNK)
    except UnpackingError as error:
        raise unpacking_refusal(error, downloaded) from error
    if unpacked > max_unpacked:
        raise SourceError(f"it unpacks to more than {max_unpacked} bytes, which is no month's mail")
    _check_head(head)


def save_archive(
    chunks: Iterable[bytes],
    target: Path,
    *,
    max_bytes: int | None = None,
    downloaded: bool = False,
) -> tuple[int, str]:
    """Write `chunks` to `target` if they make an archive; return their size and sha256 (hex).

    The file appears under its name whole and checked, or not at all: it grows beside it, with
    ".part" appended. Beside a compressed one stands what it holds, where `unpacked` looks for it.

    Raises:
        SourceError: as `verify_archive`, and for more than `max_bytes`.
    """
    part = target.with_name(f"{target.name}.part")
    copy = unpacked_path(target)
    digest = hashlib.sha256()
    size = 0
    try:
        copy.unlink(missing_ok=True)
        with part.open("wb") as file:
            for chunk in chunks:
                size += len(chunk)
                if max_bytes is not None and size > max_bytes:
                    raise SourceError(f"it is larger than the limit of {max_bytes} bytes")
                digest.update(chunk)
                file.write(chunk)
        verify_archive(part, unpack_to=copy, downloaded=downloaded)
        part.replace(target)
    except BaseException:
        copy.unlink(missing_ok=True)
        raise
    finally:
        part.unlink(missing_ok=True)
    return size, digest.hexdigest()


def unpacking_refusal(error: UnpackingError, downloaded: bool) -> SourceError:
    """Return why compressed data is refused, with the remedy and without the file's name."""
    if isinstance(error, BombError):
        return SourceError(f"{error.fault}; {error.remedy}")
    remedy = f"{error.remedy}, or repair it at its source" if downloaded else "replace the file"
    return SourceError(f"{error.fault}; {remedy}", retryable=downloaded)


def is_empty(path: Path) -> bool:
    """Say whether an archive has no byte once it is decompressed."""
    with open_archive(path) as archive:
        return not archive.read(1)


def _check_head(head: bytes) -> None:
    text = head.lstrip(_BLANK)
    if text.startswith(b"<"):
        raise SourceError("it is an HTML page (of a login or an error?), not an mbox; open the URL")
    if text and not _FROM_LINE.search(head):
        raise SourceError(f"it is no mbox: none of its first {len(head)} bytes begins a From_ line")
