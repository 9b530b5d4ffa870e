"""Waiting for threads and processes that may never finish."""

import time
from collections.abc import Callable

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
