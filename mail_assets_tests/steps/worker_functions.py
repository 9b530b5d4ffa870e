"""Functions for the processes of a pool in tests; the module imports quickly."""

import os
import signal
import threading

from mail_assets.processes.machine import list_physical_cores, unpin_thread


def multiply(factor: int, number: int) -> tuple[int, int]:
    print("what a library prints is no result")
    return factor * number, os.getpid()


def kill_yourself(_: None, number: int) -> int:
    if number == 5:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def fail(_: None, number: int) -> int:
    if number == 5:
        raise KeyError("the fifth")
    return number


def kill_batch(_: object, batch: list[object]) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def describe_pinning(_: object, __: object) -> tuple[set[int], list[int], set[int]]:
    """Return this thread's CPUs, the cores of the machine, and the CPUs of an unpinned thread."""
    unpinned: set[int] = set()

    def unpin() -> None:
        unpin_thread()
        unpinned.update(os.sched_getaffinity(0))

    thread = threading.Thread(target=unpin)
    thread.start()
    thread.join()
    return os.sched_getaffinity(0), list_physical_cores(), unpinned
