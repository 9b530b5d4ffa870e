"""Files that the pipeline keeps, by key: the contract of a store, and the way to open one.

A key is a path of plain segments, `archives/pgsql-hackers/2024-05.gz`; an object appears whole
or not at all, and is replaced in one step. What does not live here: the stores themselves
(`folder_store`, `s3_store`), what the keys and files mean (`store` has a module for each kind)
and where archives come from (`mail_assets.sources`).
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Literal
from urllib.parse import unquote

MAX_SEGMENT = 200  # bytes; file systems allow 255
MAX_KEY = 900  # bytes; S3 allows 1,024, its prefix included


class StoreError(RuntimeError):
    """The store cannot be reached or refuses; names the object, the fault and the remedy."""


class ObjectStore(ABC):
    """Files by key. Reading what is not there raises FileNotFoundError with its URL.

    Every method raises ValueError for a malformed key.
    """

    @abstractmethod
    def put(self, key: str, path: Path) -> None:
        """Store a copy of the file `path` under `key`; safe on the medium when it returns."""

    @abstractmethod
    def put_bytes(self, key: str, data: bytes) -> None:
        """Store `data` under `key`; safe on the medium when it returns."""

    @abstractmethod
    def fetch(self, key: str) -> AbstractContextManager[Path]:
        """Give a local path to read the object from, for the length of a `with` block."""

    @abstractmethod
    def exists(self, key: str) -> bool:
        """Whether there is an object under `key`."""

    @abstractmethod
    def size(self, key: str) -> int:
        """Return the object's size in bytes."""

    @abstractmethod
    def delete(self, key: str) -> None:
        """Remove the object; nothing happens where there is none."""

    @abstractmethod
    def keys(self, prefix: str = "") -> Iterator[str]:
        """Yield the keys that begin with the string `prefix`, in the order of their UTF-8 bytes."""

    @abstractmethod
    def url(self, key: str) -> str:
        """Return the object's URL (file:// or s3://), for people and for metadata."""


def open_store(url: str | Path) -> ObjectStore:
    """Return the store at a folder's path, a file:// URL or s3://bucket/prefix.

    A folder is made by the first put, a bucket never. Raises ValueError as `check_store`.
    """
    # imported where they are opened: they need the contract above, and boto3 takes 0.1 s
    match _split(str(url)):
        case ("s3", bucket, prefix):
            from mail_assets.store.s3 import S3Store

            return S3Store(bucket, prefix)
        case (_, folder, _):
            from mail_assets.store.folder import FolderStore

            return FolderStore(Path(folder))


def check_store(url: str | Path) -> None:
    """Raise ValueError, with a short reason, where `url` cannot be a store; opens nothing."""
    _split(str(url))


def check_key(key: str) -> str:
    """Return `key`; ValueError where it is not a relative path of plain, visible segments."""
    fault = key_fault(key)
    if fault is not None:
        raise ValueError(f"{key!r} cannot be a store key: {fault}")
    return key


def key_fault(key: str) -> str | None:
    """What is wrong with a key, or None. The rules suit every file system and S3 alike."""
    if not key.isprintable() or "\\" in key:
        return "it holds a control character or a backslash"
    if len(key.encode()) > MAX_KEY:
        return f"it is longer than {MAX_KEY} bytes"
    for segment in key.split("/"):
        if not segment:
            return "a segment between slashes is empty"
        if segment.startswith("."):
            return f"its segment {segment!r} begins with a dot"
        if len(segment.encode()) > MAX_SEGMENT:
            return f"a segment is longer than {MAX_SEGMENT} bytes"
    return None


def check_prefix(prefix: str) -> str:
    """Return `prefix` if some key can begin with it."""
    if prefix:
        check_key(f"{prefix}x")
    return prefix


def _split(url: str) -> tuple[Literal["file", "s3"], str, str]:
    """Return scheme, folder or bucket, and S3's prefix without slashes at its ends."""
    scheme, separator, rest = url.partition("://")
    scheme = scheme.lower()
    if not separator:
        if not url.strip():
            raise ValueError("a store is needed: a folder's path, file:// or s3://bucket/prefix")
        return "file", str(Path(url).expanduser()), ""
    if scheme == "file":
        host, slash, path = rest.partition("/")
        if host not in ("", "localhost") or not path:
            raise ValueError(f"{url!r} names no folder of this machine; write file:///folder")
        return "file", unquote(slash + path), ""
    if scheme != "s3":
        raise ValueError(f"a store cannot be at {scheme}://; use a folder, file:// or s3://")
    bucket, _, prefix = rest.partition("/")
    if not bucket or {"@", ":"} & {*bucket}:  # not printed: it may hold a key
        raise ValueError("names no bucket: write s3://bucket/prefix, keys go into AWS_ variables")
    return "s3", bucket, prefix.strip("/")
