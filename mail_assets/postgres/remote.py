"""A server of the user's own: its version, characters and sessions, and whether it shows us rows.

What does not live here: connections that notice a dead host (keepalive.py).
"""

import psycopg

from mail_assets.postgres.errors import PostgresError
from mail_assets.postgres.statements import statement

#: The oldest major version: constraints that are `unique nulls not distinct`.
OLDEST = 15

#: How often a pooler is tempted, at four round trips each. PgBouncer with 2 to 35 busy clients gave
#: itself away in the first or second round of 375 trials; on a machine that did other work besides
#: once not in three, and in one of two runs of 50 trials once not in six.
ROUNDS = 12


def check_server(connection: psycopg.Connection, dsn: str) -> None:
    """Check that a server is fit: its version, its characters, its sessions, and what it shows us.

    Raises:
        PostgresError: it is older than `OLDEST`, or behind a pooler that gives sessions to others
            between transactions, and with them the locks of a month; or as of `check_encoding` and
            `check_rows`.
    """
    check_version(connection.info.server_version)
    check_encoding(connection)
    if shares_sessions(connection, dsn):
        raise PostgresError(
            "the server of MAIL_PG_DSN is behind a pooler that shares sessions (PgBouncer: "
            "pool_mode = transaction): locks and prepared statements need sessions of our own; "
            "set pool_mode = session for this database, or name the server itself"
        )
    check_rows(connection)


def check_encoding(connection: psycopg.Connection) -> None:
    """Check that a database can hold every character.

    Raises:
        PostgresError: it cannot, or does not know where a character ends (SQL_ASCII).
    """
    row = connection.execute(statement("sessions", "encoding")).fetchone()
    if row and row[0] != "UTF8":
        name = connection.info.dbname
        raise PostgresError(
            f"the database {name} of MAIL_PG_DSN has the encoding {row[0]}, and mail is written in "
            "all scripts: use one with UTF8 (create database ... encoding 'UTF8' template "
            "template0)"
        )


def check_rows(connection: psycopg.Connection) -> None:
    """Check that row-level security does not hide whole tables from the user of a connection.

    Raises:
        PostgresError: it does; they would be taken for empty.
    """
    closed = connection.execute(statement("sessions", "closed_tables")).fetchall()
    if closed:
        tables, [role, *_] = zip(*closed, strict=True)
        raise PostgresError(
            f"row-level security hides all rows of {' and '.join(tables)} from the role {role}, as "
            "after `sql install --public`: let it read them (alter role ... bypassrls, or a policy "
            'on each table; docs/serving.md, "A role that only reads")'
        )


def shares_sessions(connection: psycopg.Connection, dsn: str) -> bool:
    """Return whether a pooler gives the process behind a connection to others.

    The process must stay the same while another connection begins transactions and keeps what it
    was given. A busy pooler may happen to leave it alone once: hence several rounds.
    """
    ours = _process(connection)
    with psycopg.connect(dsn, autocommit=True) as other:
        for _ in range(ROUNDS):
            with other.transaction():
                # its own first: where the pool has one process only, ours would wait for it
                if _process(other) == ours or _process(connection) != ours:
                    return True
    return False


def check_version(version: int) -> None:
    """Check the number of a server's version, as libpq has it: 150020 is 15.20.

    Raises:
        PostgresError: it is older than `OLDEST`.
    """
    if version < OLDEST * 10_000:
        raise PostgresError(
            f"the server of MAIL_PG_DSN is PostgreSQL {version // 10_000}; mail_assets needs "
            f"{OLDEST} or later: upgrade it, or unset MAIL_PG_DSN to use the embedded server"
        )


def _process(connection: psycopg.Connection) -> int:
    """Return the server's process that answers a connection, which a pooler may change."""
    row = connection.execute(statement("sessions", "process")).fetchone()
    return int(row[0]) if row else 0
