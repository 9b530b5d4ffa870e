"""Which process this is, by which another one can tell later whether it has ended.

A pid alone is given again: a process is known by when it was started too (Linux only; elsewhere
nobody can tell). Machines are told apart by name, containers by their namespace of pids.
"""

import os
import platform
from pathlib import Path


def name_process() -> str:
    """Return a name of this process that no other has."""
    return f"{_machine()} {os.getpid()} {_started(os.getpid())}"


def has_ended(name: str) -> bool:
    """Return whether a process has ended, by its name; of other machines nobody can tell."""
    machine, pid, started = name.rsplit(" ", 2)
    return machine == _machine() and _started(int(pid)) != started


def _machine() -> str:
    try:
        return f"{platform.node()} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return platform.node()


def _started(pid: int) -> str:
    """Return when a process was started, in ticks of the kernel; "" where it has ended."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    state, *fields = status.rpartition(")")[2].split()
    return "" if state in "ZX" else fields[18]  # killed, and not waited for yet
