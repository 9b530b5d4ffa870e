"""Which processor cores this process may use, and how many."""

import math
import os
import sys
from pathlib import Path

CPUS, CGROUP = Path("/sys/devices/system/cpu"), Path("/sys/fs/cgroup")


def count_physical_cores(cpus: Path = CPUS, cgroup: Path = CGROUP) -> int:
    """The cores that this process may use: by its affinity mask, and by its container's quota.

    Hyper-threads of one core count once: they share its arithmetic units. Where the system does
    not tell (macOS), every CPU counts as a core.
    """
    return min(len(list_physical_cores(cpus)), _cpu_quota(cgroup))


def list_physical_cores(cpus: Path = CPUS) -> list[int]:
    """Return the number of one CPU of each core that this process may use by its affinity mask."""
    if hasattr(os, "sched_getaffinity"):
        allowed = os.sched_getaffinity(0)
    else:
        allowed = set(range(os.cpu_count() or 1))
    cores: dict[str, int] = {}
    for cpu in sorted(allowed):
        path = cpus / f"cpu{cpu}" / "topology" / "thread_siblings_list"
        cores.setdefault(path.read_text() if path.is_file() else str(path), cpu)
    return [*cores.values()]


def _cpu_quota(cgroup: Path) -> int:
    """CPUs' worth of time granted to the container, rounded up; a large number for no limit.

    Linux Documentation/admin-guide/cgroup-v2.rst (cpu.max), cgroup-v1 (cpu.cfs_*).
    """
    unified, quota, period = (
        cgroup / name for name in ("cpu.max", "cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us")
    )
    if unified.is_file():
        granted, per = unified.read_text().split()
    elif quota.is_file() and period.is_file():
        granted, per = quota.read_text().strip(), period.read_text().strip()
    else:
        return sys.maxsize
    return sys.maxsize if granted in ("max", "-1") else max(1, math.ceil(int(granted) / int(per)))
