"""Searches and reads for many threads at once, in a limited number of slots.

Each running search uses a slot: a searcher in this process, or in a separate process. A request
that waits too long for a slot is refused. limits.py bounds the number of waiting requests.

A process is pinned to one core, because LanceDB passes each file read between threads, and waking a
thread on another core takes longer than the read. Pinned processes answer more searches than
threads (docs/benchmarks.md, "What was chosen by measurement").
"""

import gc
import itertools
import logging
import pickle
import threading
import traceback
from collections import deque
from collections.abc import AsyncIterator, Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Concatenate, NamedTuple, ParamSpec, Protocol, TypeVar

import psycopg
from anyio import CapacityLimiter, fail_after, to_thread
from psycopg_pool import ConnectionPool

from mail_assets.answers.evidence import Evidence, find_evidence
from mail_assets.answers.excerpts import Hide, show_all
from mail_assets.postgres.database import MailConnection, begin_session
from mail_assets.postgres.statements import statement
from mail_assets.processes.machine import list_physical_cores
from mail_assets.processes.workers import Worker, WorkerError
from mail_assets.search.language.request import Request
from mail_assets.search.open import SearchSettings, open_searcher
from mail_assets.search.response import Response
from mail_assets.search.searcher import Searcher
from mail_assets.store.objects import ObjectStore
from mail_assets.store.open import open_store
from mail_assets.tables.lists import record_lists, show_lists
from mail_assets.tables.removals import KeySource
from mail_assets.tables.search_audit import add_searches
from mail_assets.web.audit import Counts, SearchAudit
from mail_assets.web.responses import ServingError, read_error

logger = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

#: Most seconds that a read waits for a connection, and a search for a slot.
WAIT_SECONDS = 1.0
#: Most seconds of a statement.
STATEMENT_SECONDS = 3


class OpenArchive(NamedTuple):
    """An open archive: a searcher, and connections that only read."""

    searcher: Searcher
    reads: ConnectionPool

    def show(self, languages: Mapping[str, str]) -> Searcher:
        """Return the searcher, over the lists that are published now."""
        self.searcher.show(languages)
        return self.searcher


