"""Permits for a bounded number of threads at once; who has waited longest is next.

Not `threading.Semaphore`: a thread that gives its permit back can take it again before one that
waits is awake, and a few busy clients would keep another waiting for a second.
"""

import threading
from collections import deque


class Permits:
    """So many permits, handed from thread to thread."""

    def __init__(self, count: int) -> None:
        self._free = count
        self._waiting: deque[threading.Event] = deque()
        self._lock = threading.Lock()

    def acquire(self, timeout: float | None = None) -> bool:
        """Take a permit; return whether there was one within so many seconds, None for any time."""
        with self._lock:
            if self._free:
                self._free -= 1
                return True
            turn = threading.Event()
            self._waiting.append(turn)
        if turn.wait(timeout):
            return True
        with self._lock:
            if turn.is_set():  # at the last moment
                return True
            self._waiting.remove(turn)
            return False

    def release(self) -> None:
        """Give a permit back, to the thread that has waited longest."""
        with self._lock:
            if self._waiting:
                self._waiting.popleft().set()
            else:
                self._free += 1
