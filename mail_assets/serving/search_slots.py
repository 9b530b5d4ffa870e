"""Where searches run: in this process, or in processes of their own, each kept to a core.

LanceDB hands every read of a file from thread to thread, some 480 times a search, and to wake a
thread on another core takes longer than the read. Kept to one core a search takes two thirds to
four fifths of the processor's time; two such processes answer 1.6 times as many as one that has
both cores (docs/search-experiments.md, "Processes").
"""

import gc
import logging
import pickle
import traceback
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, Concatenate, NamedTuple, ParamSpec, Protocol, TypeVar

import psycopg
from psycopg_pool import ConnectionPool

from mail_assets.encoding.local_encoder import list_physical_cores
from mail_assets.postgres.database import begin_session
from mail_assets.postgres.statements import statement
from mail_assets.processes.workers import Worker, WorkerError
from mail_assets.search.open import SearchSettings, open_searcher
from mail_assets.search.searcher import Searcher

logger = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

#: Seconds that a read waits for a connection.
WAIT_SECONDS = 1.0
#: Seconds that a statement may take.
STATEMENT_SECONDS = 3


class OpenArchive(NamedTuple):
    """What a search works with: a searcher, and connections that only read."""

    searcher: Searcher
    reads: ConnectionPool


class SearchSlot(Protocol):
    """Where one search runs at a time."""

    def run(
        self,
        function: Callable[Concatenate[OpenArchive, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Return what a function does with an open archive."""

    def close(self) -> None:
        """End the connections."""


class ThreadSlot:
    """Searches in this process."""

    def __init__(self, settings: SearchSettings, reads: ConnectionPool) -> None:
        self._opened = ExitStack()
        searcher = self._opened.enter_context(open_searcher(settings))
        self._archive = OpenArchive(searcher, reads)

    def run(
        self,
        function: Callable[Concatenate[OpenArchive, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Return what a function does; raises what it raises."""
        return function(self._archive, *args, **kwargs)

    def close(self) -> None:
        """End the searcher's connection."""
        self._opened.close()


class ProcessSlot:
    """Searches in a process of its own, which is started again where it has ended.

    `number` tells the processes apart: they take turns on the cores.
    """

    def __init__(self, settings: SearchSettings, number: int) -> None:
        cores = list_physical_cores()
        remedy = "Is there memory for so many processes (MAIL_WEB_PROCESSES)?"
        self._worker = Worker(remedy, cores[number % len(cores)])
        self._call = pickle.dumps((_ArchiveRunner.answer, _ArchiveRunner(settings)))

    def run(
        self,
        function: Callable[Concatenate[OpenArchive, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Return what a function of a module does; raises what it raises.

        Raises:
            WorkerError: the process has ended twice.
        """
        asked = (function, args, kwargs)
        try:
            answered: _Answered = self._worker.compute(self._call, asked)
        except WorkerError as error:  # perhaps by what it did before
            logger.warning("%s; the search runs once more, in a new process", error)
            answered = self._worker.compute(self._call, asked)
        if answered.error is not None:
            raise answered.error
        result: T = answered.result
        return result

    def close(self) -> None:
        """End the process."""
        self._worker.close()


class _Answered(NamedTuple):
    """What a function returned, or the error that it raised."""

    result: Any = None
    error: Exception | None = None


@dataclass
class _ArchiveRunner:
    """Runs functions on an archive that it opens for the first of them, until the process ends."""

    settings: SearchSettings
    _opened: ExitStack = field(default_factory=ExitStack)
    _archive: OpenArchive | None = None

    def answer(self, asked: tuple[Callable[..., Any], Sequence[Any], dict[str, Any]]) -> _Answered:
        """Return what a function did; its error with the traceback as a note."""
        function, args, kwargs = asked
        is_first = self._archive is None
        try:
            return _Answered(function(self._archive or self._open(), *args, **kwargs))
        except Exception as error:
            error.add_note("".join(traceback.format_exception(error)))
            return _Answered(error=_sendable(error))
        finally:
            if is_first:
                spare_from_collection()

    def _open(self) -> OpenArchive:
        with ExitStack() as opened:
            searcher = opened.enter_context(open_searcher(self.settings))
            reads = opened.enter_context(open_reads(self.settings.database.url(), 1))
            self._opened = opened.pop_all()
        self._archive = OpenArchive(searcher, reads)
        return self._archive


def spare_from_collection() -> None:
    """Keep the garbage collector from what was loaded until now, which stays until the end.

    To look at these 180,000 objects takes 90 ms, which one in 300 searches waited for.
    """
    gc.collect()
    gc.freeze()


def open_reads(dsn: str, most: int) -> ConnectionPool:
    """Open a pool of up to `most` connections that cannot write."""
    return ConnectionPool(
        dsn,
        kwargs={"autocommit": True, "application_name": "mail_assets/serve"},
        min_size=1,
        max_size=most,
        timeout=WAIT_SECONDS,
        configure=_only_read,
        check=ConnectionPool.check_connection,
        open=True,
    )


def _only_read(connection: psycopg.Connection) -> None:
    begin_session(connection)
    parameters = {"timeout": f"{STATEMENT_SECONDS}s"}
    connection.execute(statement("browsing", "only_read"), parameters)


def _sendable(error: Exception) -> Exception:
    """Return an error that another process can read: itself, or its text."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError("".join(traceback.format_exception(error)))
    return error
