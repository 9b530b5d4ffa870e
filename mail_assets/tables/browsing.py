"""Read what leads from message to message: months of lists, neighbours in a thread, known ids."""

from collections.abc import Collection
from itertools import takewhile
from typing import NamedTuple

import psycopg

from mail_assets.month import ListMonth
from mail_assets.postgres.statements import statement
from mail_assets.text.letters import pair_letters

#: Characters that ids must begin with alike to be near; more are two thirds of a long one.
MIN_SHARED = 8


class Neighbours(NamedTuple):
    """The ids of the messages before and after one in its thread or list, None at the ends."""

    previous: str | None = None
    next: str | None = None


def count_months(connection: psycopg.Connection) -> dict[ListMonth, int]:
    """Return how many messages each month has that has any, by list and month."""
    rows = connection.execute(statement("browsing", "months")).fetchall()
    return {ListMonth(name, month): messages for name, month, messages in rows}


def find_newest_month(connection: psycopg.Connection) -> str | None:
    """Return the newest month that has a message, None where there is none."""
    row = connection.execute(statement("browsing", "newest_month")).fetchone()
    return row[0] if row else None


def find_newest_id(connection: psycopg.Connection) -> str | None:
    """Return the id of the newest message, None where there is none."""
    row = connection.execute(statement("browsing", "newest_id")).fetchone()
    return row[0] if row else None


def find_near_ids(connection: psycopg.Connection, message_id: str, most: int) -> list[str]:
    """Return ids of messages that begin like one that is in no archive, the most alike first."""
    parameters = {"id": message_id, "near": most}
    rows = connection.execute(statement("browsing", "near_ids"), parameters).fetchall()
    shared = {id: _count_shared(id, message_id) for (id,) in rows}
    least = max(MIN_SHARED, 2 * len(message_id) // 3)
    near = [id for id in shared if shared[id] >= min(least, len(message_id))]
    return sorted(near, key=lambda id: (-shared[id], id))[:most]


def find_known_ids(connection: psycopg.Connection, ids: Collection[str]) -> set[str]:
    """Return those that are ids of archived messages, and not the address of a sender as well."""
    if not ids:
        return set()
    rows = connection.execute(statement("browsing", "known_ids"), {"ids": [*ids]}).fetchall()
    return {message_id for (message_id,) in rows}


def find_archived_ids(connection: psycopg.Connection, ids: Collection[str]) -> set[str]:
    """Return those that are ids of archived messages."""
    rows = connection.execute(statement("browsing", "archived_ids"), {"ids": [*ids]}).fetchall()
    return {message_id for (message_id,) in rows}


def find_unknown_words(
    connection: psycopg.Connection, words: Collection[str], languages: Collection[str]
) -> list[str]:
    """Return those of the words that no message has; languages are those of PostgreSQL."""
    written = {pair_letters(word): word for word in words}
    parameters = {"words": [*written], "languages": [*languages]}
    rows = connection.execute(statement("browsing", "unknown_words"), parameters).fetchall()
    return [written[word] for (word,) in rows]


def read_neighbours(connection: psycopg.Connection, message_id: str) -> Neighbours:
    """Return the neighbours of a message in its thread; none where no thread was built yet."""
    parameters = {"message_id": message_id}
    row = connection.execute(statement("browsing", "neighbours"), parameters).fetchone()
    return Neighbours(*row) if row else Neighbours()


def read_list_neighbours(connection: psycopg.Connection, message_id: str) -> dict[str, Neighbours]:
    """Return the neighbours of a message by date, in each list that carries it."""
    parameters = {"message_id": message_id}
    rows = connection.execute(statement("browsing", "list_neighbours"), parameters).fetchall()
    return {name: Neighbours(*ids) for name, *ids in rows}


def _count_shared(one: str, other: str) -> int:
    """Return how many characters two texts begin with alike."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
