"""Sessions that are the same on every server: with the settings that our statements rely on.

By a statement after connecting, not by `options` of the DSN: those are the user's, and PgBouncer
refuses them.
"""

from typing import Any, TypeVar

import psycopg

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
