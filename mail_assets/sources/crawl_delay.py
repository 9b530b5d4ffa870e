"""Keep a pause between two requests to one server, for all sources of this process together."""

import threading
import time
from collections.abc import Callable


class CrawlDelay:
    """When each server may next be asked; safe to share between threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._next: dict[bytes, float] = {}

    def wait(self, server: bytes, delay: float, sleep: Callable[[float], None]) -> None:
        """Sleep until it is this request's turn; the next one's is `delay` seconds later."""
        with self._lock:
            now = time.monotonic()
            turn = max(now, self._next.get(server, now))
            self._next[server] = turn + delay
        if turn > now:
            sleep(turn - now)
