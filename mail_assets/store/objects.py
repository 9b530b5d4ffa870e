"""Interface of an object store, which keeps the pipeline's files by key.

A key is a path of plain segments, such as `archives/pgsql-hackers/2024-05.gz`. Objects are written
and replaced atomically.
"""

import datetime as dt
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

from mail_assets.errors import UnavailableError

MAX_SEGMENT = 200  # bytes; file systems allow 255
MAX_KEY = 900  # bytes; S3 allows 1,024 including the prefix


class StoreError(UnavailableError):
    """A store cannot be reached or refuses; the message has object, fault and remedy."""

    notice = "the archive of this message cannot be read at the moment"


class ObjectStore(ABC):
    """Files by key.

    Reading an object that does not exist raises FileNotFoundError with its URL; every method
    raises ValueError for a malformed key.
    """

    @abstractmethod
    def put(self, key: str, path: Path) -> None:
        """Store a copy of the file `path` under `key`, durably."""

    @abstractmethod
    def put_bytes(self, key: str, data: bytes) -> None:
        """Store `data` under `key`, durably."""

    @abstractmethod
    def fetch(self, key: str) -> AbstractContextManager[Path]:
        """Return a local path of the object, valid within the `with` block."""

    @abstractmethod
    def exists(self, key: str) -> bool:
        """Return whether there is an object under `key`."""

    @abstractmethod
    def size(self, key: str) -> int:
        """Return the object's size in bytes."""

    @abstractmethod
    def modified(self, key: str) -> dt.datetime:
        """Return the time when the object was last put, by the store's clock."""

    @abstractmethod
    def delete(self, key: str) -> None:
        """Delete the object, if it exists."""

    @abstractmethod
    def keys(self, prefix: str = "") -> Iterator[str]:
        """Yield the keys that begin with the string `prefix`, in the order of their UTF-8 bytes."""

    @abstractmethod
    def url(self, key: str) -> str:
        """Return the object's URL (file:// or s3://), for messages and metadata."""


def check_key(key: str) -> str:
    """Return `key`; raise ValueError if it has a fault."""
    fault = key_fault(key)
    if fault is not None:
        raise ValueError(f"{key!r} cannot be a store key: {fault}")
    return key


def key_fault(key: str) -> str | None:
    """Return the fault of a key, or None; valid keys work on every file system and on S3."""
    if not key.isprintable() or "\\" in key:
        return "it has a control character or a backslash"
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
    """Return `prefix`; raise ValueError if no key can begin with it."""
    if prefix:
        check_key(f"{prefix}x")
    return prefix
