"""Threads for what blocks: as many as have work at once; nobody waits for one without end.

How many wait is bounded before they come here (limits.py).
"""

from collections.abc import AsyncIterator, Callable, Generator, Iterator
from typing import TypeVar

from anyio import CapacityLimiter, fail_after, to_thread

from mail_assets.serving.errors import ServingError

T = TypeVar("T")

#: Seconds that a request waits for a thread.
WAIT_SECONDS = 1.0


class Workers:
    """Runs blocking work for the event loop."""

    def __init__(self, threads: int) -> None:
        self._limiter = CapacityLimiter(threads)

    async def run(self, work: Callable[[], T]) -> T:
        """Do blocking work in a thread.

        Raises:
            ServingError: none was free in time.
        """
        try:
            with fail_after(WAIT_SECONDS):
                await self._limiter.acquire()
        except TimeoutError:
            message = "too many requests at the moment"
            raise ServingError(503, "overloaded", message, retry_after=1) from None
        try:
            return await to_thread.run_sync(work, limiter=CapacityLimiter(1))
        finally:
            self._limiter.release()

    async def follow(self, items: Generator[T, None, None]) -> AsyncIterator[T]:
        """Yield what a generator yields, which is closed where nobody listens any more.

        For the next item one waits however long it takes: a part is sent already. Between two of
        them no thread is held, so a client may be slow.
        """
        try:
            while some := await to_thread.run_sync(_take_next, items, limiter=self._limiter):
                yield some[0]
        finally:
            items.close()


def _take_next(items: Iterator[T]) -> tuple[T, ...]:
    """Return the next item, nothing at the end."""
    for item in items:
        return (item,)
    return ()
