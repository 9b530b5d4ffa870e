"""Files of this machine: their digest, their modes, and writing one in a single step.

Mail is read by the account that stores it: its files have the mode 0600, its folders 0700.
"""

import hashlib
import os
from pathlib import Path
from typing import BinaryIO


def digest_file(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_private(path: Path, content: bytes) -> None:
    """Write a file that only this account can read; a kill leaves the old one or the new one."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    fresh.unlink(missing_ok=True)
    with create_private(fresh) as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)


def keep_files_private() -> None:
    """Let this process, and those that it starts, make files that only this account can read."""
    os.umask(0o077)


def make_private_folder(path: Path) -> None:
    """Make a folder and its missing parents with the mode 0700; those that exist stay as they are.

    A library that makes its own files below it, with other modes, is kept private by it.
    """
    missing = [one for one in (path, *path.parents) if not one.exists()]
    for one in reversed(missing):
        one.mkdir(mode=0o700, exist_ok=True)
    path.mkdir(exist_ok=True)  # an error if it is a file


def create_private(path: Path) -> BinaryIO:
    """Open a new file of the mode 0600 for writing bytes.

    Raises:
        FileExistsError: there is one.
    """
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")
