"""The archive for many threads at once: searches and reads, with a bound on what runs.

What takes memory is shared (the encoder, the indexes); each search that runs has a connection.
Whoever would wait too long is told so: a queue without end helps nobody.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Concatenate, ParamSpec, TypeVar

import psycopg
from psycopg_pool import ConnectionPool

from mail_assets.answers.evidence import Evidence, find_evidence
from mail_assets.postgres.statements import statement
from mail_assets.search.open import SearchSettings, open_searcher
from mail_assets.search.request import Request
from mail_assets.search.response import Response
from mail_assets.search.searcher import Searcher
from mail_assets.serving.audit import Counts, SearchAudit
from mail_assets.serving.errors import ServingError, read_error
from mail_assets.tables.forget_keys import KeySource
from mail_assets.tables.search_audit import add_searches

P = ParamSpec("P")
T = TypeVar("T")

#: Seconds that a request waits for a searcher or a connection.
WAIT_SECONDS = 1.0
#: Seconds that a statement may take.
STATEMENT_SECONDS = 3


@dataclass(frozen=True)
class ServiceOptions:
    """What a service is opened with: `store` is the URL of the archive store, `searchers` how many
    searches run at once; `audit` says whether searches are counted.
    """

    search: SearchSettings
    forget_key: KeySource
    store: str
    searchers: int
    audit: bool = True

    @property
    def lists(self) -> tuple[str, ...]:
        """The lists that are searched."""
        return tuple(sorted(self.search.languages))


@dataclass
class SearchService:
    """Answers searches and reads of many threads; close it to end its connections."""

    options: ServiceOptions
    _idle: list[Searcher] = field(default_factory=list)
    _opened: ExitStack = field(default_factory=ExitStack)

    def __post_init__(self) -> None:
        database = self.options.search.database
        with database.connect("serve"):  # migrated, and the embedded server started
            dsn = database.url()
        write = self._write_counts if self.options.audit else None
        self.audit = SearchAudit(self.options.lists, write)
        self._permits = threading.BoundedSemaphore(self.options.searchers)
        self._reads = ConnectionPool(
            dsn,
            kwargs={"autocommit": True, "application_name": "mail_assets/serve"},
            min_size=1,
            max_size=2 * (self.options.searchers + 1),
            timeout=WAIT_SECONDS,
            configure=_only_read,
            check=ConnectionPool.check_connection,
            open=True,
        )

    def search(self, request: Request) -> Response:
        """Answer a request.

        Raises:
            ServingError: too many searches run.
            RequestError, VectorError, WordsError: as `Searcher.search`.
        """
        with self._lend_searcher() as searcher:
            return searcher.search(request)

    def warm_up(self) -> None:
        """Search once, so that no reader waits for the model; a failure is logged."""
        try:
            self.search(Request("archive"))
        except Exception as error:
            if read_error(error) is None:
                raise

    def find_similar(self, message_id: str, limit: int) -> Response:
        """Return the messages nearest in meaning to one; raises what `search` raises."""
        with self._lend_searcher() as searcher:
            return searcher.similar(message_id, limit)

    def find_evidence(self, request: Request, budget: int) -> Evidence:
        """Return what a question is answered from; no connection is needed for the answer itself.

        Raises:
            BudgetError: no excerpt fits into the budget of tokens.
            ServingError, RequestError, VectorError, WordsError: as `search`.
        """
        with self._lend_searcher() as searcher, self._reads.connection() as connection:
            return find_evidence(searcher, connection, request, budget)

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
        self._opened.close()
        self.audit.close()

    def _write_counts(self, counts: Counts) -> None:
        with self.options.search.database.connect("audit") as connection:
            add_searches(connection, counts)

    @contextmanager
    def _lend_searcher(self) -> Iterator[Searcher]:
        if not self._permits.acquire(timeout=WAIT_SECONDS):
            message = "too many searches run at the moment"
            raise ServingError(503, "overloaded", message, retry_after=1)
        try:
            searcher = self._idle.pop() if self._idle else self._open_searcher()
            try:
                yield searcher
            finally:  # whatever it raised: it connects again by itself
                self._idle.append(searcher)
        finally:
            self._permits.release()

    def _open_searcher(self) -> Searcher:
        return self._opened.enter_context(open_searcher(self.options.search))


def _only_read(connection: psycopg.Connection) -> None:
    parameters = {"timeout": f"{STATEMENT_SECONDS}s"}
    connection.execute(statement("browsing", "only_read"), parameters)
