"""Find faults of the mail database in its system catalogs and the states of its months."""

import datetime as dt
from collections.abc import Collection, Mapping
from typing import NamedTuple

import psycopg

from mail_assets.month import ListMonth
from mail_assets.postgres.statements import read_as, read_column, read_value, statement
from mail_assets.tables.kept_rows import KEPT, REMADE

#: Newest days with mail from which the usual gap of a list is taken; examine.py needs 10.
DAYS = 200


class IdleLock(NamedTuple):
    """A session that holds a lock and has been idle since `since`."""

    pid: int
    name: str
    since: dt.datetime


class LeftList(NamedTuple):
    """A stored list that lists.toml does not name, with its months and messages."""

    name: str
    months: int
    messages: int


def find_left_lists(connection: psycopg.Connection, lists: Collection[str]) -> list[LeftList]:
    """Return the lists that have messages and are not among `lists`."""
    return read_as(connection, LeftList, statement("health", "left_lists"), {"lists": [*lists]})


def find_other_lists(connection: psycopg.Connection, languages: Mapping[str, str]) -> list[str]:
    """Return lists whose row differs from lists.toml; `languages`: published list -> language."""
    given = {"lists": [*languages], "languages": [*languages.values()]}
    return read_column(connection, statement("health", "other_lists"), given)


class Silence(NamedTuple):
    """The last day with mail, the usual gap in days between two, and the `days` examined."""

    name: str
    last: dt.date
    days: int
    gap: int


def read_silences(
    connection: psycopg.Connection, lists: Collection[str], now: dt.datetime
) -> list[Silence]:
    """Return the last day of each list with mail; dates in the future do not count."""
    parameters = {"lists": [*lists], "now": now, "days": DAYS}
    return read_as(connection, Silence, statement("health", "silences"), parameters)


def find_months_outside(
    connection: psycopg.Connection, lists: Collection[str], first: str, last: str
) -> list[ListMonth]:
    """Return the months with mail that are before the first month or after the last one."""
    parameters = {"lists": [*lists], "first": first, "last": last}
    return read_as(connection, ListMonth, statement("health", "months_outside"), parameters)


def find_lacking_extensions(
    connection: psycopg.Connection, names: Collection[str]
) -> dict[str, bool]:
    """Return the missing extensions -> True if the server can install it."""
    query = statement("health", "lacks_extensions")
    return dict(connection.execute(query, {"names": [*names]}).fetchall())


def find_other_defaults(
    connection: psycopg.Connection, defaults: Mapping[str, str]
) -> list[ListMonth]:
    """Return the months whose mail was read with another language or charset than the list's.

    `defaults` maps lists to their defaults, in the form that the inputs of months have.
    """
    parameters = {"lists": [*defaults], "defaults": [*defaults.values()]}
    return read_as(connection, ListMonth, statement("health", "other_defaults"), parameters)


def find_behind(connection: psycopg.Connection, index_name: str = "") -> dict[ListMonth, str]:
    """Return month -> the first asset to make again, for months older than their archives.

    `index_name` is the vector index in the manifest; "" means the one that was filled last.
    """
    rows = connection.execute(statement("health", "behind"), {"index_name": index_name}).fetchall()
    return {ListMonth(name, month): asset for name, month, asset in rows}


def find_without_statistics(connection: psycopg.Connection) -> list[str]:
    """Return the tables that are not small and have no statistics for the planner."""
    query = statement("health", "without_statistics")
    return read_column(connection, query, {"tables": [*{*KEPT, *REMADE}]})


def find_idle_locks(connection: psycopg.Connection, seconds: float) -> list[IdleLock]:
    """Return the sessions that hold a lock and have been idle for `seconds`."""
    return read_as(connection, IdleLock, statement("health", "idle_locks"), {"seconds": seconds})


def read_server_version(connection: psycopg.Connection) -> str:
    """Return the version of the running server, such as "18.6"."""
    return str(read_value(connection, statement("health", "server_version"))).split()[0]
