"""Lists by date: the newest or oldest messages that meet conditions, or their threads, as rows.

The word index finds messages with required words, an index of PostgreSQL those of few senders,
threads or names. Other messages are walked: read from the newest (or oldest) on and checked one by
one. Both ways stop at a limit. `oldest` of the filters chooses the end that comes first.

A thread is placed by its newest (or oldest) matching message, and has all its matching messages. So
a row is the same on pages of any size. A page deep in the list need not read the rows before it:
a thread whose first message is before the page was shown there. Versions of one patch in different
threads are one hit, at the place of the version that represents them (matches.py).
"""

import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import psycopg

from mail_assets.postgres.statements import statement
from mail_assets.search.filters import MAX_WALKED, MessageFilter, Place
from mail_assets.search.fulltext import DEEPER, ENOUGH, MAX_DEPTH, PAGE_DEPTH, search_required
from mail_assets.search.look_up import LookedUp
from mail_assets.search.matches import Candidate, find_versions, first_copies, read_copies


class Newest(NamedTuple):
    """Messages, newest or oldest first; `is_all`: a larger limit would find no more.

    `horizon`: not all messages at and beyond this moment were read.
    """

    candidates: list[Candidate]
    is_all: bool
    horizon: dt.datetime | None = None


@dataclass(frozen=True)
class NewestIds:
    """The ids of the newest, or oldest, messages with required words.

    `last` has the last message of each language that has more.
    """

    message_ids: list[str]
    last: list[str]

    @property
    def complete(self) -> bool:
        """True if there are no others."""
        return not self.last


def list_newest(connection: psycopg.Connection, looked_up: LookedUp, most: int) -> Newest:
    """Return the newest, or oldest, messages that pass the filters; reads at most `most` copies."""
    filters = looked_up.filters
    if looked_up.passing.says_all:
        return _list_named(connection, looked_up, most)
    deepest = MAX_DEPTH
    depth = min(deepest, max(ENOUGH, most))
    while (ids := find_newest(connection, looked_up, depth)) is not None:
        copies = _read_named(connection, filters, ids.message_ids, most)
        if len(copies) >= most or ids.complete or depth == deepest:
            break
        depth = min(deepest, DEEPER * depth)
    if ids is not None:
        is_all = len(copies) < most
        # one of several languages may end before the others
        is_cut = is_all or len(looked_up.query.by_language) > 1
        horizon = _find_last(connection, filters, ids) if is_cut else None
        return Newest(first_copies(copies), is_all, horizon)
    if looked_up.passing.ids is not None:
        return _list_named(connection, looked_up, most)
    copies = read_copies(connection, filters.walk(), "newest", most=most)
    if len(copies) < most and reads_little(connection, filters):
        copies = read_copies(connection, filters.find_by_index(), "newest", most=most)
    elif len(copies) < most:
        return Newest(first_copies(copies), True, find_horizon(connection, filters))
    return Newest(first_copies(copies), len(copies) < most)


def _list_named(connection: psycopg.Connection, looked_up: LookedUp, most: int) -> Newest:
    copies = _read_named(connection, looked_up.filters, looked_up.passing.ids or (), most)
    return Newest(first_copies(copies), len(copies) < most)


def find_newest(connection: psycopg.Connection, looked_up: LookedUp, most: int) -> NewestIds | None:
    """Return the `most` newest (or oldest) messages of each language with the required words.

    None if the query requires no word of the index in some language; then PostgreSQL must search.
    """
    oldest_from = _find_first_time(connection, looked_up.filters)
    by_language = search_required(looked_up, most, oldest_from)
    if by_language is None:
        return None
    found = {match.message_id for matches in by_language for match in matches}
    last = [matches[-1].message_id for matches in by_language if len(matches) >= most]
    return NewestIds(sorted(found), last)


def _find_first_time(connection: psycopg.Connection, filters: MessageFilter) -> float | None:
    """Return the time of the oldest message, or None if the newest messages are wanted."""
    if not filters.oldest:
        return None
    row = connection.execute(filters.statement("first_sent"), filters.parameters).fetchone()
    return float(row[0].timestamp()) if row else 0.0


