"""Write a fetched archive to its file, and refuse other content.

Servers send web pages and errors in place of archives, and connections break. So every file is
decompressed to its end before it gets its final name.
"""

import hashlib
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4

from mail_assets.files import create_private, make_private_folder
from mail_assets.mail.archive.compression import (
    BombError,
    NoRoomError,
    UnpackingError,
    check_room,
    open_archive,
    unpacked_path,
)
from mail_assets.sources.source import SourceError

CHUNK = 1 << 20  # bytes
MAX_UNPACKED = 64 << 30  # bytes; 1 KB of gzip can hold 1 MB, so a 4 GiB file could hold 4 TB
HEAD = 64 << 10  # bytes in which the first From_ line must begin

_FROM_LINE = re.compile(rb"^>?From ", re.MULTILINE)
_BLANK = b"\xef\xbb\xbf \t\r\n"


def verify_archive(
    path: Path,
    *,
    unpack_to: Path | None = None,
    downloaded: bool = False,
) -> None:
    """Check that a file is an mbox; decompress it to its end if it is compressed.

    Memory is bounded. The decompressed content is written to `unpack_to`, if given, so that the
    next reader need not decompress it again. An empty file is an empty month. The error about a
    damaged file is retryable only if the file was `downloaded`.

    Raises:
        SourceError: the stream is truncated or damaged, it unpacks to more than MAX_UNPACKED bytes
            or does not fit on the disk, or the file does not begin like an mbox (an HTML page, an
            error in JSON, a ZIP file).
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
                while chunk and unpacked <= MAX_UNPACKED:
                    unpacked += len(chunk)
                    if copy and unpack_to:
                        check_room(unpack_to.parent, len(chunk), path)
                        copy.write(chunk)
                    chunk = archive.read(CHUNK)
    except UnpackingError as error:
        raise unpacking_refusal(error, downloaded) from error
    if unpacked > MAX_UNPACKED:
        raise SourceError(f"it unpacks to more than the limit of {MAX_UNPACKED} bytes")
    _check_head(head)


def save_archive(
    chunks: Iterable[bytes], target: Path, *, max_bytes: int | None = None, downloaded: bool = False
) -> tuple[int, str]:
    """Write `chunks` to `target` if they form an archive; return their size and sha256 (hex).

    Until the file is complete and checked, its name ends in ".part". The decompressed content of a
    compressed file is written next to it, where `unpacked` looks for it.

    Raises:
        SourceError: as verify_archive, or there are more than `max_bytes`.
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
    """Return the error for bad compressed data, with its remedy but without the file's name."""
    if isinstance(error, (BombError, NoRoomError)):
        return SourceError(f"{error.fault}; {error.remedy}")
    remedy = f"{error.remedy}, or repair it at its source" if downloaded else "replace the file"
    return SourceError(f"{error.fault}; {remedy}", retryable=downloaded)


def is_empty(path: Path) -> bool:
    """Return whether an archive is empty after decompression."""
    with open_archive(path) as archive:
        return not archive.read(1)


def _check_head(head: bytes) -> None:
    text = head.lstrip(_BLANK)
    if text.startswith(b"<"):
        raise SourceError("it is an HTML page (a login or an error?), not an mbox; open the URL")
    if text and not _FROM_LINE.search(head):
        raise SourceError(f"it is not an mbox: no From_ line begins in its first {len(head)} bytes")


@contextmanager
def write_whole(path: Path) -> Iterator[BinaryIO]:
    """Yield a new file that replaces `path` when the block ends without an error."""
    make_private_folder(path.parent)
    part = path.with_name(f".{path.name}.{uuid4().hex}")
    try:
        with create_private(part) as file:
            yield file
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
