"""Files that the pipeline keeps, by key: in a folder or under an S3 prefix.

What lives here: `ObjectStore`, its two implementations and `open_store`. A key is a path of
plain segments, `archives/pgsql-hackers/2024-05.gz`; an object appears whole or not at all, and
is replaced in one step. What does not: what the keys and files mean (`store` has a module for
each kind) and where archives come from (`mail_assets.sources`).
"""

import os
import secrets
import shutil
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import BinaryIO, Literal
from urllib.parse import unquote

import boto3
from boto3.exceptions import Boto3Error
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

TEMPORARY = ".incoming"  # under a folder store's root, so that a rename stays on one disk
STALE_SECONDS = 24 * 3600  # no living writer leaves its temporary file untouched for a day
MAX_SEGMENT = 200  # bytes; file systems allow 255
MAX_KEY = 900  # bytes; S3 allows 1,024, its prefix included

_REMEDY = "check AWS_ENDPOINT_URL, AWS_REGION and the credentials"
_REMEDIES = {
    "403": "grant s3:ListBucket, s3:GetObject, s3:PutObject and s3:DeleteObject",
    "AccessDenied": "grant s3:ListBucket, s3:GetObject, s3:PutObject and s3:DeleteObject",
    "NoSuchBucket": "make the bucket first, or correct its name",
}


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


class FolderStore(ObjectStore):
    """Objects as files of a folder, at the path that the key says.

    A writer fills a file in `.incoming`, syncs it and renames it into place. What a killed
    writer left there is never seen under a key, and goes with the first put after a day.
    """

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()

    def put(self, key: str, path: Path) -> None:
        """Copy the file to the disk; see ObjectStore."""
        with self._replacing(key) as target, path.open("rb") as source:
            shutil.copyfileobj(source, target, 1 << 20)

    def put_bytes(self, key: str, data: bytes) -> None:
        """Write the bytes to the disk; see ObjectStore."""
        with self._replacing(key) as target:
            target.write(data)

    def fetch(self, key: str) -> AbstractContextManager[Path]:
        """Give the file itself, which is for reading only."""
        self.size(key)
        return nullcontext(self._path(key))

    def exists(self, key: str) -> bool:
        """Whether the file is there; see ObjectStore."""
        return self._path(key).is_file()

    def size(self, key: str) -> int:
        """Return the file's size; see ObjectStore."""
        path = self._path(key)
        if not path.is_file():
            raise FileNotFoundError(f"the store has no object {self.url(key)}")
        return path.stat().st_size

    def delete(self, key: str) -> None:
        """Remove the file; see ObjectStore."""
        path = self._path(key)
        if path.is_file():
            path.unlink(missing_ok=True)
            _sync(path.parent)

    def keys(self, prefix: str = "") -> Iterator[str]:
        """Walk the folder; see ObjectStore."""
        base = self.root / _check_prefix(prefix).rpartition("/")[0]
        found = []
        for folder, folders, files in os.walk(base, onerror=_raise_unless_missing):
            folders[:] = [name for name in folders if not name.startswith(".")]
            within = Path(folder).relative_to(self.root)
            found += [(within / name).as_posix() for name in files if not name.startswith(".")]
        yield from sorted((key for key in found if key.startswith(prefix)), key=os.fsencode)

    def url(self, key: str) -> str:
        """Return the file's URL; see ObjectStore."""
        return self._path(key).as_uri()

    def _path(self, key: str) -> Path:
        return self.root / check_key(key)

    @contextmanager
    def _replacing(self, key: str) -> Iterator[BinaryIO]:
        """A new file to write, which takes the key's place when the block ends well."""
        path = self._path(key)
        incoming = self.root / TEMPORARY
        _make_folder(incoming)
        _sweep(incoming)
        # not tempfile's: its mode 0600 would shut out a second user of a shared folder
        temporary = incoming / f"{os.getpid()}-{secrets.token_hex(8)}"
        try:
            with temporary.open("xb") as target:
                yield target
                target.flush()
                os.fsync(target.fileno())
            _make_folder(path.parent)
            temporary.replace(path)
            _sync(path.parent)
        finally:
            temporary.unlink(missing_ok=True)