class SearchSlot(Protocol):
    """A slot; one search runs in it at a time."""

    def run(
        self, function: Callable[Concatenate[OpenArchive, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Call a function with an open archive; return its result."""

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
        self, function: Callable[Concatenate[OpenArchive, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Call a function with the archive; return its result."""
        return function(self._archive, *args, **kwargs)

    def close(self) -> None:
        """End the searcher's connection."""
        self._opened.close()


class ProcessSlot:
    """Searches in a separate process, which is restarted after it ends; pinned by its `number`."""

    def __init__(self, settings: SearchSettings, number: int) -> None:
        cores = list_physical_cores()
        remedy = "Is there memory for so many processes (MAIL_WEB_PROCESSES)?"
        self._worker = Worker(remedy, cores[number % len(cores)])
        self._call = pickle.dumps((_ArchiveRunner.answer, _ArchiveRunner(settings)))

    def run(
        self, function: Callable[Concatenate[OpenArchive, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Call a function of a module in the process; return its result.

        Raises:
            WorkerError: the process ended twice.
        """
        asked = (function, args, kwargs)
        try:
            answered: _Answered = self._worker.compute(self._call, asked)
        except WorkerError as error:  # an earlier search may have broken the process
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
    result: Any = None
    error: Exception | None = None


@dataclass
class _ArchiveRunner:
    """Runs functions on an archive that the first call opens, until the process ends."""

    settings: SearchSettings
    _opened: ExitStack = field(default_factory=ExitStack)
    _archive: OpenArchive | None = None

    def answer(self, asked: tuple[Callable[..., Any], Sequence[Any], dict[str, Any]]) -> _Answered:
        """Call a function; return its result, or its error with the traceback as a note."""
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
    """Exclude loaded modules from garbage collection; scanning 180,000 objects takes 90 ms."""
    gc.collect()
    gc.freeze()


def open_reads(dsn: str, most: int) -> ConnectionPool:
    """Open a pool of up to `most` connections that cannot write."""
    return ConnectionPool(
        dsn,
        connection_class=MailConnection,
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
    """Return an error that pickle can send: itself, or one with its text."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError("".join(traceback.format_exception(error)))
    return error


class Permits:
    """A semaphore that is fair: the thread that waits longest is next.

    A thread that releases a `threading.Semaphore` can take it again before a waiting thread wakes,
    so a few busy clients could keep another one waiting.
    """

    def __init__(self, count: int) -> None:
        self._free = count
        self._waiting: deque[threading.Event] = deque()
        self._lock = threading.Lock()

    def acquire(self, timeout: float | None = None) -> bool:
        """Take a permit; return whether one came within `timeout` seconds, None for no limit."""
        with self._lock:
            if self._free:
                self._free -= 1
                return True
            turn = threading.Event()
            self._waiting.append(turn)
        if turn.wait(timeout):
            return True
        with self._lock:
            if turn.is_set():  # released after the timeout
                return True
            self._waiting.remove(turn)
            return False

    def release(self) -> None:
        """Give a permit back, or pass it to the thread that waits longest."""
        with self._lock:
            if self._waiting:
                self._waiting.popleft().set()
            else:
                self._free += 1


@dataclass(frozen=True)
class ServiceOptions:
    """Options of a service.

    `store` is the URL of the archive store, `searchers` the number of searches at once. With
    `in_processes` each search has its own process. `published` returns the currently published
    lists and their languages; by default they are those of `search`. A closed list is gone from the
    next request on.
    """

    search: SearchSettings
    forget_key: KeySource
    store: str
    searchers: int
    in_processes: bool = False
    published: Callable[[], Mapping[str, str]] | None = None

    @property
    def languages(self) -> Mapping[str, str]:
        """The lists that are published now, with their text search configurations."""
        return self.published() if self.published else self.search.languages

    @property
    def lists(self) -> tuple[str, ...]:
        """The names of the lists that are published now, sorted."""
        return tuple(sorted(self.languages))


@dataclass
class SearchService:
    """Searches and reads for many threads; `close` ends its connections and processes."""

    options: ServiceOptions
    _idle: list[SearchSlot] = field(default_factory=list)
    _opened: list[SearchSlot] = field(default_factory=list)
    _kept: threading.local = field(default_factory=threading.local)

    def __post_init__(self) -> None:
        database = self.options.search.database
        with database.connect("serve") as connection:  # migrates, starts the embedded server
            # for the SQL functions; the role may lack the right to do so
            with suppress(
                psycopg.errors.InsufficientPrivilege, psycopg.errors.ReadOnlySqlTransaction
            ):
                record_lists(connection, self.options.languages)
            dsn = database.url()
        self.audit = SearchAudit(lambda: self.options.lists, self._write_counts)
        self._numbers = itertools.count()
        self._permits = Permits(self.options.searchers)
        self._reads = open_reads(dsn, 2 * (self.options.searchers + 1))

    @cached_property
    def store(self) -> ObjectStore:
        """The store of archives, which have attachments and patches in their original bytes."""
        return open_store(self.options.store)

    def search(self, request: Request, patience: float = 0.0) -> Response:
        """Answer a request; waits up to `patience` seconds, at least WAIT_SECONDS, for a slot.

        Raises:
            ServingError: too many searches run.
            RequestError, VectorError, WordsError: as `Searcher.search`.
        """
        with self._lend_slot(patience) as slot:
            return slot.run(_search, self.options.languages, request)

    def warm_up(self, *, names_only: bool = False) -> None:
        """Search once in each process, so that no reader waits for the model; log a failure.

        `names_only`, for hidden addresses: PostgreSQL then also compiles the address pattern, half
        a second for each session.
        """
        requests = [Request("archive")]
        if names_only:
            requests.append(Request("from:archive", names_only=True))
        slots = self.options.searchers if self.options.in_processes else 1
        with ThreadPoolExecutor(slots) as threads:
            together = threading.Barrier(slots)
            warming = [threads.submit(self._warm_up, together, requests) for _ in range(slots)]
            for one in warming:
                one.result()

    def _warm_up(self, together: threading.Barrier, requests: Sequence[Request]) -> None:
        try:
            with self._lend_slot() as slot:
                together.wait()  # each thread gets another slot
                for request in requests:
                    slot.run(_search, self.options.languages, request)
        except Exception as error:
            if read_error(error) is None:
                raise

    def find_similar(self, message_id: str, limit: int) -> Response:
        """Return the messages nearest in meaning to one; raises what `search` raises."""
        with self._lend_slot() as slot:
            return slot.run(_find_similar, self.options.languages, message_id, limit)

    def find_evidence(self, request: Request, budget: int, hide: Hide = show_all) -> Evidence:
        """Return the evidence for an answer; the answer itself needs no slot.

        `hide` is applied to the texts; it must be picklable.

        Raises:
            BudgetError: no excerpt fits into the budget of tokens.
            ServingError, RequestError, VectorError, WordsError: as `search`.
        """
        with self._lend_slot() as slot:
            return slot.run(_find_evidence, self.options.languages, request, budget, hide)

    def read(
        self,
        function: Callable[Concatenate[psycopg.Connection, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Call a function with a read-only connection; return its result.

        Raises:
            PoolTimeout, psycopg.Error: the database does not answer, or not in time.
        """
        with self.reading():
            return function(self._kept.connection, *args, **kwargs)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Let all reads of this thread share one connection; the pool tests each one it lends.

        Do not search meanwhile, because a search uses a connection of its own.
        """
        if getattr(self._kept, "connection", None):
            yield
            return
        with self._reads.connection() as connection:
            show_lists(connection, self.options.lists)
            self._kept.connection = connection
            try:
                yield
            finally:
                self._kept.connection = None

    def close(self) -> None:
        """Wait for running searches, then end all connections and processes."""
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
            message = "too many searches at the moment"
            raise ServingError(503, "overloaded", message, retry_after=1)
        try:
            slot = self._idle.pop() if self._idle else self._open_slot()
            try:
                yield slot
            finally:  # also after an error, because a slot reconnects by itself
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


def _search(archive: OpenArchive, languages: Mapping[str, str], request: Request) -> Response:
    return archive.show(languages).search(request)


def _find_similar(
    archive: OpenArchive, languages: Mapping[str, str], message_id: str, limit: int
) -> Response:
    return archive.show(languages).similar(message_id, limit)


def _find_evidence(
    archive: OpenArchive, languages: Mapping[str, str], request: Request, budget: int, hide: Hide
) -> Evidence:
    with archive.reads.connection() as connection:
        show_lists(connection, languages)
        return find_evidence(archive.show(languages), connection, request, budget, hide=hide)


class Workers:
    """Runs blocking work in threads for the event loop."""

    def __init__(self, threads: int) -> None:
        self._limiter = CapacityLimiter(threads)

    async def run(self, work: Callable[[], T]) -> T:
        """Do blocking work in a thread.

        Raises:
            ServingError: no thread was free in time.
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
        """Yield the items of a generator, each made in a thread; close it when the client leaves.

        An item waits for a thread without limit, because a part is already sent. Between two items
        no thread is used, so clients may be slow.
        """
        try:
            while some := await to_thread.run_sync(_take_next, items, limiter=self._limiter):
                yield some[0]
        finally:
            items.close()


def _take_next(items: Iterator[T]) -> tuple[T, ...]:
    for item in items:
        return (item,)
    return ()
