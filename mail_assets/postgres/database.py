"""Connections to the mail database: the user's own server, or the embedded one.

Whoever asks for a connection gets one: the embedded server is started if it is down, its databases
are created and migrated. What does not live here: what is read and written (mail_assets/tables).

[session] Sessions that are the same on every server: with the settings that our statements rely on.

By a statement after connecting, not by `options` of the DSN: those are the user's, and PgBouncer
refuses them.

[keepalive] Connections whose other end is gone are noticed within a minute, by the client and by the server.

What does not live here: what the server is asked for (sql/sessions.sql).

A run holds session locks on its months. Where its machine is switched off, or the network between
is cut, no packet says so, and the system's defaults wait for two hours (tcp(7)).
https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-KEEPALIVES

[conflicts] Transactions that the server ends for the sake of another: they are made again.
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

from mail_assets.postgres.embedded import Cluster
from mail_assets.postgres.migrations import migrate
from mail_assets.postgres.remote import check_server
from mail_assets.postgres.statements import statement

Connection = TypeVar("Connection", bound=psycopg.Connection[Any])


def begin_session(connection: Connection) -> Connection:
    """Return a new connection in autocommit mode, set up in one round trip."""
    try:
        connection.execute(statement("sessions", "begin"))
    except BaseException:
        connection.close()
        raise
    return connection


#: Seconds of silence, seconds between probes, probes: 30 + 3 * 10 = a minute.
_CLIENT = {"keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3}


def add_keepalives(dsn: str) -> str:
    """Return a DSN by which libpq looks whether the server is there; what it says itself wins."""
    return make_conninfo("", **{**_CLIENT, **conninfo_to_dict(dsn)})


#: The databases of the embedded server: ours, and Dagster's own storage.
MAIL, DAGSTER = "mail", "dagster"


@dataclass(frozen=True)
class Database:
    """The mail database at `dsn`, or in the embedded server below `home`.

    `role` is who connects ("messages", "search", ...), and `run` the Dagster run, so that
    a slow query in pg_stat_activity leads back to them.
    """

    home: Path
    dsn: str = field(default="", repr=False)

    @property
    def embedded(self) -> bool:
        """Whether the database is in the embedded server."""
        return not self.dsn

    def url(self) -> str:
        """Return the database's DSN; the embedded server is started for it."""
        return self.dsn or embedded_dsn(self.home, MAIL)

    @contextlib.contextmanager
    def connect(self, role: str, run: str = "") -> Iterator[psycopg.Connection]:
        """Yield a connection in autocommit mode: a transaction begins where one is opened.

        Raises:
            psycopg.OperationalError: the server does not answer.
            PostgresError: the embedded server does not start, or the user's own is not fit.
        """
        name = "/".join(filter(None, ("mail_assets", role, run)))[:63]
        with self._open(name) as connection:
            yield connection

    def _open(self, name: str) -> psycopg.Connection:
        """Open a connection; the embedded server is looked at once, and again where it is gone."""
        if not self.embedded:
            return _connect(add_keepalives(self._ready_dsn()), name)
        try:
            return _connect(self._ready_dsn(), name)
        except psycopg.OperationalError:
            _migrated_dsn.cache_clear()
            return _connect(self._ready_dsn(), name)

    def _ready_dsn(self) -> str:
        return _migrated_dsn(self.home, self.dsn)


@functools.cache
def embedded(home: Path) -> Cluster:
    """Return the embedded server of `home`, running or not."""
    return Cluster(home / "postgres")


def embedded_dsn(home: Path, database: str, scheme: str = "postgresql") -> str:
    """Start the embedded server if it is down, create its databases, return a URL."""
    cluster = embedded(home).start()
    with psycopg.connect(cluster.dsn("postgres"), autocommit=True) as connection:
        _create_databases(connection)
    return cluster.dsn(database, scheme)


def _create_databases(connection: psycopg.Connection) -> None:
    rows = connection.execute("select datname from pg_database").fetchall()
    for name in {MAIL, DAGSTER} - {row[0] for row in rows}:
        with contextlib.suppress(psycopg.errors.DuplicateDatabase, psycopg.errors.UniqueViolation):
            connection.execute(sql.SQL("create database {}").format(sql.Identifier(name)))


@functools.cache
def _migrated_dsn(home: Path, dsn: str) -> str:
    """Return the DSN of a database that runs and has all tables; looked at once per process."""
    found = dsn or embedded_dsn(home, MAIL)
    with _connect(found, "mail_assets/migrate") as c:
        if dsn:
            check_server(c, found)
        migrate(c)
    return found


def _connect(dsn: str, name: str) -> psycopg.Connection:
    return begin_session(psycopg.connect(dsn, autocommit=True, application_name=name))


_T = TypeVar("_T")

#: What another transaction is the cause of; where this one is made again, that one is over.
CONFLICTS = (psycopg.errors.SerializationFailure, psycopg.errors.DeadlockDetected)

#: The other may be followed by more of its kind: a busy backfill commits a month every few seconds.
TRIES = 5


def retry_conflicts(transact: Callable[[], _T]) -> _T:
    """Call a function whose one transaction can be made again, until no other stands in its way.

    Raises:
        psycopg.OperationalError: others stood in its way `TRIES` times; this is the last of them.
    """
    for _ in range(TRIES - 1):
        with contextlib.suppress(*CONFLICTS):
            return transact()
    return transact()
