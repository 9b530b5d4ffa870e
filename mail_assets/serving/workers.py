"""Threads for what blocks: as many as have work at once, and a bound on what waits for them."""

from collections.abc import AsyncIterator, Callable, Iterator
from typing import TypeVar

from anyio import CapacityLimiter, to_thread

from mail_assets.serving.errors import ServingError

T = TypeVar("T")

#: Requests that wait, for each that runs; more are turned away at once.
MAX_WAITING = 4
#: Bytes that are worth a turn in a thread.
MIN_PIECE = 16 * 1024


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

    async def stream(self, pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
        """Yield the pieces of what is sent already: for the next, one waits however long it takes.

        A client that reads slowly holds no thread.
        """
        while piece := await to_thread.run_sync(_next_whole, pieces, limiter=self._limiter):
            yield piece


def _next_whole(pieces: Iterator[bytes]) -> bytes:
    """Return pieces of some size together, nothing at the end."""
    together = bytearray()
    for piece in pieces:
        together += piece
        if len(together) >= MIN_PIECE:
            break
    return bytes(together)
