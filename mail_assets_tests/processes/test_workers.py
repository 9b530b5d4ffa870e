"""A process is told from others, also from the one that gets its pid later.

[test_memory] Memory that was freed goes back to the system.

[test_worker_pool] Processes that compute for a step: the same results in the same order, and none left behind.
"""

import ctypes
import os
import select
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from mail_assets.processes import workers
from mail_assets.processes.workers import (
    MIN_ITEMS,
    WorkerError,
    WorkerPool,
    has_ended,
    name_process,
    release_freed_memory,
)
from mail_assets.steps import read_month
from mail_assets.steps.outcome import StepError
from mail_assets_tests.conftest import REPOSITORY
from mail_assets_tests.steps.test_incremental_load import holds
from mail_assets_tests.steps.worker_functions import fail, kill_batch, kill_yourself, multiply
from mail_assets_tests.waits import LONG
from mail_assets_tests.world import MARCH, World, mail

_SAY_NAME = """
import sys
from mail_assets.processes.identity import name_process
print(name_process(), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def child() -> subprocess.Popen[str]:
    """A process that says its name, and ends with its input."""
    return subprocess.Popen(
        [sys.executable, "-c", _SAY_NAME],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def read_name(child: subprocess.Popen[str]) -> str:
    assert child.stdout
    return child.stdout.readline().strip()


@pytest.fixture
def ended_process(child: subprocess.Popen[str]) -> str:
    """The name of a process that was killed."""
    with child:
        name = read_name(child)
        child.kill()
    return name


def test_this_process_has_not_ended() -> None:
    assert not has_ended(name_process())


def test_a_process_has_ended_once_it_is_killed_waited_for_or_not(
    child: subprocess.Popen[str],
) -> None:
    with child:
        name = read_name(child)
        assert not has_ended(name)
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert has_ended(name), "it is in the process table still"
    assert has_ended(name)


def test_a_pid_that_was_given_again_is_of_another_process() -> None:
    *machine, pid, started = name_process().split(" ")
    assert has_ended(" ".join([*machine, pid, str(int(started) - 1)]))


def test_of_other_machines_nobody_can_tell(ended_process: str) -> None:
    assert not has_ended(f"elsewhere {ended_process}")


@pytest.mark.parametrize("content", ["0123456789abcdef0123456789abcdef\n", "", None])
def test_a_machine_of_the_same_name_is_another_by_its_id(
    ended_process: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str | None
) -> None:
    own = tmp_path / "own"
    own.write_text("fedcba9876543210fedcba9876543210\n")
    other = tmp_path / "other"
    if content is not None:
        other.write_text(content)
    _, pid, started = ended_process.rsplit(" ", 2)
    monkeypatch.setattr(workers, "MACHINE_ID", other)
    name = f"{name_process().rsplit(' ', 2)[0]} {pid} {started}"
    assert has_ended(name)
    monkeypatch.setattr(workers, "MACHINE_ID", own)
    assert not has_ended(name)


MB = 1 << 20
#: Blocks that malloc takes from its heap, and not each by mmap: these it keeps when they are freed.
BLOCK, BLOCKS = 64 << 10, 3_200


def resident() -> int:
    """Return the bytes that this process has in memory."""
    status = Path("/proc/self/status").read_text()
    [line] = [line for line in status.splitlines() if line.startswith("VmRSS")]
    return int(line.split()[1]) << 10


@pytest.mark.skipif(
    not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="the C library is not glibc"
)
def test_what_was_freed_is_given_back() -> None:
    libc = ctypes.CDLL(None)
    libc.malloc.restype, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
    blocks = [libc.malloc(BLOCK) for _ in range(BLOCKS)]
    for block in blocks:
        ctypes.memset(block, 1, BLOCK)
    last = libc.malloc(BLOCK)  # the heap's end does not shrink by itself
    for block in blocks:
        libc.free(block)
    before = resident()
    release_freed_memory()
    libc.free(last)
    assert before - resident() > BLOCKS * BLOCK // 2


def is_alive(process: int) -> bool:
    """Tell whether a process runs; one that has ended and is not yet reaped does not."""
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


@pytest.fixture
def pool() -> Iterator[WorkerPool]:
    with WorkerPool(2) as pool:
        yield pool


@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize("count", [0, MIN_ITEMS - 1, MIN_ITEMS, 50])
def test_results_come_in_the_order_of_the_items(size: int, count: int) -> None:
    with WorkerPool(size) as pool:
        for factor in (2, 3):
            found = [
                (item, result) for item, (result, _) in pool.map(multiply, factor, range(count))
            ]
            assert found == [(n, factor * n) for n in range(count)]


def test_little_work_starts_no_process(pool: WorkerPool) -> None:
    processes = {process for _, (_, process) in pool.map(multiply, 2, range(MIN_ITEMS - 1))}
    assert processes == {os.getpid()}
    processes = {process for _, (_, process) in pool.map(multiply, 2, range(MIN_ITEMS))}
    assert os.getpid() not in processes


def test_items_are_read_as_they_are_needed(pool: WorkerPool) -> None:
    read: list[int] = []

    def items() -> Iterator[int]:
        for number in range(100):
            read.append(number)
            yield number

    results = pool.map(multiply, 2, items())
    next(results)
    assert len(read) <= MIN_ITEMS + 2 * pool.size
    results.close()  # type: ignore[attr-defined]


def test_a_process_that_is_killed_is_named_and_the_next_call_works(pool: WorkerPool) -> None:
    with pytest.raises(WorkerError, match=r"ended with exit code -9.*MAIL_JOBS"):
        list(pool.map(kill_yourself, None, range(20)))
    assert len(list(pool.map(multiply, 2, range(20)))) == 20


def test_an_error_comes_with_its_traceback(pool: WorkerPool) -> None:
    with pytest.raises(WorkerError, match="KeyError: 'the fifth'"):
        list(pool.map(fail, None, range(20)))
    assert len(list(pool.map(multiply, 2, range(20)))) == 20


def test_a_closed_pool_has_no_process() -> None:
    with WorkerPool(2) as pool:
        processes = {process for _, (_, process) in pool.map(multiply, 2, range(20))}
        assert all(map(is_alive, processes))
    assert not any(map(is_alive, processes))
    assert not any(thread.name.startswith("worker-pool") for thread in threading.enumerate())


PARENT = """
import os, sys
from mail_assets.steps.worker_pool import WorkerPool
from mail_assets_tests.steps.worker_functions import multiply
pool = WorkerPool(2)
print(*{process for _, (_, process) in pool.map(multiply, 2, range(20))}, flush=True)
sys.stdin.read()
"""


def test_the_processes_of_a_killed_one_end_too() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PARENT],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=REPOSITORY,
    ) as parent:
        assert parent.stdout is not None
        processes = [int(word) for word in parent.stdout.readline().split()]
        assert processes
        waits = [os.pidfd_open(process) for process in processes]
        parent.kill()
    for wait, process in zip(waits, processes, strict=True):
        wait_for_end(wait)
        assert not is_alive(process)
        os.close(wait)


def wait_for_end(pidfd: int) -> None:
    """Wait until a process that is no child of this one has ended."""
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    assert poll.poll(LONG * 1_000)


@pytest.mark.slow
def test_the_rows_are_the_same_whatever_the_number_of_processes(
    tmp_path: Path, world: World
) -> None:
    mails = [
        mail(f"m{n}", f"Of lease {n % 70}, see pg_stat_activity.\n\nAnn\n{'-' * n}")
        for n in range(450)
    ]
    world.archive(MARCH, *mails)
    world.archives()
    world.messages()
    alone = holds(world)
    with world.connect() as connection:
        for table in ("messages", "archive_entries"):
            connection.execute(f"delete from {table}".encode())
        connection.execute("delete from partitions where asset = 'messages'")
    with WorkerPool(3) as workers:
        world.workers = workers
        world.messages()
    assert holds(world) == alone


def test_a_process_that_ends_leaves_the_month_as_it_was_and_names_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.archive(MARCH, *(mail(f"m{n}") for n in range(450)))
    world.archives()
    with WorkerPool(2) as workers:
        world.workers = workers
        monkeypatch.setattr(read_month, "parse_batch", kill_batch)
        with pytest.raises(StepError, match=rf"harbor {MARCH}: a process that computes has ended"):
            world.messages()
        assert world.rows("messages") == []
        monkeypatch.undo()
        assert world.messages().counts["stored"] == 450
