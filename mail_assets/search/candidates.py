"""A message that a leg found, in one of its copies, with the evidence for it.

[stored] What the indexes found, as PostgreSQL has it: one statement for both legs and their threads.

An index can be older than the mail: a message may be gone, or changed and not pass the filters any
more. So nothing is a candidate that PostgreSQL does not have, looked up by its primary key.
"""

from collections.abc import Iterable, Mapping, Sequence, Set
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

import psycopg
from psycopg.types.json import Json

from mail_assets.month import ListMonth, known_month
from mail_assets.search.filters import MessageFilter
from mail_assets.search.lexemes import match_any
from mail_assets.vectors.index import Match


class MessageCopy(NamedTuple):
    """One row of messages beside its id: a message can be in several lists and months."""

    month: ListMonth
    variant: int


_NOTHING: Mapping[str, Any] = MappingProxyType({})


class Candidate(NamedTuple):
    """A message as one leg sees it, or as fusion does.

    `chunks` maps the keys that the vector index returned to their cosine distances, nearest first;
    `ranks` are the ranks in the legs, from 1; `thread_score` is the part of the score that comes
    from the best messages of its thread; `begins` says that it is the first of its thread,
    `is_brief` that it says little of its own.
    """

    message_id: str
    copy: MessageCopy
    thread_id: str | None
    score: float
    chunks: Mapping[str, float] = _NOTHING
    ranks: Mapping[str, int] = _NOTHING
    thread_score: float = 0.0
    begins: bool = False
    is_brief: bool = False

    @property
    def thread_key(self) -> str:
        """The thread; a message that is in none is a thread of its own."""
        return self.thread_id or self.message_id


def read_candidates(
    connection: psycopg.Connection, filters: MessageFilter, name: str, **parameters: object
) -> list[Candidate]:
    """Return the messages of a statement of sql/search.sql, each in its first copy, score 0."""
    return first_copies(read_copies(connection, filters, name, **parameters))


def read_copies(
    connection: psycopg.Connection, filters: MessageFilter, name: str, **parameters: object
) -> list[Candidate]:
    """Return the copies of messages of a statement of sql/search.sql, score 0."""
    rows = connection.execute(
        filters.statement(name), {**filters.parameters, **parameters}
    ).fetchall()
    return [
        Candidate(message_id, MessageCopy(known_month(list_name, month), variant), thread_id, 0.0)
        for message_id, list_name, month, variant, thread_id in rows
    ]


def first_copies(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Return each message once, in the copy that comes first."""
    first: dict[str, Candidate] = {}
    for one in candidates:
        first.setdefault(one.message_id, one)
    return [*first.values()]


def append_unknown(ranked: Sequence[Candidate], more: Iterable[Candidate]) -> list[Candidate]:
    """Return a ranking, and behind it what it lacks of another one, with no better score."""
    known = {one.message_id for one in ranked}
    lowest = ranked[-1].score if ranked else 1.0
    unknown = (one for one in more if one.message_id not in known)
    return [*ranked, *(one._replace(score=min(one.score, lowest)) for one in unknown)]


#: Threads that are completed with their other messages, and how many of these at most of each.
MAX_THREADS, MAX_THREAD_MESSAGES = 10, 20
#: Characters of new text, a dozen words, below which a message says little: "Thank you!".
BRIEF = 80


class WordHit(NamedTuple):
    """A copy of a message that has words of a query; `score` is 0 to 1, of the best possible."""

    message_id: str
    copy: MessageCopy
    score: float


#: A copy of a message, or the key of a chunk.
FoundOne: TypeAlias = tuple[str, MessageCopy] | str


class Found(NamedTuple):
    """What the indexes found, best first.

    `refused` is what did not pass when it was read before: it is not read again, and keeps its
    place, by which threads are ranked.
    """

    by_words: Sequence[WordHit] = ()
    by_meaning: Sequence[Match] = ()
    refused: Set[FoundOne] = frozenset()


class Stored(NamedTuple):
    """What of it is there and passes, best first.

    `members` are messages of the best threads; `lexemes` are those of a query that the best message
    by words has.
    """

    by_words: list[Candidate]
    by_meaning: list[Candidate]
    members: list[Candidate]
    lexemes: frozenset[str]

    def find_refused(self, found: Found) -> set[FoundOne]:
        """Return what was found and does not pass, or is not needed beside another copy."""
        copies = {(one.message_id, one.copy) for one in self.by_words}
        keys = {key for one in self.by_meaning for key in one.chunks}
        every = {*map(_identify, found.by_words), *(match.key for match in found.by_meaning)}
        return every - copies - keys


def read_stored(
    connection: psycopg.Connection,
    filters: MessageFilter,
    found: Found,
    lexemes: Sequence[str] = (),
    *,
    threads: bool = False,
) -> Stored:
    """Return what is stored of what was found; the messages of its threads only on request."""
    if not found.by_words and not found.by_meaning:
        return Stored([], [], [], frozenset())
    hits = [None if _identify(hit) in found.refused else hit for hit in found.by_words]
    parameters = {
        **filters.parameters,
        # As JSON: of 300 hits psycopg writes arrays in 2.1 ms, and these in 0.2.
        "found_lists": Json([hit and hit.copy.month.list_name for hit in hits]),
        "found_months": Json([hit and hit.copy.month.month for hit in hits]),
        "found_ids": Json([hit and hit.message_id for hit in hits]),
        "found_variants": Json([hit and hit.copy.variant for hit in hits]),
        "found_keys": [None if m.key in found.refused else m.key for m in found.by_meaning],
        "found_lexemes": [*lexemes],
        "found_queries": [match_any([lexeme]) for lexeme in lexemes],
        "found_threads": MAX_THREADS if threads else 0,
        "found_members": MAX_THREAD_MESSAGES,
        "found_brief": BRIEF,
    }
    rows = connection.execute(filters.statement("stored"), parameters).fetchall()
    at_place: dict[int, Candidate] = {}
    members = []
    had: set[str] = set()
    for place, message_id, list_name, month, variant, thread_id, *about, lexemes_had in rows:
        copy = MessageCopy(known_month(list_name, month), variant)
        score = _score_at(found, place)
        begins, is_brief = about
        candidate = Candidate(message_id, copy, thread_id, score, begins=begins, is_brief=is_brief)
        if place:
            at_place[place] = candidate
        else:
            members.append(candidate)
        had.update(lexemes_had or ())
    places = range(1, len(found.by_words) + 1)
    return Stored(
        first_copies(at_place[place] for place in places if place in at_place),
        _merge_chunks(found.by_meaning, at_place),
        first_copies(members),
        frozenset(had),
    )


def _identify(hit: WordHit) -> FoundOne:
    return hit.message_id, hit.copy


def _score_at(found: Found, place: int) -> float:
    """Return the score of what is at a place of the statement."""
    if place > 0:
        return found.by_words[place - 1].score
    return round(1.0 - found.by_meaning[-place - 1].distance, 6) if place else 0.0


def _merge_chunks(matches: Iterable[Match], at_place: dict[int, Candidate]) -> list[Candidate]:
    """Return the messages of chunks, each in the copy with the nearest one."""
    found: dict[str, Candidate] = {}
    chunks: dict[str, dict[str, float]] = {}
    for place, match in enumerate(matches, 1):
        stored = at_place.get(-place)
        if stored is None:
            continue
        candidate = found.setdefault(stored.message_id, stored)
        if candidate.copy == stored.copy:
            chunks.setdefault(stored.message_id, {})[match.key] = round(match.distance, 6)
    return [one._replace(chunks=chunks[one.message_id]) for one in found.values()]
