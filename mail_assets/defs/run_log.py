"""The log of a run in this process, passed on as plain values to whoever shows it.

https://docs.dagster.io/guides/log-debug/logging
"""

import logging
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import dagster as dg

from mail_assets.month import ListMonth
from mail_assets.tables.partitions import Counts

#: The attribute of a log record that carries a MonthFinished.
_FINISHED = "mail_assets_month_finished"


class MonthFinished(NamedTuple):
    """One asset is done with one month; without a change the counts are those of an earlier run."""

    asset: str
    month: ListMonth
    counts: Counts
    changed: bool


class LogLine(NamedTuple):
    """One line of a run's log: seconds since 1970, the level of `logging`, the text."""

    seconds: float
    level: int
    text: str

    def __str__(self) -> str:
        """Return "HH:MM:SS text", local time; a warning or an error carries its level."""
        level = f"{logging.getLevelName(self.level).lower()}: " if self.level > logging.INFO else ""
        return f"{time.strftime('%H:%M:%S', time.localtime(self.seconds))} {level}{self.text}"


#: Receives what a run logs, in the thread of the run.
Emit = Callable[[MonthFinished | LogLine], None]


def log_month(log: logging.Logger, finished: MonthFinished, text: str) -> None:
    """Log one line on a finished month, and pass the month on to who follows the run."""
    log.info(text, extra={_FINISHED: finished})


def build_run_logger(emit: Emit) -> dg.LoggerDefinition:
    """Return a logger that passes on every line, without the prefix that Dagster gives it."""

    @dg.logger(config_schema={}, description="Passes the log on to whoever started the run.")
    def run_log(context: dg.InitLoggerContext) -> logging.Logger:
        logger = logging.Logger("mail_assets")
        logger.addHandler(_Emitter(emit))
        return logger

    return run_log


class _Emitter(logging.Handler):
    """Turns log records into values.

    Raises KeyboardInterrupt where Dagster is about to run an interrupted step again: its retry
    policy does not tell Ctrl-C from a fault.
    """

    def __init__(self, emit: Emit) -> None:
        super().__init__()
        self._emit = emit

    def emit(self, record: logging.LogRecord) -> None:
        """Pass one record on."""
        dagster_fields = getattr(record, "dagster_meta", None) or {}
        event = dagster_fields.get("dagster_event")
        if event and event.event_type == dg.DagsterEventType.STEP_UP_FOR_RETRY:
            _stop_if_interrupted(event)
        if finished := getattr(record, _FINISHED, None):
            self._emit(finished)
        if record.levelno < logging.INFO:  # Dagster's own bookkeeping
            return
        text = dagster_fields.get("orig_message") or record.getMessage()
        self._emit(LogLine(record.created, record.levelno, text))


def _stop_if_interrupted(event: dg.DagsterEvent) -> None:
    error: Any = event.step_retry_data.error
    while error:
        if error.cls_name in ("KeyboardInterrupt", "DagsterExecutionInterruptedError"):
            raise KeyboardInterrupt
        error = error.cause
