"""Runs ranges of months in several processes; at intervals one of them builds threads.

If a process dies, for example because memory ran out, the months of its range are run one by one.
Only a month that kills its process again fails.

Each process receives tasks and sends events over one pipe. When the pipe is closed, the process
ends, even during a task. The next backfill completes such a task.
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
from mail_assets.defs.backfill.runs import AS_USUAL, REFRESH_THREADS, Runs, StepOptions
from mail_assets.defs.definitions import build_defs
from mail_assets.errors import MailAssetsError
from mail_assets.settings.settings import Settings


class ThreadBuild(NamedTuple):
    """A task: build the threads of the mail that has been loaded so far."""


#: A task of a process: run a range, or build threads.
Task: TypeAlias = MonthRange | ThreadBuild


class WorkerReady(NamedTuple):
    """Message of a process: it has started and accepts tasks."""


@dataclass
class RunInterrupts:
    """Handler of SIGINT that stops a run but not the process, so that it can report the run."""

    is_running: bool = False
    _came: bool = False

    def __call__(self, _number: int, _frame: FrameType | None) -> None:
        """Remember the signal, and stop the current run."""
        self._came = True
        if self.is_running:
            raise KeyboardInterrupt

    def start_run(self) -> None:
        """Let SIGINT stop the run that begins; raise KeyboardInterrupt if it came earlier."""
        self.is_running = True
        if self._came:
            raise KeyboardInterrupt


def run_worker(
    connection: Connection, settings: Settings, assets: Sequence[str], options: StepOptions
) -> None:
    """Do each received task until None is received; send the events and then a Report."""
    # own process group: Ctrl-C goes to the whole group, and the main process passes it on once
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
                    runs.run_range(task, options)
                else:
                    runs.build_threads(["threads"])
            except KeyboardInterrupt:
                runs.report.interrupted = True
            interrupts.is_running = False
            connection.send(runs.report)


def _receive(connection: Connection, tasks: SimpleQueue[Task | None]) -> None:
    try:
        while True:
            tasks.put(connection.recv())
    except (EOFError, OSError):
        os._exit(1)


#: Not forked: threads of gRPC and Arrow do not survive a fork.
_PROCESSES = multiprocessing.get_context("spawn")


class RangeWorkerError(MailAssetsError):
    """A process of a backfill cannot start."""


@dataclass(eq=False)
class _Worker:
    process: BaseProcess
    connection: Connection
    task: Task | None = None
    is_ready: bool = False


@dataclass
class RangeWorkers:
    """Runs ranges in up to `jobs` processes, and adds their results to a report."""

    settings: Settings
    assets: Sequence[str]
    jobs: int
    listener: Listener
    report: Report
    options: StepOptions = AS_USUAL
    _workers: list[_Worker] = field(default_factory=list)
    _threads_built: float = 0.0

    def run_ranges(self, ranges: Sequence[MonthRange]) -> None:
        """Run each range, as `Runs.run_ranges` does; `report.done` is sorted afterwards.

        Raises:
            RangeWorkerError: a process died while it was starting.
            KeyboardInterrupt: after Ctrl-C; the report has what was made so far.
        """
        planned = sum(len(one.months) for one in ranges)
        self.listener(RunsPlanned(planned, tuple(self.assets)))
        waiting = deque(ranges)
        self._threads_built = time.monotonic()
        with self._ending_workers(), _receiving_interrupts() as interrupts:
            while waiting or any(worker.task is not None for worker in self._workers):
                self._assign(waiting)
                ready = wait([interrupts, *(worker.connection for worker in self._workers)])
                if interrupts in ready:
                    raise KeyboardInterrupt
                for worker in [one for one in self._workers if one.connection in ready]:
                    waiting.extendleft(reversed(self._follow(worker)))
                if self.report.interrupted:
                    raise KeyboardInterrupt

    def _assign(self, waiting: deque[MonthRange]) -> None:
        """Give tasks to idle workers while ranges wait; start workers up to `jobs`."""
        while len(self._workers) < min(self.jobs, len(self._workers) + len(waiting)):
            self._workers.append(self._start())
        for worker in self._workers:
            if worker.task is None and waiting:
                worker.task = self._choose_task(waiting)
                with suppress(BrokenPipeError):  # it has died; the next read detects this
                    worker.connection.send(worker.task)

    def _choose_task(self, waiting: deque[MonthRange]) -> Task:
        are_built_now = any(isinstance(worker.task, ThreadBuild) for worker in self._workers)
        if are_built_now or time.monotonic() - self._threads_built <= REFRESH_THREADS:
            return waiting.popleft()
        return ThreadBuild()

    def _start(self) -> _Worker:
        ours, theirs = _PROCESSES.Pipe()
        # divide the parsing processes among the workers, so that there are not too many
        settings = replace(self.settings, given_jobs=max(1, self.settings.jobs // self.jobs))
        arguments = (theirs, settings, tuple(self.assets), self.options)
        process = _PROCESSES.Process(target=run_worker, args=arguments)
        process.start()
        theirs.close()  # so that the pipe is closed when the process dies
        return _Worker(process, ours)

    def _follow(self, worker: _Worker) -> list[MonthRange]:
        """Receive a message of a worker; if it has died, return the ranges to run again."""
        try:
            received: Event | WorkerReady | Report = worker.connection.recv()
        except (EOFError, ConnectionResetError):
            return self._bury(worker)
        match received:
            case WorkerReady():
                worker.is_ready = True
            case Report():  # of a task that is done or was interrupted
                self._end_task(worker)
                self.report.merge(received)
            case _:
                self.listener(received)
        return []

    def _end_task(self, worker: _Worker) -> Task | None:
        task, worker.task = worker.task, None
        if isinstance(task, ThreadBuild):
            self._threads_built = time.monotonic()
        return task

    def _bury(self, worker: _Worker) -> list[MonthRange]:
        """Return the months of a dead worker's range; report a single month as failed."""
        self._workers.remove(worker)
        worker.process.join()
        code = worker.process.exitcode or 0
        ended = f"ended with exit code {code}"
        if code < 0:
            ended = f"was killed by {signal.Signals(-code).name}: perhaps memory ran out"
        if not worker.is_ready:
            raise RangeWorkerError(f"a process of the backfill {ended} while it was starting")
        one = self._end_task(worker)
        if not isinstance(one, MonthRange):  # threads are built again at the end
            return []
        if one.first != one.last:
            self.listener(RangeSplit(one))
            return [MonthRange(month, month) for month in one.months]
        self.report.failed[str(one.first)] = f"its process {ended}"
        self.listener(RangeFinished(one))
        return []

    @contextmanager
    def _ending_workers(self) -> Iterator[None]:
        """End the processes after the block; after Ctrl-C, wait until their runs have stopped."""
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
    """Receive the first Ctrl-C as a message, so that it does not interrupt a read from a worker."""
    ours, theirs = _PROCESSES.Pipe(duplex=False)
    if threading.current_thread() is not threading.main_thread():
        yield ours  # Python delivers signals to the main thread only
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
