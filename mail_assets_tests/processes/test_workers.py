"""A pool gives the same results in the same order and leaves no process behind."""

import os
import pickle
import select
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from mail_assets.processes.machine import list_physical_cores
from mail_assets.processes.workers import MIN_ITEMS, PROGRAM, Worker, WorkerError, WorkerPool
from mail_assets.steps import read_month
from mail_assets.workspace import StepError
from mail_assets_tests.conftest import REPOSITORY
from mail_assets_tests.steps.test_load_messages import holds
from mail_assets_tests.steps.worker_functions import (
    describe_pinning,
    fail,
    kill_batch,
    kill_yourself,
    multiply,
)
from mail_assets_tests.waits import LONG
from mail_assets_tests.world import MARCH, World, mail


def is_alive(process: int) -> bool:
    """Return whether a process runs; one that has ended and is not yet reaped does not."""
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


@pytest.fixture
def pool() -> Iterator[WorkerPool]:
    with WorkerPool(2) as pool:
        yield pool


def list_processes(pool: WorkerPool, items: int = 20) -> set[int]:
    return {process for _, (_, process) in pool.map(multiply, 2, range(items))}


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
    assert list_processes(pool, MIN_ITEMS - 1) == {os.getpid()}
    assert os.getpid() not in list_processes(pool, MIN_ITEMS)


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


def test_pool_works_on_after_a_process_was_killed(pool: WorkerPool) -> None:
    with pytest.raises(WorkerError, match=r"exited with code -9.*MAIL_JOBS"):
        list(pool.map(kill_yourself, None, range(20)))
    assert len(list(pool.map(multiply, 2, range(20)))) == 20


def test_error_comes_with_its_traceback(pool: WorkerPool) -> None:
    with pytest.raises(WorkerError, match="KeyError: 'the fifth'"):
        list(pool.map(fail, None, range(20)))
    assert len(list(pool.map(multiply, 2, range(20)))) == 20


def test_closed_pool_has_no_process() -> None:
    with WorkerPool(2) as pool:
        processes = list_processes(pool)
        assert all(map(is_alive, processes))
    assert not any(map(is_alive, processes))
    assert not any(thread.name.startswith("worker-pool") for thread in threading.enumerate())


def test_program_imports_one_module_of_the_package() -> None:
    shown = f"import sys, {PROGRAM}; print(*(n for n in sys.modules if n.startswith('mail_')))"
    printed = subprocess.run([sys.executable, "-c", shown], capture_output=True, check=True)
    names = ["mail_assets", "mail_assets.processes", "mail_assets.processes.machine", PROGRAM]
    assert sorted(printed.stdout.decode().split()) == names


PARENT = """
import sys
from mail_assets.processes.workers import WorkerPool
from mail_assets_tests.processes.test_workers import list_processes
print(*list_processes(WorkerPool(2)), flush=True)
sys.stdin.read()
"""


def test_workers_end_when_their_parent_is_killed() -> None:
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
        poll = select.poll()
        poll.register(wait, select.POLLIN)
        assert poll.poll(LONG * 1_000)
        assert not is_alive(process)
        os.close(wait)


@pytest.mark.slow
def test_loaded_rows_do_not_depend_on_the_processes(world: World) -> None:
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


def test_killed_worker_leaves_the_month_as_it_was(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.archive(MARCH, *(mail(f"m{n}") for n in range(450)))
    world.archives()
    with WorkerPool(2) as workers:
        world.workers = workers
        monkeypatch.setattr(read_month, "parse_batch", kill_batch)
        with pytest.raises(StepError, match=rf"harbor {MARCH}: worker process exited"):
            world.messages()
        assert world.rows("messages") == []
        monkeypatch.undo()
        assert world.messages().counts["stored"] == 450


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="no affinity masks here")
def test_thread_of_a_pinned_process_uses_all_cores() -> None:
    every, call = os.sched_getaffinity(0), pickle.dumps((describe_pinning, None))
    worker = Worker("", max(every))
    try:
        assert worker.compute(call, None) == ({max(every)}, list_physical_cores(), every)
    finally:
        worker.close()