def reads_little(connection: psycopg.Connection, filters: MessageFilter) -> bool:
    """Return whether an index of PostgreSQL finds the passing messages and few others."""
    if not filters.indexed or filters.index_finds_all:
        return bool(filters.indexed)
    found = filters.find_by_index()
    parameters = {**found.parameters, "most": MAX_WALKED + 1}
    row = connection.execute(found.statement("indexed_count"), parameters).fetchone()
    return row is not None and row[0] <= MAX_WALKED


def find_horizon(connection: psycopg.Connection, filters: MessageFilter) -> dt.datetime | None:
    """Return the moment at which a walk stops; None if it reads all messages.

    The walk reads all messages between the beginning of the list and this moment.
    """
    walked = filters.walk()
    row = connection.execute(walked.statement("horizon"), walked.parameters).fetchone()
    return row[0] if row else None


def _find_last(
    connection: psycopg.Connection, filters: MessageFilter, ids: NewestIds
) -> dt.datetime | None:
    """Return the moment at which the word index stopped; None if it returned all messages."""
    if ids.complete:
        return None
    parameters = {"message_ids": ids.last}
    row = connection.execute(statement("search", "last_sent"), parameters).fetchone()
    return row[0 if filters.oldest else 1] if row else None


def _read_named(
    connection: psycopg.Connection, filters: MessageFilter, ids: Iterable[str], most: int
) -> list[Candidate]:
    return read_copies(connection, filters.require_ids(ids), "newest", most=most)


#: Most messages that are read of a block's threads; the longest thread of an archive fits.
MAX_OF_THREADS = 20_000


