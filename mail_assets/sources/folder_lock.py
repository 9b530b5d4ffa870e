"""Let one process at a time work in a folder of a source's cache."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def hold_folder(folder: Path) -> Iterator[None]:
    """Wait until nobody else holds the folder, then keep others waiting; it is made if missing.

    The lock ends with the process that holds it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
