"""Waiting of tests for a thread or a process that may be lost."""

import time
from collections.abc import Callable

#: Seconds. What works never takes as long, on however slow a machine; what hangs is given up.
LONG = 600


def wait_until(holds: Callable[[], bool]) -> None:
    """Look until something holds that another process or thread brings about.

    The longer it takes the more rarely it looks, at most four times a second: to ask a server takes
    time of the processor that it works on.
    """
    began = time.monotonic()
    while not holds():
        waited = time.monotonic() - began
        assert waited < LONG, "it never came to hold"
        time.sleep(min(0.25, 0.001 + waited / 20))
