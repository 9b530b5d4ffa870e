"""Run functions in a worker process, or in a pool of them.

`multiprocessing` is not used: its spawned processes first import the program's main module (0.7 s
for Dagster's), its forked processes inherit the threads of gRPC, and both outlive a killed parent.
A worker runs worker_process.py and ends when its input pipe is closed.
"""

import os
import pickle
import queue
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from itertools import chain, islice
from typing import Any, Self, TypeVar

from mail_assets.environment import child_environment
from mail_assets.errors import UnavailableError

PROGRAM = "mail_assets.processes.worker_process"

#: Fewer items are computed in this process: starting a worker takes 0.2 s, as long as three batches
#: of mail.
MIN_ITEMS = 4

_S = TypeVar("_S")
_I = TypeVar("_I")
_R = TypeVar("_R")


class WorkerError(UnavailableError):
    """A worker process died, or its function raised an error."""

    notice = "the search crashed; try again, or narrow it"


class Worker:
    """One worker process; it starts with the first item, and again after it has ended.

    `remedy` is part of the error if the process dies. `core` is the CPU on which it runs, None for
    any. Only one thread at a time may use a worker.
    """

    def __init__(self, remedy: str, core: int | None = None) -> None:
        self._remedy = remedy
        self._arguments = [] if core is None else [str(core)]
        self._process: subprocess.Popen[bytes] | None = None
        self._call = b""

    def compute(self, call: bytes, item: object) -> Any:
        """Return the result of a function for an item.

        `call` is the pickled function with its first argument; the process keeps both for further
        items.

        Raises:
            WorkerError: the process died, or the function raised an error.
        """
        process = self._process or self._start()
        try:
            _send(process, (None if call == self._call else call, item))
            self._call = call
            error, result = pickle.load(process.stdout)  # type: ignore[arg-type]
        except (EOFError, OSError, pickle.UnpicklingError) as gone:
            code = self.close()
            raise WorkerError(
                f"worker process exited with code {code} (often: out of memory). {self._remedy}"
            ) from gone
        if error:
            raise WorkerError(error)
        return result

    def _start(self) -> subprocess.Popen[bytes]:
        self._process = subprocess.Popen(
            [sys.executable, "-m", PROGRAM, *self._arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=child_environment(PYTHONPATH=os.pathsep.join(filter(None, sys.path))),
        )
        self._call = b""
        return self._process

    def close(self) -> int | None:
        """End the process by closing its input; return its exit code, None without a process."""
        process, self._process = self._process, None
        if process is None:
            return None
        for pipe in (process.stdin, process.stdout):
            with suppress(OSError):
                pipe.close()  # type: ignore[union-attr]
        return process.wait()


def _send(process: subprocess.Popen[bytes], message: object) -> None:
    pickle.dump(message, process.stdin, protocol=5)  # type: ignore[arg-type]
    process.stdin.flush()  # type: ignore[union-attr]


class WorkerPool:
    """A pool of `size` processes, started on demand; with 1, this process computes."""

    def __init__(self, size: int = 1) -> None:
        self.size = size
        self._threads: ThreadPoolExecutor | None = None
        self._idle: queue.SimpleQueue[Worker] = queue.SimpleQueue()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the processes; the next use starts new ones."""
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
        """Yield each item with the result of `function(shared, item)`, in the order of the items.

        Items are read on demand: at most two per process are waiting.
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
        # For each process, one thread waits for its answers.
        if self._threads is None:
            self._threads = ThreadPoolExecutor(self.size, "worker-pool")
            for _ in range(self.size):
                self._idle.put(Worker("Run it again, with fewer processes in MAIL_JOBS"))
        return self._threads

    def _compute(self, call: bytes, item: Any) -> Any:
        worker = self._idle.get()
        try:
            return worker.compute(call, item)
        finally:
            self._idle.put(worker)
