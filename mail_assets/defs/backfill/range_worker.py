"""A process of a backfill with several jobs: runs the ranges that it is sent, one after another.

Ranges come, and events go, over one pipe. The process ends when the pipe does, whatever it is
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
from typing import NamedTuple

import dagster as dg

from mail_assets.defs.backfill.ranges import MonthRange
from mail_assets.defs.backfill.report import Report
from mail_assets.defs.backfill.runs import Runs
from mail_assets.defs.definitions import build_defs
from mail_assets.settings.environment import Settings


class WorkerReady(NamedTuple):
    """The process has started, and takes ranges."""


class RangeReport(NamedTuple):
    """A range was run, or interrupted; `report` has what was done."""

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
    """Run the ranges that come until None does; send their events, and a RangeReport after each."""
    # Ctrl-C on a terminal goes to its whole process group: the backfill passes it on, once
    os.setpgid(0, 0)
    interrupts = RunInterrupts()
    signal.signal(signal.SIGINT, interrupts)
    ranges: SimpleQueue[MonthRange | None] = SimpleQueue()
    threading.Thread(target=_receive, args=(connection, ranges), daemon=True).start()
    with dg.DagsterInstance.get() as instance:
        runs = Runs(build_defs(settings), instance, connection.send, assets)
        connection.send(WorkerReady())
        while one := ranges.get():
            runs.report = Report()
            try:
                interrupts.start_run()
                runs.run_range(one, allow_loss)
            except KeyboardInterrupt:
                runs.report.interrupted = True
            interrupts.is_running = False
            connection.send(RangeReport(runs.report))


def _receive(connection: Connection, ranges: SimpleQueue[MonthRange | None]) -> None:
    try:
        while True:
            ranges.put(connection.recv())
    except (EOFError, OSError):
        os._exit(1)