@dataclass
class DatedRows:
    """The rows of a list by date after a place; a row is a thread's candidates, or one message.

    Rows are read on demand in growing blocks; the first has `most` messages. `begins_after` is the
    place. `horizon`: messages at and beyond this moment were not read, because no index covers the
    conditions.
    """

    connection: psycopg.Connection
    looked_up: LookedUp
    place: Place | None
    by_thread: bool
    most: int = PAGE_DEPTH
    rows: list[list[Candidate]] = field(default_factory=list)
    horizon: dt.datetime | None = None
    is_all: bool = False
    begins_after: Place | None = field(init=False)
    _known: set[str] = field(init=False, default_factory=set)

    def __post_init__(self) -> None:
        self.begins_after = self.place

    def take(self, start: int, end: int) -> list[list[Candidate]]:
        """Return the rows from `start` to `end`; fewer, or none, where the list ends."""
        while len(self.rows) < end and not self.is_all:
            self._read_block()
        return self.rows[start:end]

    @property
    def resumes_at(self) -> Place | None:
        """The place where the unread messages begin; None if there are none."""
        if self.horizon is None or Place(self.horizon) == self.place:
            return None
        return Place(self.horizon)

    @property
    def looked_back_to(self) -> dt.date | None:
        """The last complete day (UTC); for the oldest first, the first incomplete day."""
        if self.horizon is None:
            return None
        day = self.horizon.astimezone(dt.UTC).date()
        return day if self.looked_up.filters.oldest else day + dt.timedelta(1)

    def _read_block(self) -> None:
        filters = self.looked_up.filters
        if self.place:
            filters = filters.start_after(self.place)
        asked = self.looked_up._replace(filters=filters)
        found = list_newest(self.connection, asked, self.most)
        self.horizon = found.horizon
        self.is_all = found.is_all or found.horizon is not None
        block = [one for one in found.candidates if not self._is_beyond(one)]
        end = None if self.is_all or not block else _place_of(block[-1])
        for row in self._complete(block):
            key, head = _key(row[0], by_thread=self.by_thread), _place_of(row[0])
            # a text of a contested id may belong before the page, or in a later block
            is_here = self.follows(head, self.place) and not (end and self.follows(head, end))
            if key not in self._known and is_here and not self._is_beyond(row[0]):
                self.rows.append(row)
                self._known.add(key)
        self.place = end or self.place
        self.most = min(MAX_DEPTH, DEEPER * self.most)

    def _complete(self, block: list[Candidate]) -> Iterable[list[Candidate]]:
        """Return the rows of a block, each with all its matching messages."""
        if not block:
            return []
        threads = {one.thread_id for one in block if one.thread_id} if self.by_thread else set()
        filters = self.looked_up.filters.require_threads(
            sorted(threads), (one.message_id for one in block)
        )
        read = read_copies(self.connection, filters, "newest", most=MAX_OF_THREADS)
        rows: dict[str, list[Candidate]] = {}
        found = first_copies([*read, *block])
        if self.by_thread and self.looked_up.has_patches:
            found = self._fold_versions(found)
        for one in found:
            rows.setdefault(_key(one, by_thread=self.by_thread), []).append(one)
        return rows.values()

    def _fold_versions(self, found: list[Candidate]) -> list[Candidate]:
        """Drop versions of a patch that a version in another thread represents.

        The choice depends on all matching versions, not on where reading began.
        """
        ids = [one.message_id for one in found if one.text is None]
        versions = find_versions(self.connection, ids, every=True) if ids else {}
        every = [one for one in found if one.text is None and one.message_id in versions]
        if others := {*versions}.difference(ids):
            filters = self.looked_up.filters.require_ids(sorted(others))
            read = read_copies(self.connection, filters, "newest", most=MAX_OF_THREADS)
            every += [one for one in first_copies(read) if one.text is None]
        patches: dict[tuple[str, int], list[Candidate]] = {}
        for one in every:
            if not self._is_beyond(one):
                patches.setdefault(versions[one.message_id].patch, []).append(one)
        folded: set[str] = set()
        standing: dict[str, tuple[str, ...]] = {}
        for some in patches.values():
            best = max(some, key=lambda one: versions[one.message_id])
            away = [one.message_id for one in some if one.thread_id != best.thread_id]
            folded.update(away)
            standing[best.message_id] = tuple(away)
        return [
            one._replace(versions=standing.get(one.message_id, ()))
            for one in found
            if one.message_id not in folded
        ]

    def follows(self, one: Place, other: Place | None) -> bool:
        """Return whether a place comes after another in the list."""
        if other is None:
            return True
        if one.sent_at == other.sent_at:
            return one.message_id > other.message_id
        return (one.sent_at > other.sent_at) == self.looked_up.filters.oldest

    def _is_beyond(self, one: Candidate) -> bool:
        """Return whether a message is at or beyond the horizon."""
        if self.horizon is None or one.sent_at is None:
            return False
        if self.looked_up.filters.oldest:
            return one.sent_at >= self.horizon
        return one.sent_at <= self.horizon


def find_begin(rows: DatedRows, end: Place, count: int) -> Place | None:
    """Return the place `count` rows before `end`, or None for the list's beginning.

    Reads backwards from `end` until enough messages are rows of the list.
    """
    filters = rows.looked_up.filters
    back = replace(filters, oldest=not filters.oldest).start_after(Place(end.sent_at))
    asked, most = rows.looked_up._replace(filters=back), DEEPER * count
    while True:
        found = list_newest(rows.connection, asked, most)
        is_begin = found.is_all and found.horizon is None
        moment = found.horizon or (None if is_begin else found.candidates[-1].sent_at)
        place = Place(moment) if moment else None
        between = replace(rows, place=place, rows=[], most=most)
        heads: list[Place] = []
        while row := between.take(len(heads), len(heads) + 1):
            head = _place_of(row[0][0])
            if between.follows(head, end):
                break
            heads.append(head)
        if len(heads) > count:
            return heads[-count - 1]
        if found.is_all or most == MAX_DEPTH:
            return place
        most = min(MAX_DEPTH, DEEPER * most)


def _place_of(one: Candidate) -> Place:
    assert one.sent_at  # of a list by date
    return Place(one.sent_at, one.message_id)


def _key(one: Candidate, *, by_thread: bool) -> str:
    # a text that contests an id is in no thread, even if a thread has this id
    return f"thread {one.thread_id}" if by_thread and one.thread_id else one.message_id
