"""Connect to the mail database, on the user's own server or on the embedded one.

The user's server is checked first. The embedded server is started if it is down. Databases are
created and migrated. Statements that read and write mail are in mail_assets/tables.

Sessions are set up by a statement after connecting, not by `options` in the DSN: the user may set
these, and PgBouncer refuses them.
"""

import contextlib
import functools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from mail_assets.environment import VARIABLES
from mail_assets.postgres.embedded import Cluster
from mail_assets.postgres.programs import PostgresError
from mail_assets.postgres.statements import migrate, statement

#: Oldest supported major version: the first with `unique nulls not distinct`.
OLDEST = 15

#: Rounds of the test for a pooler, with four round trips each. A busy PgBouncer is usually detected
#: in the first two; with few clients, one round in six does not detect it.
ROUNDS = 12


def _check_server(connection: psycopg.Connection, dsn: str) -> None:
    """Check that mail_assets can use a server.

    Raises:
        PostgresError: the server is older than `OLDEST`; the database is not in UTF-8; a pooler
            gives sessions, and with them the locks of a month, to other clients between
            transactions; or row-level security hides whole tables.
    """
    check_version(connection.info.server_version)
    _check_encoding(connection)
    if shares_sessions(connection, dsn):
        raise PostgresError(
            "the server of MAIL_PG_DSN is behind a pooler that shares sessions (PgBouncer: "
            "pool_mode = transaction): locks and prepared statements need sessions of our own; "
            "set pool_mode = session for this database, or name the server itself"
        )
    check_rows(connection)


def check_version(version: int) -> None:
    """Check a server's version number in the form of libpq: 150020 is 15.20."""
    if version < OLDEST * 10_000:
        raise PostgresError(
            f"the server of MAIL_PG_DSN is PostgreSQL {version // 10_000}; mail_assets needs "
            f"{OLDEST} or later: upgrade it, or unset MAIL_PG_DSN to use the embedded server"
        )


def shares_sessions(connection: psycopg.Connection, dsn: str) -> bool:
    """Return whether a pooler shares the server process of a connection with other clients.

    The process must stay the same while another connection begins transactions. With a pooler it
    may stay the same by chance, so several rounds are tried.
    """
    ours = _process(connection)
    with psycopg.connect(dsn, autocommit=True) as other:
        for _ in range(ROUNDS):
            with other.transaction():
                # the other connection first: in a pool with one process, ours would wait for it
                if _process(other) == ours or _process(connection) != ours:
                    return True
    return False


def _process(connection: psycopg.Connection) -> int:
    row = connection.execute(statement("sessions", "process")).fetchone()
    return int(row[0]) if row else 0


def _check_encoding(connection: psycopg.Connection) -> None:
    row = connection.execute(statement("sessions", "encoding")).fetchone()
    if row and row[0] != "UTF8":
        name = connection.info.dbname
        raise PostgresError(
            f"the database {name} of MAIL_PG_DSN has the encoding {row[0]}, and mail is written in "
            "all scripts: use one with UTF8 (create database ... encoding 'UTF8' template "
            "template0)"
        )


def check_rows(connection: psycopg.Connection) -> None:
    """Check that row-level security does not hide whole tables, which would look empty."""
    closed = connection.execute(statement("sessions", "closed_tables")).fetchall()
    if closed:
        tables, [role, *_] = zip(*closed, strict=True)
        raise PostgresError(
            f"row-level security hides all rows of {' and '.join(tables)} from the role {role}, as "
            "after `sql install --public`: let it read them (alter role ... bypassrls, or a policy "
            'on each table; docs/serving.md, "A role that only reads")'
        )


_T = TypeVar("_T")
_Connection = TypeVar("_Connection", bound=psycopg.Connection[Any])

#: Databases of the embedded server: mail, and Dagster's storage.
MAIL, DAGSTER = "mail", "dagster"

