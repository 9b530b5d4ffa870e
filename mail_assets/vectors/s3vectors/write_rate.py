"""How fast this process writes vectors: a token bucket for all clients together.

It is of the process, not of one client or index: the account that a service limits is one.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


class WriteRate:
    """A token bucket: `take` waits until the process may write so many more vectors."""

    def __init__(
        self,
        per_second: float,
        burst: float,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self.per_second = per_second
        self._burst = burst
        self._clock, self._sleep = clock, sleep
        self._lock = threading.Lock()
        self._tokens, self._at = burst, clock()

    def take(self, count: int) -> None:
        """Wait for `count` tokens. They are taken at once, so that waiters queue up fairly."""
        with self._lock:
            now = self._clock()
            refilled = self._tokens + (now - self._at) * self.per_second
            self._tokens, self._at = min(self._burst, refilled) - count, now
            debt = -self._tokens
        if debt > 0:
            self._sleep(debt / self.per_second)


# AWS takes 2,500 vectors a second and index, put and delete together; Supabase passes on to it.
# A process that is not alone is held back by the service's 429.
# https://docs.aws.amazon.com/AmazonS3/latest/userguide/s3-vectors-limitations.html
WRITES = WriteRate(per_second=2_500, burst=2_500)
