"""Write a fetched archive to its file, and refuse other content.

Servers send pages and errors in place of archives, and connections break: every file is read
through its decompressor to the end before it gets its name.
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
    """Check that a file is an mbox; a compressed one is decompressed to its end, in bounded memory.

    The content of a compressed file goes to `unpack_to`, if given, so that the next reader need not
    decompress it again. An empty file is an empty month. A damaged file is worth a retry only if it
    was `downloaded`.

    Raises:
        SourceError: the stream is truncated, damaged, or unpacks to more than MAX_UNPACKED bytes
            or than fits on the disk, or the file does not begin like an mbox: an HTML page, an
            error in JSON, a ZIP file.
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
        raise SourceError(f"it unpacks to more than {MAX_UNPACKED} bytes, which is no month's mail")
    _check_head(head)


def save_archive(
    chunks: Iterable[bytes], target: Path, *, max_bytes: int | None = None, downloaded: bool = False
) -> tuple[int, str]:
    """Write `chunks` to `target` if they make an archive; return their size and sha256 (hex).

    The file gets its name when it is whole and checked; before, ".part" is appended. The content of
    a compressed one is written next to it, where `unpacked` looks for it.

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
    """Return the error for bad compressed data, with the remedy and without the file's name."""
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
        raise SourceError("it is an HTML page (of a login or an error?), not an mbox; open the URL")
    if text and not _FROM_LINE.search(head):
        raise SourceError(f"it is no mbox: none of its first {len(head)} bytes begins a From_ line")


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
