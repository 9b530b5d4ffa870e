"""What the indexes found, as PostgreSQL has it: one statement for both legs and their threads.

An index can be older than the mail: a message may be gone, or changed and not pass the filters any
more. So nothing is a candidate that PostgreSQL does not have, looked up by its primary key.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import psycopg

from mail_assets.month import ListMonth
from mail_assets.search.candidates import Candidate, MessageCopy, first_copies
from mail_assets.search.filters import MessageFilter
from mail_assets.search.lexemes import match_any
from mail_assets.vectors.index import Match

#: Threads that are completed with their other messages, and how many of these at most of each.
MAX_THREADS, MAX_THREAD_MESSAGES = 10, 20


class WordHit(NamedTuple):
    """A copy of a message that has words of a query; `score` is 0 to 1, of the best possible."""

    message_id: str
    copy: MessageCopy
    score: float


class Found(NamedTuple):
    """What the indexes found, best first."""

    by_words: Sequence[WordHit] = ()
    by_meaning: Sequence[Match] = ()


class Stored(NamedTuple):
    """What of it is there and passes, best first.

    `members` are messages of the best threads; `lexemes` are those of a query that the best message
    by words has.
    """

    by_words: list[Candidate]
    by_meaning: list[Candidate]
    members: list[Candidate]
    lexemes: frozenset[str]


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
    parameters = {
        **filters.parameters,
        "found_lists": [hit.copy.month.list_name for hit in found.by_words],
        "found_months": [hit.copy.month.month for hit in found.by_words],
        "found_ids": [hit.message_id for hit in found.by_words],
        "found_variants": [hit.copy.variant for hit in found.by_words],
        "found_keys": [match.key for match in found.by_meaning],
        "found_lexemes": [*lexemes],
        "found_queries": [match_any([lexeme]) for lexeme in lexemes],
        "found_threads": MAX_THREADS if threads else 0,
        "found_members": MAX_THREAD_MESSAGES,
    }
    rows = connection.execute(filters.statement("stored"), parameters).fetchall()
    at_place: dict[int, Candidate] = {}
    members = []
    had: set[str] = set()
    for place, *columns, lexemes_had in rows:
        if place:
            at_place[place] = _candidate(columns)
        else:
            members.append(_candidate(columns))
        had.update(lexemes_had or ())
    return Stored(
        first_copies(_scored(found.by_words, at_place)),
        _merge_chunks(found.by_meaning, at_place),
        first_copies(members),
        frozenset(had),
    )


def _candidate(columns: Sequence[Any]) -> Candidate:
    message_id, list_name, month, variant, thread_id, begins = columns
    copy = MessageCopy(ListMonth(list_name, month), variant)
    return Candidate(message_id, copy, thread_id, 0.0, begins=begins)


def _scored(hits: Iterable[WordHit], at_place: dict[int, Candidate]) -> Iterable[Candidate]:
    for place, hit in enumerate(hits, 1):
        if stored := at_place.get(place):
            yield replace(stored, score=hit.score)


def _merge_chunks(matches: Iterable[Match], at_place: dict[int, Candidate]) -> list[Candidate]:
    """Return the messages of chunks, each in the copy with the nearest one."""
    found: dict[str, Candidate] = {}
    for place, match in enumerate(matches, 1):
        stored = at_place.get(-place)
        if stored is None:
            continue
        similarity = round(1.0 - match.distance, 6)
        candidate = found.setdefault(
            stored.message_id, replace(stored, score=similarity, chunks={})
        )
        if candidate.copy == stored.copy:
            candidate.chunks[match.key] = round(match.distance, 6)
    return [*found.values()]
