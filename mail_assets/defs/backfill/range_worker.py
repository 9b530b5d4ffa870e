"""A process of a backfill with several jobs: runs the ranges that it is sent, one after another.

Ranges come, and events go, over one pipe. The process ends when the pipe does, whatever it is
doing: what was cut off is completed by the next backfill, and nobody would hear of it.
"""

import os
import threading
from collections.abc import Sequence
from multiprocessing.connection import Connection
from queue import SimpleQueue
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


def run_worker(
    connection: Connection, settings: Settings, assets: Sequence[str], allow_loss: bool
) -> None:
    """Run the ranges that come until None does; send their events, and a RangeReport after each."""
    # Ctrl-C on a terminal goes to its whole process group: the backfill passes it on, once
    os.setpgid(0, 0)
    ranges: SimpleQueue[MonthRange | None] = SimpleQueue()
    threading.Thread(target=_receive, args=(connection, ranges), daemon=True).start()
    with dg.DagsterInstance.get() as instance:
        runs = Runs(build_defs(settings), instance, connection.send, assets)
        connection.send(WorkerReady())
        while True:
            runs.report = Report()
            try:
                if (one := ranges.get()) is None:
                    return
                runs.run_range(one, allow_loss)
            except KeyboardInterrupt:
                runs.report.interrupted = True
            connection.send(RangeReport(runs.report))


def _receive(connection: Connection, ranges: SimpleQueue[MonthRange | None]) -> None:
    try:
        while True:
            ranges.put(connection.recv())
    except (EOFError, OSError):
        os._exit(1)
