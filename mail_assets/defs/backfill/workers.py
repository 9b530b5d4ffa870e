"""Ranges of months run by several processes at once, one of which builds threads now and then.

A process that dies, for example because memory ran out, costs the range that it was running: its
months are run one by one, and the month that kills again fails alone.

[range_worker] A process of a backfill with several jobs: does the tasks that it is sent, one after another.

Tasks come, and events go, over one pipe. The process ends when the pipe does, whatever it is
doing: what was cut off is completed by the next backfill, and nobody would hear of it.
"""

import multiprocessing
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from queue import SimpleQueue
from types import FrameType
from typing import NamedTuple, TypeAlias

import dagster as dg

from mail_assets.defs.backfill.report import (
    Event,
    Listener,
    MonthRange,
    RangeFinished,
    RangeSplit,
    Report,
    RunsPlanned,
)
from mail_assets.defs.backfill.runs import REFRESH_THREADS, Runs
from mail_assets.defs.definitions import build_defs
from mail_assets.errors import MailAssetsError
from mail_assets.settings.settings import Settings


class ThreadBuild(NamedTuple):
    """A task: to build the threads of what is loaded so far."""


#: What a process is sent: to run a range, or to build threads.
Task: TypeAlias = MonthRange | ThreadBuild


class WorkerReady(NamedTuple):
    """The process has started, and takes tasks."""


class TaskReport(NamedTuple):
    """A task was done, or interrupted; `report` has what was done."""

    report: Report


@dataclass
class RunInterrupts:
    """Handles SIGINT: it stops a run, and nothing else of the process, such as a report of one."""

    is_running: bool = False
    _came: bool = False

    def __call__(self, _number: int, _frame: FrameType | None) -> None:
        """Remember the signal, and stop the run that is going on."""
        self._came = True
        if self.is_running:
            raise KeyboardInterrupt

    def start_run(self) -> None:
        """Let SIGINT stop what follows; raises KeyboardInterrupt where it came before."""
        self.is_running = True
        if self._came:
            raise KeyboardInterrupt


def run_worker(
    connection: Connection, settings: Settings, assets: Sequence[str], allow_loss: bool
) -> None:
    """Do the tasks that come until None does; send their events, and a TaskReport after each."""
    # Ctrl-C on a terminal goes to its whole process group: the backfill passes it on, once
    os.setpgid(0, 0)
    interrupts = RunInterrupts()
    signal.signal(signal.SIGINT, interrupts)
    tasks: SimpleQueue[Task | None] = SimpleQueue()
    threading.Thread(target=_receive, args=(connection, tasks), daemon=True).start()
    with dg.DagsterInstance.get() as instance:
        runs = Runs(build_defs(settings), instance, connection.send, assets)
        connection.send(WorkerReady())
        while (task := tasks.get()) is not None:
            runs.report = Report()
            try:
                interrupts.start_run()
                if isinstance(task, MonthRange):
                    runs.run_range(task, allow_loss)
                else:
                    runs.refresh_threads()
            except KeyboardInterrupt:
                runs.report.interrupted = True
            interrupts.is_running = False
            connection.send(TaskReport(runs.report))


def _receive(connection: Connection, tasks: SimpleQueue[Task | None]) -> None:
    try:
        while True:
            tasks.put(connection.recv())
    except (EOFError, OSError):
        os._exit(1)


#: Not forked: threads of gRPC and of Arrow do not survive it.
_PROCESSES = multiprocessing.get_context("spawn")


class RangeWorkerError(MailAssetsError):
    """A process of a backfill cannot start."""


@dataclass(eq=False)
class _Worker:
    """A process, this end of its pipe, and what it is doing."""

    process: BaseProcess
    connection: Connection
    task: Task | None = None
    is_ready: bool = False


