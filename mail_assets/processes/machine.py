"""Facts about this process and its machine: usable cores, a unique process name, memory."""

import ctypes
import math
import os
import platform
import sys
from contextlib import suppress
from pathlib import Path

#: CPUs that this process could use before it was pinned to one; None if it was not.
_before_pinning: set[int] | None = None
CPUS, CGROUP = Path("/sys/devices/system/cpu"), Path("/sys/fs/cgroup")
MACHINE_ID = Path("/etc/machine-id")  # missing or empty in most containers


def count_physical_cores(cpus: Path = CPUS, cgroup: Path = CGROUP) -> int:
    """Count the cores that this process may use, by its affinity mask and its container's quota.

    Hyper-threads of one core count once, because they share its arithmetic units. If the system
    does not report them (macOS), every CPU counts as a core.
    """
    return min(len(list_physical_cores(cpus)), _cpu_quota(cgroup))


def list_physical_cores(cpus: Path = CPUS) -> list[int]:
    """Return the number of one CPU for each core in this process's affinity mask before pinning."""
    if hasattr(os, "sched_getaffinity"):
        allowed = _before_pinning or os.sched_getaffinity(0)
    else:
        allowed = set(range(os.cpu_count() or 1))
    cores: dict[str, int] = {}
    for cpu in sorted(allowed):
        path = cpus / f"cpu{cpu}" / "topology" / "thread_siblings_list"
        cores.setdefault(path.read_text() if path.is_file() else str(path), cpu)
    return [*cores.values()]


def pin_process(cpu: int) -> None:
    """Run this process on one CPU, except for threads that call `unpin_thread`."""
    global _before_pinning
    if hasattr(os, "sched_setaffinity"):
        allowed = os.sched_getaffinity(0)
        with suppress(OSError):  # the CPU may have been taken from the container
            os.sched_setaffinity(0, {cpu})
            _before_pinning = allowed


def unpin_thread() -> None:
    """Let the calling thread use the CPUs that the process could use before it was pinned."""
    if _before_pinning:
        with suppress(OSError):
            os.sched_setaffinity(0, _before_pinning)


def _cpu_quota(cgroup: Path) -> int:
    # Linux Documentation/admin-guide/cgroup-v2.rst (cpu.max), cgroup-v1 (cpu.cfs_*).
    unified, quota, period = (
        cgroup / name for name in ("cpu.max", "cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us")
    )
    if unified.is_file():
        granted, per = unified.read_text().split()
    elif quota.is_file() and period.is_file():
        granted, per = quota.read_text().strip(), period.read_text().strip()
    else:
        return sys.maxsize
    return sys.maxsize if granted in ("max", "-1") else math.ceil(int(granted) / int(per))


def name_process() -> str:
    """Return a unique name of this process: machine, pid and start time.

    The start time is included because pids are reused (Linux only). A machine is identified by host
    name and machine-id(5), because clones share host names; a container by its pid namespace.
    """
    return f"{_machine()} {os.getpid()} {_started(os.getpid())}"


def has_ended(name: str) -> bool:
    """Return whether the named process has ended; False if it is on another machine."""
    machine, pid, started = name.rsplit(" ", 2)
    return machine == _machine() and _started(int(pid)) != started


def _machine() -> str:
    known = [platform.node()]
    with suppress(OSError):
        known.append(MACHINE_ID.read_text().strip())
    with suppress(OSError):
        known.append(str(Path("/proc/self/ns/pid").readlink()))
    return " ".join(filter(None, known))


def _started(pid: int) -> str:
    """Return the start time of a process in kernel ticks; "" if it has ended."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    state, *fields = status.rpartition(")")[2].split()
    return "" if state in "ZX" else fields[18]  # Z, X: it has ended but was not waited for


def read_memory() -> int:
    """Return the resident memory of this process in bytes; 0 if the system does not report it."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")
    except OSError:
        return 0


def release_freed_memory() -> None:
    """Return freed memory to the system, if the C library keeps it (glibc).

    After indexing the words of a million messages glibc kept 680 of 980 MB, and the next index took
    additional memory: https://man7.org/linux/man-pages/man3/malloc_trim.3.html
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
