"""Connections whose other end is gone are noticed within a minute, by the client and by the server.

A run holds session locks on its months. Where its machine is switched off, or the network between
is cut, no packet says so, and the system's defaults wait for two hours (tcp(7)).
https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-KEEPALIVES
"""

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from mail_assets.postgres.statements import statement

#: Seconds of silence, seconds between probes, probes: 30 + 3 * 10 = a minute.
_CLIENT = {"keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3}


def add_keepalives(dsn: str) -> str:
    """Return a DSN by which libpq looks whether the server is there; what it says itself wins."""
    return make_conninfo("", **{**_CLIENT, **conninfo_to_dict(dsn)})


def ask_keepalives(connection: psycopg.Connection) -> None:
    """Tell the server to look whether this client is there, while the session lasts."""
    connection.execute(statement("sessions", "keep_alive"))