class S3Store(ObjectStore):
    """Objects under s3://bucket/prefix/. Endpoint, region and credentials are boto3's own.

    Large files go up in parts and appear when the last is in; give the bucket a lifecycle rule
    (AbortIncompleteMultipartUpload) for the parts of killed writers, which no listing shows.
    """

    def __init__(self, bucket: str, prefix: str) -> None:
        self._bucket = bucket
        self._prefix = f"{prefix}/" if prefix else ""
        self._client = boto3.client(
            "s3", config=Config(retries={"mode": "standard", "max_attempts": 5})
        )

    def put(self, key: str, path: Path) -> None:
        """Upload the file; see ObjectStore."""
        with self._explained(self.url(key)):
            self._client.upload_file(str(path), self._bucket, self._key(key))

    def put_bytes(self, key: str, data: bytes) -> None:
        """Upload the bytes; see ObjectStore."""
        with self._explained(self.url(key)):
            self._client.put_object(Bucket=self._bucket, Key=self._key(key), Body=data)

    @contextmanager
    def fetch(self, key: str) -> Iterator[Path]:
        """Give a temporary download, which goes when the block ends."""
        with tempfile.TemporaryDirectory(prefix="mail-assets-") as folder:
            path = Path(folder) / key.rpartition("/")[2]
            with self._explained(self.url(key)):
                self._client.download_file(self._bucket, self._key(key), str(path))
            yield path

    def exists(self, key: str) -> bool:
        """Ask for the object's head; see ObjectStore."""
        try:
            self.size(key)
        except FileNotFoundError:
            return False
        return True

    def size(self, key: str) -> int:
        """Ask for the object's head; see ObjectStore."""
        with self._explained(self.url(key)):
            head = self._client.head_object(Bucket=self._bucket, Key=self._key(key))
        return int(head["ContentLength"])

    def delete(self, key: str) -> None:
        """Delete the object; see ObjectStore."""
        with self._explained(self.url(key)):
            self._client.delete_object(Bucket=self._bucket, Key=self._key(key))

    def keys(self, prefix: str = "") -> Iterator[str]:
        """List the objects, a thousand a request; see ObjectStore."""
        pages = self._client.get_paginator("list_objects_v2").paginate(
            Bucket=self._bucket, Prefix=self._prefix + _check_prefix(prefix)
        )
        with self._explained(f"s3://{self._bucket}/{self._prefix}{prefix}"):
            for page in pages:
                for found in page.get("Contents", []):
                    key = found["Key"].removeprefix(self._prefix)
                    if _fault(key) is None:  # others, such as "folder/", are not this store's
                        yield key

    def url(self, key: str) -> str:
        """Return the object's s3:// URL; see ObjectStore."""
        return f"s3://{self._bucket}/{self._key(key)}"

    def _key(self, key: str) -> str:
        return self._prefix + check_key(key)

    @contextmanager
    def _explained(self, url: str) -> Iterator[None]:
        """Turn S3's errors into FileNotFoundError or StoreError."""
        try:
            yield
        except ClientError as error:
            code = error.response.get("Error", {}).get("Code", "")
            if code in ("404", "NoSuchKey"):  # the number where the answer has no body
                raise FileNotFoundError(f"the store has no object {url}") from error
            raise StoreError(f"{url}: S3 answers {code}; {_REMEDIES.get(code, _REMEDY)}") from error
        except (BotoCoreError, Boto3Error) as error:
            raise StoreError(f"{url}: {error}; {_REMEDY}") from error


def open_store(url: str | Path) -> ObjectStore:
    """Return the store at a folder's path, a file:// URL or s3://bucket/prefix.

    A folder is made by the first put, a bucket never. Raises ValueError as `check_store`.
    """
    match _split(str(url)):
        case ("s3", bucket, prefix):
            return S3Store(bucket, prefix)
        case (_, folder, _):
            return FolderStore(Path(folder))


def check_store(url: str | Path) -> None:
    """Raise ValueError, with a short reason, where `url` cannot be a store; opens nothing."""
    _split(str(url))


def check_key(key: str) -> str:
    """Return `key`; ValueError where it is not a relative path of plain, visible segments."""
    fault = _fault(key)
    if fault is not None:
        raise ValueError(f"{key!r} cannot be a store key: {fault}")
    return key


def _fault(key: str) -> str | None:
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


def _check_prefix(prefix: str) -> str:
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
    if not bucket or "@" in bucket:
        raise ValueError(f"{url!r} names no bucket; write s3://bucket/prefix")
    return "s3", bucket, prefix.strip("/")


def _make_folder(folder: Path) -> None:
    """Make a folder and those above it, so that they outlast a power cut."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for path in missing:
        _sync(path.parent)


def _sync(folder: Path) -> None:
    """Flush a folder's entries: a rename is safe only then."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _sweep(incoming: Path) -> None:
    """Remove what writers killed more than a day ago left."""
    limit = time.time() - STALE_SECONDS
    for path in incoming.iterdir():
        with suppress(FileNotFoundError):  # another writer sweeps, or has just renamed it
            if path.stat().st_mtime < limit:
                path.unlink()


def _raise_unless_missing(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise error
