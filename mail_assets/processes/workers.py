"""A process that computes what it is sent, one thing after another.

Not `multiprocessing`: its spawned processes import the program's main module first (Dagster's
takes 0.7 s), its forked ones inherit the threads of gRPC, and both outlive a parent that was
killed. These are started as a module of their own, and end when the pipe they read from does.

[worker_process] The process of a Worker: reads calls from its input, writes results to its output.

It ends when its input does, whether the worker was closed or its process was killed. Its argument,
if it has one, is the CPU that it keeps to with all its threads.

[memory] Memory of this process that nothing uses any more.

[identity] Which process this is, by which another one can tell later whether it has ended.

A pid alone is given again: a process is known by when it was started too (Linux only; elsewhere
nobody can tell). Machines are told apart by name and, as many have that of their image, by
machine-id(5); containers by their namespace of pids, whose number is the same outside of all.

[worker_pool] Processes that compute for a step: a function, mapped over items, in their order.
"""

import contextlib
import ctypes
import os
import pickle
import platform
import queue
import signal
import subprocess
import sys
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from itertools import chain, islice
from pathlib import Path
from typing import Any, Self, TypeVar

from mail_assets.environment import child_environment
from mail_assets.errors import UnavailableError

#: Started by `python -m`.
PROGRAM = "mail_assets.processes.workers"


class WorkerError(UnavailableError):
    """A process that computed has ended, or an error that its function did not catch."""

    notice = "the search crashed; try again, or narrow it"


class Worker:
    """One process, started with its first item and again where it has ended.

    `remedy` is told where it ended by itself; `core` is the CPU that it keeps to, None for any.
    Used by one thread at a time.
    """

    def __init__(self, remedy: str, core: int | None = None) -> None:
        self._remedy = remedy
        self._arguments = [] if core is None else [str(core)]
        self._process: subprocess.Popen[bytes] | None = None
        self._call = b""

    def compute(self, call: bytes, item: object) -> Any:
        """Return what a function returns for an item; `call` is pickled, the function and what it
        is given as its first argument, which the process keeps for the items that follow.

        Raises:
            WorkerError: the process has ended, or the function raised an error.
        """
        process = self._process or self._start()
        try:
            _send(process, (None if call == self._call else call, item))
            self._call = call
            error, result = pickle.load(process.stdout)  # type: ignore[arg-type]
        except (EOFError, OSError, pickle.UnpicklingError) as gone:
            code = self.close()
            raise WorkerError(
                f"a process that computes has ended with exit code {code}; the kernel kills one "
                f"that takes too much memory. {self._remedy}"
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
        """End the process: it ends at the end of its input."""
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


def main() -> None:
    """Answer until there are no more calls."""
    if len(sys.argv) > 1 and hasattr(os, "sched_setaffinity"):
        with suppress(OSError):  # the CPU may have been taken from the container
            os.sched_setaffinity(0, {int(sys.argv[1])})
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that started it
    calls = os.fdopen(os.dup(0), "rb")
    results = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints is no result
    function: Any = None
    shared: Any = None
    answer: tuple[str | None, Any]
    while True:
        try:
            call, item = pickle.load(calls)
        except EOFError:
            return
        if call is not None:
            function, shared = pickle.loads(call)
        try:
            answer = (None, function(shared, item))
        except Exception:
            answer = (traceback.format_exc(), None)
        try:
            pickle.dump(answer, results, protocol=5)
            results.flush()
        except BrokenPipeError:
            sys.exit(1)


if __name__ == "__main__":
    main()


def release_freed_memory() -> None:
    """Give memory that was freed back to the system, where the C library keeps it (glibc).

    After an index of words of a million messages was made glibc kept 680 of 980 MB, and the next
    one took more beside it: https://man7.org/linux/man-pages/man3/malloc_trim.3.html
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


#: Missing or empty in most containers.
MACHINE_ID = Path("/etc/machine-id")


def name_process() -> str:
    """Return a name of this process that no other has."""
    return f"{_machine()} {os.getpid()} {_started(os.getpid())}"


def has_ended(name: str) -> bool:
    """Return whether a process has ended, by its name; of other machines nobody can tell."""
    machine, pid, started = name.rsplit(" ", 2)
    return machine == _machine() and _started(int(pid)) != started


def _machine() -> str:
    known = [platform.node()]
    with contextlib.suppress(OSError):
        known.append(MACHINE_ID.read_text().strip())
    with contextlib.suppress(OSError):
        known.append(str(Path("/proc/self/ns/pid").readlink()))
    return " ".join(filter(None, known))


def _started(pid: int) -> str:
    """Return when a process was started, in ticks of the kernel; "" where it has ended."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    state, *fields = status.rpartition(")")[2].split()
    return "" if state in "ZX" else fields[18]  # killed, and not waited for yet


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
