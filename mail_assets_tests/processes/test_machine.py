"""Processes are identified, freed memory is returned, and granted cores are counted."""

import ctypes
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mail_assets.processes import machine
from mail_assets.processes.machine import (
    count_physical_cores,
    has_ended,
    list_physical_cores,
    name_process,
    release_freed_memory,
)

SAY_NAME = """
import sys
from mail_assets.processes.machine import name_process
print(name_process(), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def child() -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A process and its name; it ends with its input."""
    with subprocess.Popen(
        [sys.executable, "-c", SAY_NAME], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        yield process, process.stdout.readline().strip()


@pytest.fixture
def ended_process(child: tuple[subprocess.Popen[str], str]) -> str:
    process, name = child
    process.kill()
    process.wait()
    return name


def test_this_process_has_not_ended() -> None:
    assert not has_ended(name_process())


def test_killed_process_ends_before_it_is_reaped(child: tuple[subprocess.Popen[str], str]) -> None:
    process, name = child
    assert not has_ended(name)
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert has_ended(name), "it is still in the process table"
    process.wait()
    assert has_ended(name)


def test_reused_pid_is_another_process() -> None:
    *machine_name, pid, started = name_process().split(" ")
    assert has_ended(" ".join([*machine_name, pid, str(int(started) - 1)]))


def test_process_of_another_machine_has_not_ended(ended_process: str) -> None:
    assert not has_ended(f"elsewhere {ended_process}")


@pytest.mark.parametrize("content", ["0123456789abcdef0123456789abcdef\n", "", None])
def test_machines_of_one_name_differ_by_machine_id(
    ended_process: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str | None
) -> None:
    own, other = tmp_path / "own", tmp_path / "other"
    own.write_text("fedcba9876543210fedcba9876543210\n")
    if content is not None:
        other.write_text(content)
    _, pid, started = ended_process.rsplit(" ", 2)
    monkeypatch.setattr(machine, "MACHINE_ID", other)
    name = f"{name_process().rsplit(' ', 2)[0]} {pid} {started}"
    assert has_ended(name)
    monkeypatch.setattr(machine, "MACHINE_ID", own)
    assert not has_ended(name)


def resident() -> int:
    status = Path("/proc/self/status").read_text()
    [line] = [line for line in status.splitlines() if line.startswith("VmRSS")]
    return int(line.split()[1]) << 10


@pytest.mark.skipif(
    not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="the C library is not glibc"
)
def test_freed_memory_goes_back_to_the_system() -> None:
    # malloc takes blocks of this size from its heap and keeps them when they are freed.
    size, count = 64 << 10, 3_200
    libc = ctypes.CDLL(None)
    libc.malloc.restype, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
    blocks = [libc.malloc(size) for _ in range(count)]
    for block in blocks:
        ctypes.memset(block, 1, size)
    last = libc.malloc(size)  # the heap's end does not shrink by itself
    for block in blocks:
        libc.free(block)
    before = resident()
    release_freed_memory()
    libc.free(last)
    assert before - resident() > count * size // 2


def quota(microseconds: int) -> dict[str, str]:
    return {"cpu/cpu.cfs_quota_us": f"{microseconds}\n", "cpu/cpu.cfs_period_us": "100000\n"}


@pytest.mark.parametrize(("files", "expected"), [
    pytest.param({}, None, id="no cgroup"),
    pytest.param({"cpu.max": "max 100000\n"}, None, id="v2, no limit"),
    pytest.param({"cpu.max": "100000 100000\n"}, 1, id="v2, one CPU"),
    pytest.param({"cpu.max": "5000 100000\n"}, 1, id="v2, a twentieth of a CPU"),
    pytest.param({"cpu.max": "150000 100000\n"}, 2, id="v2, one and a half"),
    pytest.param(quota(-1), None, id="v1, no limit"),
    pytest.param(quota(50_000), 1, id="v1, half a CPU"),
])  # fmt: skip
def test_containers_quota_limits_the_cores(
    files: dict[str, str], expected: int | None, tmp_path: Path
) -> None:
    for name, content in files.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(content)
    unlimited = count_physical_cores(cgroup=tmp_path / "none")
    assert count_physical_cores(cgroup=tmp_path) == min(expected or unlimited, unlimited)


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="no affinity masks here")
def test_hyper_threads_of_one_core_count_once(tmp_path: Path) -> None:
    for cpu in os.sched_getaffinity(0):
        path = tmp_path / f"cpu{cpu}" / "topology" / "thread_siblings_list"
        path.parent.mkdir(parents=True)
        path.write_text("0-63\n")
    assert count_physical_cores(cpus=tmp_path, cgroup=tmp_path) == 1
    assert list_physical_cores(tmp_path) == [min(os.sched_getaffinity(0))]