@dataclass
class RangeWorkers:
    """Runs ranges in up to `jobs` processes, and adds to a report what they did."""

    settings: Settings
    assets: Sequence[str]
    jobs: int
    listener: Listener
    report: Report
    allow_loss: bool = False
    _workers: list[_Worker] = field(default_factory=list)
    _threads_built: float = 0.0

    def run_ranges(self, ranges: Sequence[MonthRange]) -> None:
        """Run each range, as `Runs.run_ranges` does; `report.done` is in order afterwards.

        Raises:
            RangeWorkerError: a process died while it was starting.
            KeyboardInterrupt: it was interrupted; the report has what was done until then.
        """
        planned = sum(len(one.months) for one in ranges)
        self.listener(RunsPlanned(planned, tuple(self.assets)))
        waiting = deque(ranges)
        self._threads_built = time.monotonic()
        with self._ending_workers(), _receiving_interrupts() as interrupts:
            while waiting or any(worker.task is not None for worker in self._workers):
                self._assign(waiting)
                for worker in self._wait(interrupts):
                    waiting.extendleft(reversed(self._follow(worker)))
                if self.report.interrupted:
                    raise KeyboardInterrupt

    def _assign(self, waiting: deque[MonthRange]) -> None:
        """Give tasks to workers without one while ranges wait; start workers that are missing."""
        while len(self._workers) < min(self.jobs, len(self._workers) + len(waiting)):
            self._workers.append(self._start())
        for worker in self._workers:
            if worker.task is None and waiting:
                worker.task = self._choose_task(waiting)
                with suppress(BrokenPipeError):  # it has died, as reading from it will tell
                    worker.connection.send(worker.task)

    def _choose_task(self, waiting: deque[MonthRange]) -> Task:
        """Return the next range, or where it is time the building of threads."""
        are_built_now = any(isinstance(worker.task, ThreadBuild) for worker in self._workers)
        if are_built_now or time.monotonic() - self._threads_built <= REFRESH_THREADS:
            return waiting.popleft()
        return ThreadBuild()

    def _start(self) -> _Worker:
        ours, theirs = _PROCESSES.Pipe()
        # the processes that parse are shared out too, or N times as many as cores would compete
        settings = replace(self.settings, given_jobs=max(1, self.settings.jobs // self.jobs))
        arguments = (theirs, settings, tuple(self.assets), self.allow_loss)
        process = _PROCESSES.Process(target=run_worker, args=arguments)
        process.start()
        theirs.close()  # so that its death ends the pipe
        return _Worker(process, ours)

    def _wait(self, interrupts: Connection) -> list[_Worker]:
        """Return the workers that have something to say, or have died."""
        ready = wait([interrupts, *(worker.connection for worker in self._workers)])
        if interrupts in ready:
            raise KeyboardInterrupt
        return [worker for worker in self._workers if worker.connection in ready]

    def _follow(self, worker: _Worker) -> list[MonthRange]:
        """Take what a worker sent; return the ranges that its death leaves to others."""
        try:
            received: Event | WorkerReady | TaskReport = worker.connection.recv()
        except (EOFError, ConnectionResetError):
            return self._bury(worker)
        match received:
            case WorkerReady():
                worker.is_ready = True
            case TaskReport(report):
                self._end_task(worker)
                self.report.merge(report)
            case _:
                self.listener(received)
        return []

    def _end_task(self, worker: _Worker) -> Task | None:
        task, worker.task = worker.task, None
        if isinstance(task, ThreadBuild):
            self._threads_built = time.monotonic()
        return task

    def _bury(self, worker: _Worker) -> list[MonthRange]:
        """Return the months of the range that a worker was running, or report its only one."""
        self._workers.remove(worker)
        worker.process.join()
        ended = _describe_exit(worker.process.exitcode or 0)
        if not worker.is_ready:
            raise RangeWorkerError(f"a process of the backfill {ended} while it was starting")
        one = self._end_task(worker)
        if not isinstance(one, MonthRange):  # threads are built in the end too
            return []
        if one.first != one.last:
            self.listener(RangeSplit(one))
            return [MonthRange(month, month) for month in one.months]
        self.report.failed[str(one.first)] = f"the process that was running it {ended}"
        self.listener(RangeFinished(one))
        return []

    @contextmanager
    def _ending_workers(self) -> Iterator[None]:
        """End the processes: idle ones at once, after Ctrl-C each when its run has stopped."""
        try:
            yield
        except KeyboardInterrupt:
            self.report.interrupted = True
            self._interrupt()
            raise
        finally:
            for worker in self._workers:
                with suppress(BrokenPipeError):
                    worker.connection.send(None)
                worker.connection.close()
                worker.process.join()
            self._workers.clear()
            self.report.done.sort()

    def _interrupt(self) -> None:
        running = [
            worker for worker in self._workers if worker.task is not None and worker.is_ready
        ]
        for worker in running:
            os.kill(worker.process.pid or 0, signal.SIGINT)
        for worker in running:
            while worker.task is not None:
                self._follow(worker)


@contextmanager
def _receiving_interrupts() -> Iterator[Connection]:
    """Receive Ctrl-C as a message, so that it cuts off none of a worker; the second raises."""
    ours, theirs = _PROCESSES.Pipe(duplex=False)
    if threading.current_thread() is not threading.main_thread():
        yield ours  # Python gives signals to the main thread only
        return
    former = signal.getsignal(signal.SIGINT)

    def tell(_number: int, _frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, former)
        theirs.send(signal.SIGINT)

    signal.signal(signal.SIGINT, tell)
    try:
        yield ours
    finally:
        signal.signal(signal.SIGINT, former)


def _describe_exit(code: int) -> str:
    if code >= 0:
        return f"ended with exit code {code}"
    return f"was killed by {signal.Signals(-code).name}: perhaps memory ran out"
