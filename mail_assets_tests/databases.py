"""Databases of tests; if only rows have changed, they are emptied for the next test.

PostgreSQL takes at least 0.3 s to copy a database, and 0.03 s to empty a filled one.
"""

import secrets
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

import psycopg
from psycopg import sql
from psycopg.pq import TransactionStatus

from mail_assets.postgres.database import Database
from mail_assets.postgres.embedded import Cluster
from mail_assets.tables.lists import EVERY_LIST, show_lists
from mail_assets_tests.waits import wait_until

#: The first OID of user objects.
FIRST_OWN = 16384

#: Catalogs, and the rows in them that a test can change.
DEFINITIONS = {
    **dict.fromkeys(("pg_proc", "pg_type", "pg_constraint", "pg_rewrite"), f"oid >= {FIRST_OWN}"),
    **dict.fromkeys(("pg_extension", "pg_trigger", "pg_policy"), "true"),
    **dict.fromkeys(("pg_attrdef", "pg_default_acl", "pg_event_trigger"), "true"),
    "pg_namespace": "nspname not like 'pg%temp%'",
    "pg_attribute": f"attrelid >= {FIRST_OWN}",
    "pg_index": f"indexrelid >= {FIRST_OWN}",
    "pg_description": f"objoid >= {FIRST_OWN}",
    "pg_statistic": f"starelid >= {FIRST_OWN}",
    "pg_db_role_setting": "setdatabase = (select oid from pg_database"
    " where datname = current_database())",
}

#: User relations, without the places of their rows and without statistics.
CLASSES = f"""
    select (oid, relname, relnamespace, relowner, relkind, relpersistence, relacl, reloptions,
            relrowsecurity, relforcerowsecurity, relkind = 'r' and reltuples >= 0)::text
      from pg_class where oid >= {FIRST_OWN}"""

FILLED = """
    select oid::regclass::text from pg_class
     where relkind = 'r' and relnamespace = 'public'::regnamespace and pg_relation_size(oid) > 0"""

END_SESSIONS = """
    select count(pg_terminate_backend(pid, 60000)) from pg_stat_activity
     where datname = current_database() and pid <> pg_backend_pid()"""


def new_database(cluster: Cluster, template: str = "template1", name: str = "") -> str:
    """Create a copy of a template database in a running cluster; return its DSN."""
    name = name or f"test_{secrets.token_hex(6)}"
    end_sessions(cluster.dsn(template))
    create = sql.SQL("create database {} template {} strategy file_copy")
    _execute_alone(cluster, create.format(sql.Identifier(name), sql.Identifier(template)))
    return cluster.dsn(name)


#: Free sessions by DSN, with the stack that closes them.
_free: defaultdict[str, list[tuple[psycopg.Connection, ExitStack]]] = defaultdict(list)


@contextmanager
def borrow_session(database: Database) -> Iterator[psycopg.Connection]:
    """Yield a connection that may show all lists; it is reused, unless an error ends it.

    A new session must read PostgreSQL's catalogs, which takes a quarter of a step's time.
    """
    free = _free[database.dsn]
    with ExitStack() as stack:
        connection, session = free.pop() if free else _begin_session(database)
        stack.push(session)
        show_lists(connection, EVERY_LIST)
        yield connection
        if connection.info.transaction_status == TransactionStatus.IDLE:
            stack.pop_all()
            free.append((connection, session))


def _begin_session(database: Database) -> tuple[psycopg.Connection, ExitStack]:
    session = ExitStack()
    return session.enter_context(database.connect("test")), session


def end_sessions(*dsns: str) -> None:
    """Close the free sessions of the given databases, or all."""
    for dsn in dsns or [*_free]:
        for _, session in _free.pop(dsn, ()):
            session.close()


def drop_database(cluster: Cluster, dsn: str) -> None:
    """Drop a database, also if sessions are connected."""
    end_sessions(dsn)
    drop = sql.SQL("drop database {} with (force)").format(sql.Identifier(database_name(dsn)))
    _execute_alone(cluster, drop)


def database_name(dsn: str) -> str:
    """Return the name in a DSN."""
    return str(psycopg.conninfo.conninfo_to_dict(dsn)["dbname"])


class Databases:
    """Copies of a template; its few rows count as definitions."""

    def __init__(self, cluster: Cluster, template: str) -> None:
        self._cluster, self._template = cluster, template
        self._spare: list[str] = []
        with psycopg.connect(cluster.dsn(template)) as connection:
            self._kept = _find_filled(connection)
            self._definitions = self._digest(connection)

    def take(self) -> str:
        """Return the DSN of an empty database, under a name that no test has used."""
        if not self._spare:
            return new_database(self._cluster, self._template)
        name = f"test_{secrets.token_hex(6)}"
        rename = sql.SQL("alter database {} rename to {}")
        used = sql.Identifier(self._spare.pop())
        _execute_alone(self._cluster, rename.format(used, sql.Identifier(name)))
        return self._cluster.dsn(name)

    def give_back(self, dsn: str) -> None:
        """Empty a database for the next test; drop it if more than rows have changed."""
        end_sessions(dsn)
        with suppress(psycopg.Error), psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute("set session_replication_role = replica")
            connection.execute(END_SESSIONS)
            if filled := _find_filled(connection) - self._kept:
                connection.execute(
                    f"truncate {', '.join(filled)} restart identity cascade".encode()
                )
            if self._digest(connection) == self._definitions:
                self._spare.append(database_name(dsn))
                return
        drop_database(self._cluster, dsn)

    def _digest(self, connection: psycopg.Connection) -> object:
        """Return a digest of all definitions.

        A changed row of a catalog has a new transaction id: reading only these takes half the time.
        """
        kept = [f"select one::text from {name} as one" for name in sorted(self._kept)]
        counts = [
            f"select concat_ws(' ', '{name}', count(*), max(xmin::text::bigint)) from {name}"
            f" where {of}"
            for name, of in DEFINITIONS.items()
        ]
        union = " union all ".join([CLASSES, *kept, *counts])
        query = f"select md5(string_agg(one, ' ' order by one)) from ({union}) as _ (one)"
        return connection.execute(query.encode()).fetchone()


def _find_filled(connection: psycopg.Connection) -> set[str]:
    return {name for (name,) in connection.execute(FILLED)}


def _execute_alone(cluster: Cluster, statement: sql.Composed) -> None:
    """Execute a statement that needs a database without sessions.

    PostgreSQL waits only 5 s for ending sessions, which can take longer on a busy machine.
    """

    def execute() -> bool:
        with psycopg.connect(cluster.dsn("postgres"), autocommit=True) as connection:
            try:
                connection.execute(statement)
            except psycopg.errors.ObjectInUse:
                return False
        return True

    wait_until(execute)


def dagster_url(dsn: str) -> str:
    """Return the URL of a database for Dagster's driver."""
    return dsn.replace("postgresql:", "postgresql+psycopg2:", 1)
