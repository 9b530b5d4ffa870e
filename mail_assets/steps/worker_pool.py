"""Processes that compute for a step: a function, mapped over items, in their order."""

import pickle
import queue
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain, islice
from typing import Any, Self, TypeVar

from mail_assets.processes.worker import Worker

_S = TypeVar("_S")
_I = TypeVar("_I")
_R = TypeVar("_R")

#: A process takes 0.2 s to start, as long as it computes about three batches of messages.
MIN_ITEMS = 4

#: What to do where a process ended by itself.
REMEDY = "Run it again, with fewer processes in MAIL_JOBS"


class WorkerPool:
    """Up to `size` processes, started when there is work for them; 1 computes in this process."""

    def __init__(self, size: int = 1) -> None:
        self.size = size
        self._threads: ThreadPoolExecutor | None = None
        self._idle: queue.SimpleQueue[Worker] = queue.SimpleQueue()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the processes; the next use starts others."""
        if self._threads is None:
            return
        self._threads.shutdown(cancel_futures=True)
        self._threads = None
        while True:
            try:
                self._idle.get_nowait().close()
            except queue.Empty:
                return

    def map(
        self, function: Callable[[_S, _I], _R], shared: _S, items: Iterable[_I]
    ) -> Iterator[tuple[_I, _R]]:
        """Yield each item with the function's result for it; `shared` is the same for all.

        The items are read as they are needed: two for each process wait at most. Fewer than
        MIN_ITEMS do not start processes.

        Raises:
            WorkerError: a process has ended.
        """
        left = iter(items)
        head = [*islice(left, MIN_ITEMS)] if self.size > 1 else []
        if len(head) < MIN_ITEMS and self._threads is None:
            yield from ((item, function(shared, item)) for item in chain(head, left))
            return
        call, threads = pickle.dumps((function, shared)), self._start()
        waiting: deque[tuple[_I, Future[_R]]] = deque()
        try:
            for item in chain(head, left):
                waiting.append((item, threads.submit(self._compute, call, item)))
                if len(waiting) == 2 * self.size:
                    done, result = waiting.popleft()
                    yield done, result.result()
            while waiting:
                done, result = waiting.popleft()
                yield done, result.result()
        finally:
            for _, result in waiting:
                result.cancel()

    def _start(self) -> ThreadPoolExecutor:
        """One thread for each process: it waits for the answers."""
        if self._threads is None:
            self._threads = ThreadPoolExecutor(self.size, "worker-pool")
            for _ in range(self.size):
                self._idle.put(Worker(REMEDY))
        return self._threads

    def _compute(self, call: bytes, item: Any) -> Any:
        worker = self._idle.get()
        try:
            return worker.compute(call, item)
        finally:
            self._idle.put(worker)