#: A run holds session locks on its months. If its machine dies, no packet reports it, and the
#: system's defaults wait for two hours. With these settings (seconds of silence, seconds between
#: probes, number of probes) it takes 30 + 3 * 10 s = a minute. sql/sessions.sql sets the same on
#: the server.
#: https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-KEEPALIVES
_KEEPALIVES = {"keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3}

#: Seconds until a server that does not answer counts as down; psycopg's default is 130.
CONNECT_TIMEOUT = 10

#: Errors caused by another transaction; a retry may succeed once that has ended.
CONFLICTS = (psycopg.errors.SerializationFailure, psycopg.errors.DeadlockDetected)

#: A value that an error of the server quotes; names have at most 63 bytes.
_LONG_VALUE = re.compile(r'"[^"]{64,}"?')
#: Most characters of such an error.
_LONGEST = 400

#: Attempts; two are not enough, because a busy backfill commits a month every few seconds.
TRIES = 5


@dataclass(frozen=True)
class Database:
    """The mail database at `dsn`, or in the embedded server below `home` if `dsn` is empty."""

    home: Path
    dsn: str = field(default="", repr=False)

    @property
    def embedded(self) -> bool:
        """True for a database in the embedded server."""
        return not self.dsn

    def url(self) -> str:
        """Return the database's DSN; start the embedded server if it is used."""
        return self.dsn or embedded_dsn(self.home, MAIL)

    @contextlib.contextmanager
    def connect(self, role: str, run: str = "") -> Iterator[psycopg.Connection]:
        """Yield a connection in autocommit mode; the caller opens transactions.

        The session's name has `role` ("messages", "search", ...) and `run`, the Dagster run, so
        that a slow query in pg_stat_activity can be traced to them.

        Raises:
            psycopg.OperationalError: the server does not answer.
            PostgresError: the embedded server does not start, or the user's own cannot be used.
            MigrationError: the database does not fit this version.
        """
        name = "/".join(filter(None, ("mail_assets", role, run)))[:63]
        with self._open(name) as connection:
            yield connection

    def _open(self, name: str) -> psycopg.Connection:
        if self.dsn:
            return _connect(add_defaults(_ready_dsn(self.home, self.dsn)), name)
        try:
            return _connect(_ready_dsn(self.home, ""), name)
        except psycopg.OperationalError:  # the server was stopped after this process started it
            _ready_dsn.cache_clear()
            return _connect(_ready_dsn(self.home, ""), name)


@functools.cache
def _ready_dsn(home: Path, dsn: str) -> str:
    """Return the DSN of a running database with all tables; checked once per process."""
    found = dsn or embedded_dsn(home, MAIL)
    with _connect(add_defaults(found), "mail_assets/migrate") as connection:
        if dsn:
            _check_server(connection, found)
        migrate(connection)
    return found


def _connect(dsn: str, name: str) -> psycopg.Connection:
    return begin_session(MailConnection.connect(dsn, autocommit=True, application_name=name))


class MailConnection(psycopg.Connection[Any]):
    """A connection whose errors have no values, because mail must not get into logs and events."""

    def wait(self, *args: Any, **options: Any) -> Any:
        """Wait for the server as psycopg does."""
        try:
            return super().wait(*args, **options)
        except psycopg.Error as error:
            if error.diag.message_primary:
                error.args = (_say_error(error.diag),)
            raise


def _say_error(diag: psycopg.errors.Diagnostic) -> str:
    """Return the message of an error of the server, without quoted values and its detail."""
    said = _LONG_VALUE.sub('"..."', " ".join((diag.message_primary or "").split()))
    names = [("table", diag.table_name), ("column", diag.column_name)]
    names.append(("constraint", diag.constraint_name))
    where = "".join(f", {kind} {name}" for kind, name in names if name)
    hint = f"; {' '.join(diag.message_hint.split())}" if diag.message_hint else ""
    return f"{said[:_LONGEST]} (SQLSTATE {diag.sqlstate}{where}){hint[:_LONGEST]}"


def begin_session(connection: _Connection) -> _Connection:
    """Set up a new connection in autocommit mode with our settings, in one round trip."""
    try:
        connection.execute(statement("sessions", "begin"))
    except BaseException:
        connection.close()
        raise
    return connection


def add_defaults(dsn: str) -> str:
    """Add timeouts to a DSN, so that a dead server is noticed; settings in the DSN win."""
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
            # another process may create it first
            with contextlib.suppress(
                psycopg.errors.DuplicateDatabase, psycopg.errors.UniqueViolation
            ):
                connection.execute(sql.SQL("create database {}").format(sql.Identifier(name)))
    return cluster.dsn(database, scheme)


def retry_conflicts(transact: Callable[[], _T]) -> _T:
    """Call a function that runs one transaction; retry it if another transaction aborted it."""
    for _ in range(TRIES - 1):
        with contextlib.suppress(*CONFLICTS):
            return transact()
    return transact()
