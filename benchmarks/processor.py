"""Processor time, and binding to one core; Linux only.

On a machine with other work, processor seconds can be compared and wall time cannot. They include
this process, its children, ended or running, and, if its postmaster is given, PostgreSQL.
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
    """Processor time and wall time."""

    processor: float
    clock: float


def keep_to_one_core() -> int:
    """Bind this process and its future children to one core; return the core's number."""
    core = max(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {core})
    return core


def timed(run: Callable[[], _T], server: int = 0) -> tuple[_T, Seconds]:
    """Return result and time of run(); server is the pid of a PostgreSQL postmaster, or 0."""
    clock, spent = time.perf_counter(), seconds_so_far(server)
    result = run()
    return result, Seconds(seconds_so_far(server) - spent, time.perf_counter() - clock)


def seconds_so_far(server: int = 0) -> float:
    """Return the processor seconds used so far by this process and by PostgreSQL."""
    return _own() + _tree(os.getpid(), of_root=False) + _tree(server)


def postmaster_of(connection: psycopg.Connection) -> int:
    """Return the pid of the postmaster of a connection; it must run on this machine."""
    stat = Path(f"/proc/{connection.info.backend_pid}/stat").read_text()
    return int(stat.rpartition(")")[2].split()[1])


def _own() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def _tree(pid: int, of_root: bool = True) -> float:
    """Return processor seconds of a process and its children, as in proc(5).

    With `of_root`, they include the process and the ended children it waited for.
    """
    if not pid:
        return 0.0
    ticks = 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):  # the process has ended
            continue
        is_root = int(path.parent.name) == pid
        if is_root and of_root:
            ticks += sum(map(int, fields[11:15]))
        elif int(fields[1]) == pid:
            ticks += sum(map(int, fields[11:13]))
    return ticks / os.sysconf("SC_CLK_TCK")
