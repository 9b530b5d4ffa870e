"""The pace of requests to a service: how fast vectors are written, and how long to wait to retry.

Both are of the process, not of one client or index: the account that a service limits is one.
What does not live here: the requests (`s3vectors`) and their client (`s3vectors_client`).
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable

# Answers that the same request may not get again: timeout, throttling, outages.
PASSING = frozenset({408, 429, 500, 502, 503, 504})

ATTEMPTS = 8
# Seconds; the n-th wait is drawn from 0 to FIRST_WAIT * 2**n, so that processes that were refused
# together do not come back together.
# https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/
FIRST_WAIT, LONGEST_WAIT = 0.25, 20.0
# What a service asks for in Retry-After is obeyed up to here; beyond, the run fails and says so.
LONGEST_RETRY_AFTER = 60.0


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


class Retries:
    """Says how long to wait before a request is sent again, or that it is not worth it.

    A budget stops a process from hammering a service that is down: a retry takes `COST` of it,
    an answer gives 1 back. (The figures of the AWS SDKs' standard mode.)
    """

    CAPACITY, COST = 500, 5

    def __init__(self, seed: int | None = None) -> None:
        self._random = random.Random(seed)
        self._lock = threading.Lock()
        self._budget = self.CAPACITY

    def answered(self) -> None:
        """Count a request that was answered as it should be."""
        with self._lock:
            self._budget = min(self.CAPACITY, self._budget + 1)

    def wait(self, attempts: int, retry_after: str | None = None) -> float | None:
        """Return seconds until the next attempt after `attempts` that failed, None to give up.

        `retry_after` is the header's value: seconds. Its other form, a date, counts as none.
        """
        asked = float(retry_after) if retry_after and retry_after.isdecimal() else 0.0
        if attempts >= ATTEMPTS or asked > LONGEST_RETRY_AFTER:
            return None
        with self._lock:
            if self._budget < self.COST:
                return None
            self._budget -= self.COST
            longest = min(LONGEST_WAIT, FIRST_WAIT * 2**attempts)
            return asked + self._random.uniform(0, longest)


# AWS takes 2,500 vectors a second and index, put and delete together; Supabase passes on to it.
# A process that is not alone is held back by the service's 429.
# https://docs.aws.amazon.com/AmazonS3/latest/userguide/s3-vectors-limitations.html
WRITES = WriteRate(per_second=2_500, burst=2_500)
RETRIES = Retries()
