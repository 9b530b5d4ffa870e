"""Functions for search processes, which import them by module and name."""

import gc
import os
import signal
from pathlib import Path

from mail_assets.search import field_conditions
from mail_assets.web.searchers import OpenArchive


class NotSendableError(Exception):
    """An error that pickle cannot restore: its constructor needs more arguments."""

    def __init__(self, name: str, slot: str) -> None:
        super().__init__(f"{name} at {slot}")


def describe_process(archive: OpenArchive) -> tuple[int, set[int]]:
    return os.getpid(), os.sched_getaffinity(0)


def count_objects(archive: OpenArchive) -> tuple[int, int]:
    """Return the number of objects that the garbage collector ignores, and of the others."""
    return gc.get_freeze_count(), len(gc.get_objects())


def count_compiled(archive: OpenArchive) -> int:
    """Return the number of sessions in which PostgreSQL has compiled the pattern of addresses."""
    return len(field_conditions._COMPILED)


def list_thread_cores(archive: OpenArchive) -> set[int]:
    """Return the cores that any thread of the process may use."""
    threads = [int(path.name) for path in Path("/proc/self/task").iterdir()]
    return {core for thread in threads for core in os.sched_getaffinity(thread)}


def kill_once(archive: OpenArchive, mark: str) -> int:
    """Kill the process if a file does not exist yet, and create it first; return the process id."""
    if not Path(mark).exists():
        Path(mark).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return os.getpid()


def kill_always(archive: OpenArchive) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def fail(archive: OpenArchive) -> None:
    """Raise an error that cannot be sent."""
    raise NotSendableError("lantern", "pier 4")
