"""Read what leads from message to message: months of lists, neighbours in a thread, known ids."""

from collections.abc import Collection
from typing import NamedTuple

import psycopg

from mail_assets.month import ListMonth
from mail_assets.postgres.statements import statement


class Neighbours(NamedTuple):
    """The ids of the messages before and after one in its thread, None at its ends."""

    previous: str | None = None
    next: str | None = None


def count_months(connection: psycopg.Connection) -> dict[ListMonth, int]:
    """Return how many messages each month has that has any, by list and month."""
    rows = connection.execute(statement("browsing", "months")).fetchall()
    return {ListMonth(name, month): messages for name, month, messages in rows}


def find_known_ids(connection: psycopg.Connection, ids: Collection[str]) -> set[str]:
    """Return those that are ids of messages, archived or named by one."""
    if not ids:
        return set()
    rows = connection.execute(statement("browsing", "known_ids"), {"ids": [*ids]}).fetchall()
    return {message_id for (message_id,) in rows}


def read_neighbours(connection: psycopg.Connection, message_id: str) -> Neighbours:
    """Return the neighbours of a message in its thread; none where no thread was built yet."""
    parameters = {"message_id": message_id}
    row = connection.execute(statement("browsing", "neighbours"), parameters).fetchone()
    return Neighbours(*row) if row else Neighbours()
