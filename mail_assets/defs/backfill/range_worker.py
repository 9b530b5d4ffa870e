"""A process of a backfill with several jobs: does the tasks that it is sent, one after another.

Tasks come, and events go, over one pipe. The process ends when the pipe does, whatever it is
doing: what was cut off is completed by the next backfill, and nobody would hear of it.
"""

import os
import signal
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from queue import SimpleQueue
from types import FrameType
from typing import NamedTuple, TypeAlias

import dagster as dg

from mail_assets.defs.backfill.ranges import MonthRange
from mail_assets.defs.backfill.report import Report
from mail_assets.defs.backfill.runs import Runs
from mail_assets.defs.definitions import build_defs
from mail_assets.settings.environment import Settings


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
