"""Threads for what blocks: as many as have work at once, and a bound on what waits for them."""

from collections.abc import AsyncIterator, Callable, Generator, Iterator
from typing import TypeVar

from anyio import CapacityLimiter, to_thread

from mail_assets.serving.errors import ServingError

T = TypeVar("T")

#: Requests that wait, for each that runs; more are turned away at once.
MAX_WAITING = 4


class Workers:
    """Runs blocking work for the event loop."""

    def __init__(self, threads: int) -> None:
        self._limiter = CapacityLimiter(threads)

    async def run(self, work: Callable[[], T]) -> T:
        """Do blocking work in a thread.

        Raises:
            ServingError: too many requests wait for one.
        """
        waiting = self._limiter.statistics().tasks_waiting
        if waiting >= MAX_WAITING * self._limiter.total_tokens:
            raise ServingError(503, "overloaded", "too many searches at once", retry_after=1)
        return await to_thread.run_sync(work, limiter=self._limiter)

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
