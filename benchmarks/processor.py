"""Processor time, and keeping to one core; Linux only.

Processor seconds and not those of the clock: on a machine that others use too they are what can
be compared. They are those of this process, of the programs it ran and runs and, where its
server's process is named, of PostgreSQL with all its processes.
"""

import os
import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, TypeVar

import psycopg

_T = TypeVar("_T")


class Seconds(NamedTuple):
    """Time that something took: on the processor, and by the clock."""

    processor: float
    clock: float


def keep_to_one_core() -> int:
    """Bind this process, and all it starts from now on, to one core; return its number."""
    core = max(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {core})
    return core


def timed(run: Callable[[], _T], server: int = 0) -> tuple[_T, Seconds]:
    """Result and time of run(); server is the process of a PostgreSQL postmaster, or 0."""
    clock, spent = time.perf_counter(), seconds_so_far(server)
    result = run()
    return result, Seconds(seconds_so_far(server) - spent, time.perf_counter() - clock)


def seconds_so_far(server: int = 0) -> float:
    """Return what this process has used until now, and that PostgreSQL's."""
    return _own() + _tree(os.getpid(), of_root=False) + _tree(server)


def postmaster_of(connection: psycopg.Connection) -> int:
    """Return the process of the server that a connection leads to, on this machine."""
    stat = Path(f"/proc/{connection.info.backend_pid}/stat").read_text()
    return int(stat.rpartition(")")[2].split()[1])


def _own() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def _tree(pid: int, of_root: bool = True) -> float:
    """Seconds of a process, of its children, and of those that they waited for, as in proc(5).

    Without `of_root`, those of the children that are running.
    """
    if not pid:
        return 0.0
    ticks = 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
            continue
        is_root = int(path.parent.name) == pid
        if is_root and of_root:
            ticks += sum(map(int, fields[11:15]))
        elif int(fields[1]) == pid:
            ticks += sum(map(int, fields[11:13]))
    return ticks / os.sysconf("SC_CLK_TCK")
