"""Open the store at a URL: a folder, with objects as files, or an S3 bucket (s3.py)."""

import datetime as dt
import os
import re
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import BinaryIO, Literal
from urllib.parse import unquote

from mail_assets.files import create_private, make_private_folder, naming_file, sync_folder
from mail_assets.store.objects import ObjectStore, check_key, check_prefix

TEMPORARY = ".incoming"  # under a folder store's root, so that a rename stays on one disk
STALE_SECONDS = 24 * 3600  # an older temporary file is left from a killed writer


class FolderStore(ObjectStore):
    """Objects as files of a folder; the key is the path.

    Files have the mode 0600, folders 0700. A writer fills a file in `.incoming`, syncs it and
    renames it to its key. The file of a killed writer stays in `.incoming`; the first put after a
    day removes it.
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
        """Return the file itself, for reading only."""
        self.size(key)
        return nullcontext(self._path(key))

    def exists(self, key: str) -> bool:
        """Return whether the file exists; see ObjectStore."""
        return self._path(key).is_file()

    def size(self, key: str) -> int:
        """Return the file's size; see ObjectStore."""
        path = self._path(key)
        if not path.is_file():
            raise FileNotFoundError(f"the store has no object {self.url(key)}")
        return path.stat().st_size

    def modified(self, key: str) -> dt.datetime:
        """Return the file's modification time; see ObjectStore."""
        self.size(key)
        return dt.datetime.fromtimestamp(self._path(key).stat().st_mtime, dt.UTC)

    def delete(self, key: str) -> None:
        """Remove the file; see ObjectStore."""
        path = self._path(key)
        if path.is_file():
            path.unlink(missing_ok=True)
            sync_folder(path.parent)

    def keys(self, prefix: str = "") -> Iterator[str]:
        """Walk the folder; see ObjectStore."""
        base = self.root / check_prefix(prefix).rpartition("/")[0]
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
        """Open a new file; it replaces the object when the block ends without an error."""
        path = self._path(key)
        incoming = self.root / TEMPORARY
        _make_folder(incoming)
        _remove_stale(incoming)
        temporary = incoming / f"{os.getpid()}-{secrets.token_hex(8)}"
        try:
            with naming_file(path), create_private(temporary) as target:
                yield target
                target.flush()
                os.fsync(target.fileno())
            _make_folder(path.parent)
            temporary.replace(path)
            sync_folder(path.parent)
        finally:
            temporary.unlink(missing_ok=True)


def _make_folder(folder: Path) -> None:
    """Create a folder and its parents so that they survive a power cut."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    make_private_folder(folder)
    for path in missing:
        sync_folder(path.parent)


def _remove_stale(incoming: Path) -> None:
    limit = time.time() - STALE_SECONDS
    for path in incoming.iterdir():
        with suppress(FileNotFoundError):  # another writer removed or renamed it
            if path.stat().st_mtime < limit:
                path.unlink()


def _raise_unless_missing(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise error


# the start of a URL, perhaps without its slashes; such a folder name is refused
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


def open_store(url: str | Path) -> ObjectStore:
    """Return the store at a folder's path, a file:// URL or s3://bucket/prefix.

    The first put creates a folder; a bucket must exist.

    Raises:
        ValueError: `url` is malformed.
    """
    match _split(str(url)):
        case ("s3", bucket, prefix):
            # imported here: boto3 takes 0.1 s, and most stores are folders
            from mail_assets.store.s3 import S3Store

            return S3Store(bucket, prefix)
        case (_, folder, _):
            return FolderStore(Path(folder))


def check_store(url: str | Path) -> None:
    """Raise ValueError with a short reason if `url` is malformed; open nothing."""
    _split(str(url))


def store_folder(url: str | Path) -> Path | None:
    """Return the folder of a store, None if it is in a bucket.

    Raises:
        ValueError: `url` is malformed.
    """
    scheme, place, _ = _split(str(url))
    return Path(place) if scheme == "file" else None


def _split(url: str) -> tuple[Literal["file", "s3"], str, str]:
    """Return scheme, folder or bucket, and the S3 prefix without slashes at its ends."""
    scheme, separator, rest = url.partition("://")
    scheme = scheme.lower()
    if not separator:
        if not url.strip():
            raise ValueError("a store is needed: a folder's path, file:// or s3://bucket/prefix")
        if _SCHEME.match(url):
            raise ValueError(
                "a URL has two slashes after its colon: s3://bucket/prefix or file:///folder; a "
                "folder with a colon is ./NAME"
            )
        return "file", str(Path(url).expanduser()), ""
    if scheme == "file":
        host, slash, path = rest.partition("/")
        if host not in ("", "localhost") or not path:
            raise ValueError(f"{url!r} names no folder of this machine; write file:///folder")
        return "file", unquote(slash + path), ""
    if scheme != "s3":
        raise ValueError(f"a store cannot be at {scheme}://; use a folder, file:// or s3://")
    bucket, _, prefix = rest.partition("/")
    if not bucket or {"@", ":"} & {*bucket}:  # not printed: it may contain a key
        raise ValueError("names no bucket: write s3://bucket/prefix, keys go into AWS_ variables")
    return "s3", bucket, prefix.strip("/")
