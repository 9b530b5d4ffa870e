"""Check the URL of an object store, and open the store at it."""

import re
from pathlib import Path
from typing import Literal
from urllib.parse import unquote

from mail_assets.store.folder import FolderStore
from mail_assets.store.objects import ObjectStore

# the begin of a URL, perhaps without its slashes; no folder should look so
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


def open_store(url: str | Path) -> ObjectStore:
    """Return the store at a folder's path, a file:// URL or s3://bucket/prefix.

    A folder is made by the first put, a bucket never.

    Raises:
        ValueError: `url` cannot be a store.
    """
    match _split(str(url)):
        case ("s3", bucket, prefix):
            # imported here: boto3 takes 0.1 s, and most stores are folders
            from mail_assets.store.s3 import S3Store

            return S3Store(bucket, prefix)
        case (_, folder, _):
            return FolderStore(Path(folder))


def check_store(url: str | Path) -> None:
    """Raise ValueError, with a short reason, if `url` cannot be a store; opens nothing."""
    _split(str(url))


def store_folder(url: str | Path) -> Path | None:
    """Return the folder of a store on this machine, None for one in a bucket.

    Raises:
        ValueError: `url` cannot be a store.
    """
    scheme, place, _ = _split(str(url))
    return Path(place) if scheme == "file" else None


def _split(url: str) -> tuple[Literal["file", "s3"], str, str]:
    """Return scheme, folder or bucket, and the prefix in S3 without slashes at its ends."""
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
    if not bucket or {"@", ":"} & {*bucket}:  # not printed: it may hold a key
        raise ValueError("names no bucket: write s3://bucket/prefix, keys go into AWS_ variables")
    return "s3", bucket, prefix.strip("/")
