"""Helpers for local files: digests, modes, atomic writes, full disks, files of the package.

Only the account that stores mail may read it: files have the mode 0600, folders 0700.

sql/ and dagster.yaml are next to the package in a checkout (also one installed with `pip install
--editable`), and inside the package in a wheel.
"""

import errno
import hashlib
import os
import shutil
import tempfile
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from mail_assets.errors import UnavailableError

#: Signs of a full disk: error numbers of the system, messages (of Rust), SQLSTATE of PostgreSQL.
_FULL = (errno.ENOSPC, errno.EDQUOT)
_FULL_WORDS = ("No space left on device", "os error 28", "Disk quota exceeded", "os error 122")
_FULL_STATE = "53100"


class DiskFullError(UnavailableError):
    """A disk is full; the message names a path on it, the free space, and the remedy."""

    notice = "a disk is full at the moment"


def find_full_disk(error: BaseException, folders: Iterable[Path]) -> DiskFullError | None:
    """Return a DiskFullError if the cause of an error is a full disk, else None.

    It names the path in the error, else the one of `folders` whose disk has the least free space.
    """
    for one in _causes(error):
        number = one.errno if isinstance(one, OSError) else None
        state = getattr(one, "sqlstate", None)
        if number in _FULL or state == _FULL_STATE or any(x in str(one) for x in _FULL_WORDS):
            named = getattr(one, "filename", None)
            places = (
                [Path(os.fsdecode(named))] if named else [*folders, Path(tempfile.gettempdir())]
            )
            server = "the PostgreSQL server reports a full disk; " if state else ""
            return DiskFullError(
                f"{server}{_describe_fullest(places)}; make room, then run it again"
            )
    return None


@contextmanager
def naming_file(path: Path) -> Iterator[None]:
    """Add the file's name to an OSError that has none, such as that of a write."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = str(path)
        raise


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    following: BaseException | None = error
    while following is not None and id(following) not in seen:
        seen.add(id(following))
        yield following
        following = following.__cause__ or following.__context__


def _describe_fullest(places: Iterable[Path]) -> str:
    there = {place: _existing(place) for place in places}
    rooms = {place: shutil.disk_usage(found) for place, found in there.items() if found}
    if not rooms:
        return "no space is left on a disk"
    place, room = min(rooms.items(), key=lambda one: one[1].free)
    megabytes = room.free / 1e6, room.total / 1e6
    return f"no space is left for {place}: {megabytes[0]:,.1f} of {megabytes[1]:,.1f} MB are free"


def _existing(place: Path) -> Path | None:
    return next((path for path in (place, *place.parents) if path.exists()), None)


def digest_file(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_private(path: Path, content: bytes) -> None:
    """Write a file that only this account can read, by an atomic rename."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_native_id()}")
    fresh.unlink(missing_ok=True)
    with naming_file(path), create_private(fresh) as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)


def keep_files_private() -> None:
    """Set the umask, so that only this account can read new files of this process and children."""
    os.umask(0o077)


def make_private_folder(path: Path) -> None:
    """Create a folder and its missing parents with the mode 0700; keep existing ones unchanged.

    Files that a library creates below it are private too, whatever their modes are.
    """
    missing = [one for one in (path, *path.parents) if not one.exists()]
    for one in reversed(missing):
        one.mkdir(mode=0o700, exist_ok=True)
    path.mkdir(exist_ok=True)  # an error if it is a file


def sync_folder(folder: Path) -> None:
    """Flush the entries of a folder to disk, so that a rename in it survives a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def create_private(path: Path) -> BinaryIO:
    """Open a new file with the mode 0600 for writing bytes.

    Raises:
        FileExistsError: the file exists.
    """
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")


_PACKAGE = Path(__file__).parent


def find_checkout() -> Path | None:
    """Return the root of the checkout from which this package runs; None in an installed wheel.

    Raises:
        FileNotFoundError: neither place has the SQL files.
    """
    if (_PACKAGE / "sql").is_dir():
        return None
    root = _PACKAGE.parent
    if (root / "sql").is_dir() and (root / "pyproject.toml").is_file():
        return root
    raise FileNotFoundError(f"{_PACKAGE} has no sql/: install mail-assets again")


def sql_folder() -> Path:
    """Return the folder with the SQL files.

    Raises:
        FileNotFoundError: there is none.
    """
    return _root() / "sql"


def dagster_yaml() -> Path:
    """Return the path of the dagster.yaml that comes with this version."""
    return _root() / "dagster.yaml"


def _root() -> Path:
    return find_checkout() or _PACKAGE
