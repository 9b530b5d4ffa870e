"""Undo the content coding in which a server sends a file; its own compression stays."""

import zlib
from collections.abc import Iterable, Iterator
from itertools import chain

from mail_assets.sources.archive_file import CHUNK
from mail_assets.sources.links import file_name
from mail_assets.sources.source import SourceError

_COMPRESSED = (".gz", ".bz2", ".xz", ".zst")
_MAGICS = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ\x00", b"\x28\xb5\x2f\xfd")


def is_compressed(url: str) -> bool:
    """Say whether the file at `url` is, by its name, compressed itself."""
    return file_name(url).lower().endswith(_COMPRESSED)


def decode_content(chunks: Iterator[bytes], coding: str, compressed: bool) -> Iterator[bytes]:
    """Yield the file as it lies on the server, in its own compression but no further one.

    `chunks` are the body as sent, `coding` its Content-Encoding. For a `compressed` file no coding
    was asked for; one that comes all the same is mostly the server's word for the file's own
    (Apache's `AddEncoding x-gzip .gz`), and undoing it would change the file. Only where another
    compression shows beneath is it a wrapping.

    Raises:
        SourceError: for a coding other than gzip, and for one that is damaged or cut short.
    """
    coding = coding.strip().lower()
    if coding in ("", "identity"):
        yield from chunks
        return
    first = next(chunks, b"")
    gzipped = coding in ("gzip", "x-gzip")
    if compressed and not (gzipped and _inflated_head(first).startswith(_MAGICS)):
        yield from chain([first], chunks)
    elif gzipped:
        yield from _gunzip(chain([first], chunks))
    else:
        raise SourceError(f"it comes in the content coding {coding!r}, which was not asked for")


def _gunzip(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Undo the content coding gzip, member after member, CHUNK bytes at most at a time."""
    member = zlib.decompressobj(zlib.MAX_WBITS | 16)
    try:
        for chunk in chunks:
            while chunk:
                if member.eof:
                    member = zlib.decompressobj(zlib.MAX_WBITS | 16)
                yield member.decompress(chunk, CHUNK)
                chunk = member.unused_data or member.unconsumed_tail
    except zlib.error as error:
        raise SourceError(f"its content coding is damaged: {error}", retryable=True) from error
    if not member.eof:
        raise SourceError("it ends inside its content coding gzip", retryable=True)


def _inflated_head(data: bytes) -> bytes:
    try:
        return zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(data[:4096], 16)
    except zlib.error:
        return b""
