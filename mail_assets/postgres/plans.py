"""Plans of statements on the connections of searches: for their values, or once for any.

A plan for any values reads all messages for some: a rare word, a list without mail. So a statement
is planned for its values. Statements that read rows by their keys are planned once: planning takes
longer than such a statement.
"""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import psycopg
from psycopg import pq
from psycopg.abc import PQGen
from psycopg.rows import Row

_MODES = {False: "force_custom_plan", True: "force_generic_plan"}


class PlannedConnection(psycopg.Connection[tuple[Any, ...]]):
    """A connection that plans each statement for its values, but for those in `planned_once`.

    The setting of the session changes with the next statement that needs another one, in the same
    round trip: most searches ask nothing but keys, and change nothing.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.cursor_factory = _PlannedCursor
        #: True while statements are planned once.
        self.plans_once = False
        #: What the session does, None where that is not known.
        self.session_plans_once: bool | None = None

    @contextmanager
    def transaction(
        self, savepoint_name: str | None = None, force_rollback: bool = False
    ) -> Iterator[psycopg.Transaction]:
        """Begin a transaction; with it PostgreSQL may take the setting back."""
        try:
            with super().transaction(savepoint_name, force_rollback) as transaction:
                yield transaction
        finally:
            self.session_plans_once = None

    def wait(self, gen: PQGen[Any], *arguments: Any, **options: Any) -> Any:
        """Wait for answers; after an error PostgreSQL may have taken the setting back."""
        try:
            return super().wait(gen, *arguments, **options)
        except BaseException:
            self.session_plans_once = None
            raise


class _PlannedCursor(psycopg.Cursor[Row]):
    def execute(self, query: Any, *arguments: Any, **options: Any) -> "_PlannedCursor[Row]":
        connection = self.connection
        assert isinstance(connection, PlannedConnection)
        wanted = connection.plans_once
        if connection.session_plans_once == wanted:
            return super().execute(query, *arguments, **options)
        is_open = connection.pgconn.pipeline_status != pq.PipelineStatus.OFF
        with nullcontext() if is_open else connection.pipeline():
            psycopg.Cursor(connection).execute(f"set plan_cache_mode = {_MODES[wanted]}")
            connection.session_plans_once = wanted
            return super().execute(query, *arguments, **options)


@contextmanager
def planned_once(connection: psycopg.Connection) -> Iterator[None]:
    """Give statements the plan that they have for any values, on a connection of a search."""
    if not isinstance(connection, PlannedConnection):
        yield
        return
    before, connection.plans_once = connection.plans_once, True
    try:
        yield
    finally:
        connection.plans_once = before
