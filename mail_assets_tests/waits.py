"""Waiting for threads and processes that may never finish, and for locks."""

import fcntl
import os
import time
from collections.abc import Callable
from pathlib import Path

#: Seconds after which a wait fails; working code is faster, also on slow machines.
LONG = 600


def wait_until(holds: Callable[[], bool]) -> None:
    """Wait until a condition holds that another process or thread makes true.

    Checks become rarer over time, down to four in a second, because asking a server takes processor
    time from its work.
    """
    began = time.monotonic()
    while not holds():
        waited = time.monotonic() - began
        assert waited < LONG, "it never came to hold"
        time.sleep(min(0.25, 0.001 + waited / 20))


def is_locked(folder: Path) -> bool:
    """Try the lock of a folder as another process would, without waiting."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False
