"""One encoder at a time on one machine: a second one on the same cores makes both slower.

A file lock instead of a pool of Dagster: a step of the in-process executor that waits for a pool
spins on a core (dagster-io/dagster#20367; 200,000 rounds in 5 s with 1.13.27), runs of the command
line and of the daemon share it, a killed process frees it, and machines of a cluster are apart.
"""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def encoder_lock(folder: Path, report_wait: Callable[[], object]) -> Iterator[None]:
    """Wait until no other process encodes with the models of a folder, then keep others waiting.

    `report_wait` is called before waiting. The folder itself is locked, so it may be read-only; it
    is made where it is missing.
    """
    folder.mkdir(parents=True, exist_ok=True)
    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            report_wait()
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)  # frees the lock
