"""Checks of a user's own server: version, encoding, pooler and row-level security."""

import psycopg

from mail_assets.postgres.errors import PostgresError
from mail_assets.postgres.statements import statement

#: The oldest major version: the first with constraints that are `unique nulls not distinct`.
OLDEST = 15

#: Rounds in which a pooler may show itself, at four round trips each. A busy PgBouncer mostly shows
#: itself in the first two; with few clients one round in six shows nothing.
ROUNDS = 12


def check_server(connection: psycopg.Connection, dsn: str) -> None:
    """Check that a server fits.

    Raises:
        PostgresError: it is older than `OLDEST`; the database is not in UTF-8; a pooler gives its
            sessions, and with them the locks of a month, to others between transactions; or
            row-level security hides whole tables.
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
    """Check the number of a server's version as libpq has it: 150020 is 15.20."""
    if version < OLDEST * 10_000:
        raise PostgresError(
            f"the server of MAIL_PG_DSN is PostgreSQL {version // 10_000}; mail_assets needs "
            f"{OLDEST} or later: upgrade it, or unset MAIL_PG_DSN to use the embedded server"
        )


def shares_sessions(connection: psycopg.Connection, dsn: str) -> bool:
    """Return whether a pooler gives the server process of a connection to others.

    The process must stay the same while another connection begins transactions. A busy pooler may
    happen to leave it alone once: hence several rounds.
    """
    ours = _process(connection)
    with psycopg.connect(dsn, autocommit=True) as other:
        for _ in range(ROUNDS):
            with other.transaction():
                # the other's process first: in a pool with one process, ours would wait for it
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
    """Check that row-level security does not hide whole tables: they would look empty."""
    closed = connection.execute(statement("sessions", "closed_tables")).fetchall()
    if closed:
        tables, [role, *_] = zip(*closed, strict=True)
        raise PostgresError(
            f"row-level security hides all rows of {' and '.join(tables)} from the role {role}, as "
            "after `sql install --public`: let it read them (alter role ... bypassrls, or a policy "
            'on each table; docs/serving.md, "A role that only reads")'
        )
