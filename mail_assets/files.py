"""Files of this machine: their digest, and writing one in a single step."""

import hashlib
import os
from pathlib import Path


def digest_file(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_private(path: Path, content: bytes) -> None:
    """Write a file that only this account can read; a kill leaves the old one or the new one."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    fresh.unlink(missing_ok=True)
    with fresh.open("xb") as file:
        os.fchmod(file.fileno(), 0o600)
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
