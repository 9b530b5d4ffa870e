"""Lists by date: the newest or oldest messages that meet conditions, and how far they were sought.

The index of words finds messages with required words, an index of PostgreSQL those of few senders,
threads or names. Other messages are looked at from the newest, or oldest, on. Both stop at a limit:
no message may meet conditions that no index knows. Filters say which end is asked for (`oldest`).
"""

import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import psycopg

from mail_assets.postgres.statements import statement
from mail_assets.search.filters import MAX_WALKED, MessageFilter
from mail_assets.search.fulltext import DEEPER, ENOUGH, MAX_DEPTH, search_required
from mail_assets.search.look_up import LookedUp
from mail_assets.search.matches import Candidate, first_copies, read_copies


class Newest(NamedTuple):
    """Messages, newest or oldest first.

    `is_all`: no more are found, however many are asked for. `horizon`: messages at and beyond that
    moment were not all looked at.
    """

    candidates: list[Candidate]
    is_all: bool
    horizon: dt.datetime | None = None


@dataclass(frozen=True)
class NewestIds:
    """The ids of the newest, or oldest, messages with required words.

    `last` are the last of each language that has more.
    """

    message_ids: list[str]
    last: list[str]

    @property
    def complete(self) -> bool:
        """True if there are no others."""
        return not self.last


def list_newest(connection: psycopg.Connection, looked_up: LookedUp, most: int) -> Newest:
    """Return the newest, or oldest, messages that pass the filters, of `most` copies."""
    filters = looked_up.filters
    deepest = MAX_DEPTH
    depth = min(deepest, max(ENOUGH, most))
    while (ids := find_newest(connection, looked_up, depth)) is not None:
        copies = _read_named(connection, filters, ids.message_ids, most)
        if len(copies) >= most or ids.complete or depth == deepest:
            break
        depth = min(deepest, DEEPER * depth)
    if ids is not None:
        is_all = len(copies) < most
        # of several languages one may end before the others do
        is_cut = is_all or len(looked_up.query.by_language) > 1
        horizon = _find_last(connection, filters, ids) if is_cut else None
        return Newest(first_copies(copies), is_all, horizon)
    if looked_up.passing.ids is not None:
        copies = _read_named(connection, filters, looked_up.passing.ids, most)
        return Newest(first_copies(copies), len(copies) < most)
    copies = read_copies(connection, filters.walk(), "newest", most=most)
    if len(copies) < most and reads_little(connection, filters):
        copies = read_copies(connection, filters.find_by_index(), "newest", most=most)
    elif len(copies) < most:
        return Newest(first_copies(copies), True, find_horizon(connection, filters))
    return Newest(first_copies(copies), len(copies) < most)


def find_newest(connection: psycopg.Connection, looked_up: LookedUp, most: int) -> NewestIds | None:
    """Return the `most` newest messages of each language with the words that a query requires.

    None where a language requires none that the index knows: PostgreSQL finds these.
    """
    oldest_from = _find_first_time(connection, looked_up.filters)
    by_language = search_required(looked_up, most, oldest_from)
    if by_language is None:
        return None
    found = {match.message_id for matches in by_language for match in matches}
    last = [matches[-1].message_id for matches in by_language if len(matches) >= most]
    return NewestIds(sorted(found), last)


def _find_first_time(connection: psycopg.Connection, filters: MessageFilter) -> float | None:
    """Return when the first message was sent, None where the newest are asked for."""
    if not filters.oldest:
        return None
    row = connection.execute(filters.statement("first_sent"), filters.parameters).fetchone()
    return float(row[0].timestamp()) if row else 0.0


def reads_little(connection: psycopg.Connection, filters: MessageFilter) -> bool:
    """Return whether an index finds the messages that pass, and not many others."""
    if not filters.indexed or filters.index_finds_all:
        return bool(filters.indexed)
    found = filters.find_by_index()
    parameters = {**found.parameters, "most": MAX_WALKED + 1}
    row = connection.execute(found.statement("indexed_count"), parameters).fetchone()
    return row is not None and row[0] <= MAX_WALKED


def find_horizon(connection: psycopg.Connection, filters: MessageFilter) -> dt.datetime | None:
    """Return the moment before which a walk looks at all messages, None where it looks at all.

    "Before" is towards the beginning of the list: later of the newest, earlier of the oldest.
    """
    walked = filters.walk()
    row = connection.execute(walked.statement("horizon"), walked.parameters).fetchone()
    return row[0] if row else None


def find_last_day(horizon: dt.datetime, *, oldest: bool) -> dt.date:
    """Return the last day (UTC) that is looked at whole; of the oldest the first that is not."""
    day = horizon.astimezone(dt.UTC).date()
    return day if oldest else day + dt.timedelta(1)


def _find_last(
    connection: psycopg.Connection, filters: MessageFilter, ids: NewestIds
) -> dt.datetime | None:
    """Return the same for an index that named messages, None where it named all."""
    if ids.complete:
        return None
    parameters = {"message_ids": ids.last}
    row = connection.execute(statement("search", "last_sent"), parameters).fetchone()
    return row[0 if filters.oldest else 1] if row else None


def _read_named(
    connection: psycopg.Connection, filters: MessageFilter, ids: Iterable[str], most: int
) -> list[Candidate]:
    return read_copies(connection, filters.require_ids(ids), "newest", most=most)
