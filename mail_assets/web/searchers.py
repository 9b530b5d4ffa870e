"""The archive for many threads at once: searches and reads, with a bound on what runs.

Each search that runs has a slot of its own (search_slots.py). Whoever would wait too long for one
is told so: a queue without end helps nobody.

[search_slots] Where searches run: in this process, or in processes of their own, each kept to a core.

LanceDB hands every read of a file from thread to thread, some 480 times a search, and to wake a
thread on another core takes longer than the read. Kept to one core a search takes two thirds to
four fifths of the processor's time; two such processes answer 1.6 times as many as one that has
both cores (docs/search-experiments.md, "Processes").

[permits] Permits for a bounded number of threads at once; who has waited longest is next.

Not `threading.Semaphore`: a thread that gives its permit back can take it again before one that
waits is awake, and a few busy clients would keep another waiting for a second.

[workers] Threads for what blocks: as many as have work at once; nobody waits for one without end.

How many wait is bounded before they come here (limits.py).
"""

import gc
import itertools
import logging
import pickle
import threading
import traceback
from collections import deque
from collections.abc import AsyncIterator, Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, Concatenate, NamedTuple, ParamSpec, Protocol, TypeVar

import psycopg
from anyio import CapacityLimiter, fail_after, to_thread
from psycopg_pool import ConnectionPool

from mail_assets.answers.evidence import Evidence, find_evidence
from mail_assets.answers.excerpts import Hide, show_all
from mail_assets.encoding.local_encoder import list_physical_cores
from mail_assets.postgres.database import begin_session
from mail_assets.postgres.statements import statement
from mail_assets.processes.workers import Worker, WorkerError
from mail_assets.search.language.request import Request
from mail_assets.search.open import SearchSettings, open_searcher
from mail_assets.search.response import Response
from mail_assets.search.searcher import Searcher
from mail_assets.tables.removals import KeySource
from mail_assets.tables.search_audit import add_searches
from mail_assets.web.audit import Counts, SearchAudit
from mail_assets.web.responses import ServingError, read_error

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
        opening = open_searcher(settings, statement_seconds=STATEMENT_SECONDS)
        searcher = self._opened.enter_context(opening)
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
            opening = open_searcher(self.settings, statement_seconds=STATEMENT_SECONDS)
            searcher = opened.enter_context(opening)
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


class Permits:
    """So many permits, handed from thread to thread."""

    def __init__(self, count: int) -> None:
        self._free = count
        self._waiting: deque[threading.Event] = deque()
        self._lock = threading.Lock()

    def acquire(self, timeout: float | None = None) -> bool:
        """Take a permit; return whether there was one within so many seconds, None for any time."""
        with self._lock:
            if self._free:
                self._free -= 1
                return True
            turn = threading.Event()
            self._waiting.append(turn)
        if turn.wait(timeout):
            return True
        with self._lock:
            if turn.is_set():  # at the last moment
                return True
            self._waiting.remove(turn)
            return False

    def release(self) -> None:
        """Give a permit back, to the thread that has waited longest."""
        with self._lock:
            if self._waiting:
                self._waiting.popleft().set()
            else:
                self._free += 1


@dataclass(frozen=True)
class ServiceOptions:
    """What a service is opened with: `store` is the URL of the archive store, `searchers` how many
    searches run at once, `in_processes` whether each in a process of its own; `audit` says whether
    searches are counted.
    """

    search: SearchSettings
    forget_key: KeySource
    store: str
    searchers: int
    audit: bool = True
    in_processes: bool = False

    @property
    def lists(self) -> tuple[str, ...]:
        """The lists that are searched."""
        return tuple(sorted(self.search.languages))


