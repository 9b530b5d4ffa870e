"""Which process this is, by which another one can tell later whether it has ended.

A pid alone is given again: a process is known by when it was started too (Linux only; elsewhere
nobody can tell). Machines are told apart by name and, as many have that of their image, by
machine-id(5); containers by their namespace of pids, whose number is the same outside of all.
"""

import contextlib
import os
import platform
from pathlib import Path

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
