"""Connections to the mail database: on the user's own server or the embedded one.

For a connection the embedded server is started if it is down, and the databases are created and
migrated. Statements that read and write mail are in mail_assets/tables.

Sessions are set up by a statement after connecting and not by `options` of the DSN: these are the
user's, and PgBouncer refuses them.
"""

import contextlib
import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from mail_assets.environment import VARIABLES
from mail_assets.postgres.embedded import Cluster
from mail_assets.postgres.migrations import migrate
from mail_assets.postgres.remote import check_server
from mail_assets.postgres.statements import statement

_T = TypeVar("_T")
_Connection = TypeVar("_Connection", bound=psycopg.Connection[Any])

#: The databases of the embedded server: ours, and Dagster's own storage.
MAIL, DAGSTER = "mail", "dagster"

#: A run holds session locks on its months. When its machine is gone, no packet says so, and the
#: system's defaults wait for two hours. These are seconds of silence, seconds between probes, and
#: probes: 30 + 3 * 10 = a minute. sql/sessions.sql asks the server for the same.
#: https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-KEEPALIVES
_KEEPALIVES = {"keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3}

#: Seconds until a server that does not answer counts as down; psycopg waits for 130.
CONNECT_TIMEOUT = 10

#: Errors that another transaction causes; a retry finds it finished.
CONFLICTS = (psycopg.errors.SerializationFailure, psycopg.errors.DeadlockDetected)

#: More than two: a busy backfill commits a month every few seconds.
TRIES = 5


@dataclass(frozen=True)
class Database:
    """The mail database at `dsn`, or in the embedded server below `home` if `dsn` is empty."""

    home: Path
    dsn: str = field(default="", repr=False)

    @property
    def embedded(self) -> bool:
        """True if the database is in the embedded server."""
        return not self.dsn

    def url(self) -> str:
        """Return the database's DSN; the embedded server is started for it."""
        return self.dsn or embedded_dsn(self.home, MAIL)

    @contextlib.contextmanager
    def connect(self, role: str, run: str = "") -> Iterator[psycopg.Connection]:
        """Yield a connection in autocommit mode: open a transaction where one is needed.

        `role` ("messages", "search", ...) and `run`, the Dagster run, are in the session's name, so
        that a slow query in pg_stat_activity leads back to them.

        Raises:
            psycopg.OperationalError: the server does not answer.
            PostgresError: the embedded server does not start, or the user's own does not fit.
            MigrationError: the database and this version do not fit.
        """
        name = "/".join(filter(None, ("mail_assets", role, run)))[:63]
        with self._open(name) as connection:
            yield connection

    def _open(self, name: str) -> psycopg.Connection:
        if self.dsn:
            return _connect(add_defaults(_ready_dsn(self.home, self.dsn)), name)
        try:
            return _connect(_ready_dsn(self.home, ""), name)
        except psycopg.OperationalError:  # the server has ended since this process asked for it
            _ready_dsn.cache_clear()
            return _connect(_ready_dsn(self.home, ""), name)


@functools.cache
def _ready_dsn(home: Path, dsn: str) -> str:
    """Return the DSN of a running database with all tables; checked once per process."""
    found = dsn or embedded_dsn(home, MAIL)
    with _connect(add_defaults(found), "mail_assets/migrate") as connection:
        if dsn:
            check_server(connection, found)
        migrate(connection)
    return found


def _connect(dsn: str, name: str) -> psycopg.Connection:
    return begin_session(psycopg.connect(dsn, autocommit=True, application_name=name))


def begin_session(connection: _Connection) -> _Connection:
    """Return a new connection in autocommit mode with our settings, made in one round trip."""
    try:
        connection.execute(statement("sessions", "begin"))
    except BaseException:
        connection.close()
        raise
    return connection


def add_defaults(dsn: str) -> str:
    """Return a DSN by which a server that is down or dies is noticed; settings in the DSN win."""
    waits = {} if "PGCONNECT_TIMEOUT" in VARIABLES else {"connect_timeout": CONNECT_TIMEOUT}
    return make_conninfo("", **{**_KEEPALIVES, **waits, **conninfo_to_dict(dsn)})


@functools.cache
def embedded(home: Path) -> Cluster:
    """Return the embedded server of `home`, running or not."""
    return Cluster(home / "postgres")


def embedded_dsn(home: Path, database: str, scheme: str = "postgresql") -> str:
    """Start the embedded server if it is down, create its databases, and return a URL."""
    cluster = embedded(home).start()
    with psycopg.connect(cluster.dsn("postgres"), autocommit=True) as connection:
        rows = connection.execute("select datname from pg_database").fetchall()
        for name in {MAIL, DAGSTER} - {row[0] for row in rows}:
            # another process may be first
            with contextlib.suppress(
                psycopg.errors.DuplicateDatabase, psycopg.errors.UniqueViolation
            ):
                connection.execute(sql.SQL("create database {}").format(sql.Identifier(name)))
    return cluster.dsn(database, scheme)


def retry_conflicts(transact: Callable[[], _T]) -> _T:
    """Call a function that makes one transaction, again where another transaction ended it."""
    for _ in range(TRIES - 1):
        with contextlib.suppress(*CONFLICTS):
            return transact()
    return transact()
