"""The newest messages that meet conditions, and how far back was looked for them.

An index of words names those with required words, and PostgreSQL's those of few. All others are
looked at from the newest on, so many and no more: what no index knows may be in none of them.
"""

import datetime as dt
from typing import NamedTuple

import psycopg

from mail_assets.search.candidates import Candidate, first_copies, read_copies
from mail_assets.search.field_conditions import FieldCondition
from mail_assets.search.filters import MAX_WALKED, MessageFilter
from mail_assets.search.fulltext_leg import DEEPER, ENOUGH, find_newest, max_depth
from mail_assets.search.look_up import LookedUp


class Newest(NamedTuple):
    """Messages, newest first; `looked_back_to`: those before that day were not looked at."""

    candidates: list[Candidate]
    looked_back_to: dt.date | None = None


def list_newest(connection: psycopg.Connection, looked_up: LookedUp, most: int) -> Newest:
    """Return the newest messages that pass the filters, `most` copies of them.

    Raises:
        WordsError: the index of words is missing or fails.
    """
    filters = looked_up.filters
    depth = ENOUGH
    while (ids := find_newest(looked_up, depth)) is not None:
        named = filters.require_field(FieldCondition("ids", ids.message_ids))
        newest = first_copies(read_copies(connection, named, "newest", most=most))
        if len(newest) >= most or ids.complete or depth >= max_depth(looked_up.query):
            return Newest(newest)
        depth *= DEEPER
    if looked_up.passing is not None:
        named = filters.require_field(FieldCondition("ids", [*looked_up.passing]))
        return Newest(first_copies(read_copies(connection, named, "newest", most=most)))
    copies = read_copies(connection, filters.walk(), "newest", most=most)
    if len(copies) < most and reads_little(connection, filters):
        copies = read_copies(connection, filters.find_by_index(), "newest", most=most)
    elif len(copies) < most:
        return Newest(first_copies(copies), find_horizon(connection, filters))
    return Newest(first_copies(copies))


def reads_little(connection: psycopg.Connection, filters: MessageFilter) -> bool:
    """Say whether an index finds the messages that pass, and not many others."""
    if not filters.indexed or filters.index_finds_all:
        return bool(filters.indexed)
    found = filters.find_by_index()
    parameters = {**found.parameters, "most": MAX_WALKED + 1}
    row = connection.execute(found.statement("indexed_count"), parameters).fetchone()
    return row is not None and row[0] <= MAX_WALKED


def find_horizon(connection: psycopg.Connection, filters: MessageFilter) -> dt.date | None:
    """Return the first day (UTC) that a walk looks at whole, None where it looks at all."""
    walked = filters.walk()
    row = connection.execute(walked.statement("horizon"), walked.parameters).fetchone()
    return row[0].astimezone(dt.UTC).date() + dt.timedelta(1) if row else None