@dataclass
class SearchService:
    """Answers searches and reads of many threads; close it to end its connections."""

    options: ServiceOptions
    _idle: list[SearchSlot] = field(default_factory=list)
    _opened: list[SearchSlot] = field(default_factory=list)

    def __post_init__(self) -> None:
        database = self.options.search.database
        with database.connect("serve"):  # migrated, and the embedded server started
            dsn = database.url()
        write = self._write_counts if self.options.audit else None
        self.audit = SearchAudit(self.options.lists, write)
        self._numbers = itertools.count()
        self._permits = Permits(self.options.searchers)
        self._reads = open_reads(dsn, 2 * (self.options.searchers + 1))

    def search(self, request: Request, patience: float = 0.0) -> Response:
        """Answer a request; `patience` is how many seconds it waits where that is longer.

        Raises:
            ServingError: too many searches run.
            RequestError, VectorError, WordsError: as `Searcher.search`.
        """
        with self._lend_slot(patience) as slot:
            return slot.run(_search, request)

    def warm_up(self) -> None:
        """Search once in each process: no reader waits for the model. A failure is logged."""
        slots = self.options.searchers if self.options.in_processes else 1
        with ThreadPoolExecutor(slots) as threads:
            together = threading.Barrier(slots)
            for one in [threads.submit(self._warm_up, together) for _ in range(slots)]:
                one.result()

    def _warm_up(self, together: threading.Barrier) -> None:
        try:
            with self._lend_slot() as slot:
                together.wait()  # none gets a slot that another has left
                slot.run(_search, Request("archive"))
        except Exception as error:
            if read_error(error) is None:
                raise

    def find_similar(self, message_id: str, limit: int) -> Response:
        """Return the messages nearest in meaning to one; raises what `search` raises."""
        with self._lend_slot() as slot:
            return slot.run(_find_similar, message_id, limit)

    def find_evidence(self, request: Request, budget: int, hide: Hide = show_all) -> Evidence:
        """Return what a question is answered from; no slot is needed for the answer itself.

        `hide` is what is made of the texts; it is sent to another process.

        Raises:
            BudgetError: no excerpt fits into the budget of tokens.
            ServingError, RequestError, VectorError, WordsError: as `search`.
        """
        with self._lend_slot() as slot:
            return slot.run(_find_evidence, request, budget, hide)

    def read(
        self,
        function: Callable[Concatenate[psycopg.Connection, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Return what a function reads over a connection that cannot write.

        Raises:
            PoolTimeout, psycopg.Error: the database does not answer, or not in time.
        """
        with self._reads.connection() as connection:
            return function(connection, *args, **kwargs)

    def close(self) -> None:
        """End all connections, those of searches that run when they are done."""
        for _ in range(self.options.searchers):
            self._permits.acquire()
        self._reads.close()
        for slot in self._opened:
            slot.close()
        self.audit.close()

    def _write_counts(self, counts: Counts) -> None:
        with self.options.search.database.connect("audit") as connection:
            add_searches(connection, counts)

    @contextmanager
    def _lend_slot(self, patience: float = 0.0) -> Iterator[SearchSlot]:
        if not self._permits.acquire(timeout=max(WAIT_SECONDS, patience)):
            message = "too many searches run at the moment"
            raise ServingError(503, "overloaded", message, retry_after=1)
        try:
            slot = self._idle.pop() if self._idle else self._open_slot()
            try:
                yield slot
            finally:  # whatever it raised: it connects again by itself
                self._idle.append(slot)
        finally:
            self._permits.release()

    def _open_slot(self) -> SearchSlot:
        search = self.options.search
        slot: SearchSlot
        if self.options.in_processes:
            slot = ProcessSlot(search, next(self._numbers))
        else:
            slot = ThreadSlot(search, self._reads)
        self._opened.append(slot)
        return slot


def _search(archive: OpenArchive, request: Request) -> Response:
    return archive.searcher.search(request)


def _find_similar(archive: OpenArchive, message_id: str, limit: int) -> Response:
    return archive.searcher.similar(message_id, limit)


def _find_evidence(archive: OpenArchive, request: Request, budget: int, hide: Hide) -> Evidence:
    with archive.reads.connection() as connection:
        return find_evidence(archive.searcher, connection, request, budget, hide=hide)


class Workers:
    """Runs blocking work for the event loop."""

    def __init__(self, threads: int) -> None:
        self._limiter = CapacityLimiter(threads)

    async def run(self, work: Callable[[], T]) -> T:
        """Do blocking work in a thread.

        Raises:
            ServingError: none was free in time.
        """
        try:
            with fail_after(WAIT_SECONDS):
                await self._limiter.acquire()
        except TimeoutError:
            message = "too many requests at the moment"
            raise ServingError(503, "overloaded", message, retry_after=1) from None
        try:
            return await to_thread.run_sync(work, limiter=CapacityLimiter(1))
        finally:
            self._limiter.release()

    async def follow(self, items: Generator[T, None, None]) -> AsyncIterator[T]:
        """Yield what a generator yields, which is closed where nobody listens any more.

        For the next item one waits however long it takes: a part is sent already. Between two of
        them no thread is held, so a client may be slow.
        """
        try:
            while some := await to_thread.run_sync(_take_next, items, limiter=self._limiter):
                yield some[0]
        finally:
            items.close()


def _take_next(items: Iterator[T]) -> tuple[T, ...]:
    """Return the next item, nothing at the end."""
    for item in items:
        return (item,)
    return ()
