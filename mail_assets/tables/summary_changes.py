"""Which threads have changed since they were summarized; triggers note them."""

from collections.abc import Collection
from typing import NamedTuple

import psycopg

from mail_assets.postgres.statements import statement


class ThreadContent(NamedTuple):
    """What a summary is made of: archived messages, characters of their texts, a hash of all."""

    thread_id: str
    messages: int
    characters: int
    content_hash: bytes


def are_summaries_outdated(connection: psycopg.Connection) -> bool:
    """Return whether a thread has changed since summaries were made, or none ever were."""
    row = connection.execute(statement("thread_summaries", "are_outdated")).fetchone()
    return bool(row and row[0])


def change_all_threads(connection: psycopg.Connection) -> None:
    """Note all threads as changed, inside a transaction."""
    connection.execute(statement("thread_summaries", "change_all"))


def read_changes(
    connection: psycopg.Connection, behind: str, last: str | None, most: int
) -> list[str]:
    """Return so many of the threads that have changed, those behind an id, in order.

    None is behind `last`, where it is not None.
    """
    parameters = {"behind": behind, "until": last, "most": most}
    rows = connection.execute(statement("thread_summaries", "next_changes"), parameters)
    return [thread_id for (thread_id,) in rows.fetchall()]


def count_changes(connection: psycopg.Connection, last: str | None = None) -> int:
    """Return how many threads have changed since they were summarized, of those up to `last`."""
    query = statement("thread_summaries", "count_changes")
    row = connection.execute(query, {"until": last}).fetchone()
    return int(row[0]) if row else 0


def find_nth_change(connection: psycopg.Connection, number: int) -> str:
    """Return the nth of the threads that have changed, in their order, or their last; else ""."""
    query = statement("thread_summaries", "find_nth_change")
    row = connection.execute(query, {"number": number}).fetchone()
    return str(row[0]) if row else ""


def take_changes(connection: psycopg.Connection, threads: Collection[str]) -> None:
    """Note some threads as unchanged, inside a transaction; what comes meanwhile stays noted."""
    parameters = {"threads": [*threads]}
    connection.execute(statement("thread_summaries", "take_changes"), parameters)


def note_changes(connection: psycopg.Connection, threads: Collection[str]) -> None:
    """Note some threads as changed."""
    parameters = {"threads": [*threads]}
    connection.execute(statement("thread_summaries", "note_changes"), parameters)


def read_contents(
    connection: psycopg.Connection, threads: Collection[str]
) -> dict[str, ThreadContent]:
    """Return of what the summaries of some threads would be made now, those without mail left out.

    The texts stay where they are.
    """
    parameters = {"threads": [*threads]}
    rows = connection.execute(statement("thread_summaries", "contents"), parameters).fetchall()
    return {row[0]: ThreadContent(*row) for row in rows}
