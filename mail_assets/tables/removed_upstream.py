"""What archives no longer hold: rows of removed_upstream, and of former_archives."""

import datetime as dt
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

import psycopg

from mail_assets.month import ListMonth
from mail_assets.postgres.statements import statement


class Vanished(NamedTuple):
    """A message that was noticed to be gone; its former archive is kept until `kept_until`, None
    where it is not kept any more.
    """

    month: ListMonth
    noticed_at: dt.datetime
    kept_until: dt.datetime | None


def record_vanished(
    connection: psycopg.Connection,
    month: ListMonth,
    messages: Mapping[str, str],
    former_key: str,
) -> None:
    """Record messages (digest -> Message-ID) that only a former archive holds."""
    rows = [
        {**month.columns, "digest": digest, "message_id": message_id, "former_key": former_key}
        for digest, message_id in messages.items()
    ]
    with connection.cursor() as cursor:
        cursor.executemany(statement("removed_upstream", "record"), rows)


def drop_returned(
    connection: psycopg.Connection, month: ListMonth, present: Collection[str]
) -> None:
    """Drop the rows of messages that the archive holds again."""
    rows = connection.execute(statement("removed_upstream", "digests"), month.columns).fetchall()
    returned = [digest for (digest,) in rows if digest in present]
    if returned:
        values = {**month.columns, "digests": returned}
        connection.execute(statement("removed_upstream", "forget_returned"), values)


def find_vanished(connection: psycopg.Connection, message_id: str) -> list[Vanished]:
    """Return where a message was and is no more."""
    values = {"message_id": message_id}
    rows = connection.execute(statement("removed_upstream", "of_message"), values).fetchall()
    return [Vanished(ListMonth(name, month), *times) for name, month, *times in rows]


def delete_vanished(
    connection: psycopg.Connection, message_ids: Iterable[str]
) -> list[tuple[ListMonth, str]]:
    """Drop what is recorded of messages that are forgotten; return the months and ids."""
    values = {"message_ids": [*message_ids]}
    rows = connection.execute(statement("removed_upstream", "delete_messages"), values).fetchall()
    return [(ListMonth(name, month), message_id) for name, month, message_id in rows]


def former_archives(
    connection: psycopg.Connection, removals: Collection[bytes], of_senders: bool
) -> dict[str, ListMonth]:
    """Return key -> month of the former archives of months that have lost what removals keep out.

    With `of_senders` of all that have lost anything: it is not known whose it was.
    """
    values = {"removals": [*removals], "of_senders": of_senders}
    rows = connection.execute(statement("removed_upstream", "former_of_lost"), values).fetchall()
    return {key: ListMonth(name, month) for key, name, month in rows}


def keep_former(connection: psycopg.Connection, month: ListMonth, key: str, days: int) -> None:
    """Record that the file of an archive was replaced now and is kept for some days."""
    values = {**month.columns, "object_key": key, "days": days}
    connection.execute(statement("removed_upstream", "keep_former"), values)


def kept_former(connection: psycopg.Connection, month: ListMonth) -> set[str]:
    """Return the keys of a month's former archives whose time is not over."""
    rows = connection.execute(
        statement("removed_upstream", "kept_former"), month.columns
    ).fetchall()
    return {key for (key,) in rows}


def find_former(connection: psycopg.Connection, keys: Collection[str]) -> list[str]:
    """Return those of some archives that are former ones, and no month's of now."""
    values = {"keys": [*keys]}
    rows = connection.execute(statement("removed_upstream", "former_among"), values).fetchall()
    return [key for (key,) in rows]


def expired_archives(connection: psycopg.Connection) -> dict[str, ListMonth]:
    """Return key -> month of the former archives whose time is over."""
    rows = connection.execute(statement("removed_upstream", "expired")).fetchall()
    return {key: ListMonth(name, month) for key, name, month in rows}


def replace_former(connection: psycopg.Connection, key: str, new_key: str) -> None:
    """Record that the file of a former archive was stored again under another key."""
    values = {"object_key": key, "new_key": new_key}
    with connection.transaction():
        connection.execute(statement("removed_upstream", "replace_former"), values)
        connection.execute(statement("removed_upstream", "replace_former_key"), values)
        drop_former(connection, key)


def drop_former(connection: psycopg.Connection, key: str) -> None:
    """Drop the row of a former archive whose file is gone."""
    connection.execute(statement("removed_upstream", "drop_former"), {"object_key": key})
