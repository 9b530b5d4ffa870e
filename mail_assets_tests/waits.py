"""Waiting of tests for a thread or a process that may be lost."""

import time
from collections.abc import Callable

#: Seconds. What works never takes as long, on however slow a machine; what hangs is given up.
LONG = 600


def wait_until(holds: Callable[[], bool]) -> None:
    """Look until something holds that another process or thread brings about."""
    given_up = time.monotonic() + LONG
    while not holds():
        assert time.monotonic() < given_up, "it never came to hold"
        time.sleep(0.001)
