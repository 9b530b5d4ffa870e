"""Connections whose other end is gone are noticed within a minute, by the client and by the server.

What does not live here: what the server is asked for (sql/sessions.sql).

A run holds session locks on its months. Where its machine is switched off, or the network between
is cut, no packet says so, and the system's defaults wait for two hours (tcp(7)).
https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-KEEPALIVES
"""

from psycopg.conninfo import conninfo_to_dict, make_conninfo

#: Seconds of silence, seconds between probes, probes: 30 + 3 * 10 = a minute.
_CLIENT = {"keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3}


def add_keepalives(dsn: str) -> str:
    """Return a DSN by which libpq looks whether the server is there; what it says itself wins."""
    return make_conninfo("", **{**_CLIENT, **conninfo_to_dict(dsn)})
