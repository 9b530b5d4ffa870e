"""The connections of a pgvector index: one stays open, so that a query opens none."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from typing import TypeAlias

import psycopg
from psycopg import Connection
from psycopg.errors import InvalidSchemaName, UndefinedTable
from psycopg.rows import DictRow, dict_row

from mail_assets.postgres.database import begin_session
from mail_assets.vectors.errors import VectorError, missing_index
from mail_assets.vectors.pgvector.schema import check_schema

Session: TypeAlias = Connection[DictRow]


class Connections:
    """Connections to one server; each is used by one thread at a time.

    What is done with one is about the index that `label` names in error messages.
    """

    def __init__(self, dsn: str, label: str) -> None:
        self._dsn = dsn
        self._label = label
        self._idle: SimpleQueue[Session] = SimpleQueue()
        weakref.finalize(self, _close_all, self._idle)

    @contextmanager
    def transaction(self) -> Iterator[Session]:
        """Open a transaction on the connection that is kept, or on a new one while that is used."""
        with postgres_errors(self._label):
            session = self._take() or self._open()
            try:
                with session.transaction():
                    yield session
            finally:
                self._keep(session)

    @contextmanager
    def session(self) -> Iterator[Session]:
        """Open a connection of its own in autocommit mode, for what outlives transactions."""
        with postgres_errors(self._label), self._open() as session:
            yield session

    def _open(self) -> Session:
        session = psycopg.connect(
            self._dsn,
            row_factory=dict_row,
            autocommit=True,
            # A prepared statement would come to be planned for any filter and any number of rows.
            prepare_threshold=None,
            fallback_application_name="mail_assets vectors",
        )
        begin_session(session)
        try:
            check_schema(session, self._label)
        except BaseException:
            session.close()
            raise
        return session

    def _take(self) -> Session | None:
        """Return the kept connection if there is one and its server still answers."""
        try:
            session = self._idle.get_nowait()
        except Empty:
            return None
        try:
            session.execute("")
        except psycopg.OperationalError:  # restarted since
            session.close()
            return None
        return session

    def _keep(self, session: Session) -> None:
        if session.closed or not self._idle.empty():
            session.close()
        else:
            self._idle.put(session)


@contextmanager
def postgres_errors(label: str) -> Iterator[None]:
    """Turn Postgres errors into VectorError about `label`."""
    try:
        yield
    except (UndefinedTable, InvalidSchemaName) as error:
        raise missing_index(label) from error
    except psycopg.Error as error:
        raise VectorError(f"{label}: {error}; check the DSN, the server and its log") from error


def _close_all(sessions: SimpleQueue[Session]) -> None:
    while not sessions.empty():
        sessions.get().close()
