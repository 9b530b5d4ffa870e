"""Versions of one patch among hits, and the one that stands for all of them.

The version that was applied stands for the others, else the newest one by no stranger. In
results grouped by conversation the others are folded into it where they are in other threads
(conversations.py): a reader of the thread sees its own.
"""

from collections.abc import Sequence
from typing import NamedTuple

import psycopg

from mail_assets.postgres.statements import planned_once, statement


class FoundVersion(NamedTuple):
    """A mail that has a version of a patch; of one `patch` the greatest stands for all.

    `is_named`: the query names this version. `is_own`: by no stranger.
    """

    patch: tuple[str, int]
    is_named: bool
    is_applied: bool
    is_own: bool
    posting: int
    message_id: str


def find_versions(
    connection: psycopg.Connection, message_ids: Sequence[str], *, every: bool = False
) -> dict[str, FoundVersion]:
    """Return the mails among some that have versions of one patch, by their ids.

    With `every` those versions too that are not among these mails.
    """
    query = statement("search_patches", "found_versions")
    if every:
        query = statement("search_patches", "versions_of")
    with connection.pipeline(), planned_once(connection):
        asked = connection.execute(query, {"message_ids": [*message_ids]})
    return {
        row[0]: FoundVersion((row[1], row[2]), False, row[4], row[5], row[3], row[0])
        for row in asked.fetchall()
    }
