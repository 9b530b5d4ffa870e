"""The archive for many threads at once: searches and reads, with a bound on what runs.

Each search that runs has a slot of its own (search_slots.py). Whoever would wait too long for one
is told so: a queue without end helps nobody.
"""

import itertools
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Concatenate, ParamSpec, TypeVar

import psycopg

from mail_assets.answers.evidence import Evidence, find_evidence
from mail_assets.answers.excerpts import Hide, show_all
from mail_assets.search.language.request import Request
from mail_assets.search.open import SearchSettings
from mail_assets.search.response import Response
from mail_assets.serving.audit import Counts, SearchAudit
from mail_assets.serving.errors import ServingError, read_error
from mail_assets.serving.permits import Permits
from mail_assets.serving.search_slots import (
    OpenArchive,
    ProcessSlot,
    SearchSlot,
    ThreadSlot,
    open_reads,
)
from mail_assets.tables.removals import KeySource
from mail_assets.tables.search_audit import add_searches

P = ParamSpec("P")
T = TypeVar("T")

#: Seconds that a request waits for a slot.
WAIT_SECONDS = 1.0


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
