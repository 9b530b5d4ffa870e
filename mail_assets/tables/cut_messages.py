"""The rows of cut_messages: what was cut out of the stored archives, for entries in removals."""

from collections.abc import Collection, Iterable
from typing import NamedTuple

import psycopg

from mail_assets.mail.message.forgotten import Forgotten
from mail_assets.month import ListMonth
from mail_assets.postgres.statements import statement
from mail_assets.tables.forget_keys import KeySource
from mail_assets.tables.removals import read_forgotten


class CutMessage(NamedTuple):
    """A message that the stored archive of a month no longer has.

    `message_digest` is None where a stored message has the id too, which stays visible.
    """

    removal: bytes
    message_digest: bytes | None
    key_prefix: str


def read_cut(connection: psycopg.Connection, source: KeySource) -> Forgotten:
    """Return what archives are stored without; `ids` are those of all that is forgotten.

    Raises:
        ForgetKeyError: this machine has not the key of the digests.
    """
    forgotten = read_forgotten(connection, source)
    rows = connection.execute(statement("cut_messages", "forgotten")).fetchall()
    return forgotten._replace(
        messages=frozenset(digest for message, digest in rows if message),
        senders=frozenset(digest for message, digest in rows if not message),
    )


def record_cut(
    connection: psycopg.Connection, month: ListMonth, messages: Iterable[CutMessage]
) -> None:
    """Add messages that were cut out of the archive of a month."""
    with connection.cursor() as cursor:
        cursor.executemany(
            statement("cut_messages", "record"),
            [{**month.columns, **message._asdict()} for message in messages],
        )


def drop_reused(connection: psycopg.Connection, month: ListMonth) -> None:
    """Drop what a month has lost whose keys are those of a message that is stored in its place."""
    connection.execute(statement("cut_messages", "drop_reused"), month.columns)


def uncut_months(connection: psycopg.Connection, removals: Collection[bytes]) -> list[ListMonth]:
    """Return the months whose archive holds what is to be cut out of it.

    Of months of which something was cut out before for some `removals`, or that have lost it, any
    file may hold that again: one of before was restored, say.
    """
    parameters = {"removals": [*removals]}
    rows = connection.execute(statement("cut_messages", "uncut_months"), parameters).fetchall()
    return [ListMonth(*row) for row in rows]


def months_left_out(connection: psycopg.Connection, removals: Collection[bytes]) -> list[ListMonth]:
    """Return the months that leave something out for some removals."""
    parameters = {"removals": [*removals]}
    rows = connection.execute(statement("cut_messages", "months_left_out"), parameters).fetchall()
    return [ListMonth(*row) for row in rows]


def months_holding(connection: psycopg.Connection, removals: Collection[bytes]) -> list[ListMonth]:
    """Return the months whose archive holds what some removals keep out."""
    parameters = {"removals": [*removals]}
    rows = connection.execute(statement("cut_messages", "months_holding"), parameters).fetchall()
    return [ListMonth(*row) for row in rows]
