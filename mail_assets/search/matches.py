"""Matches: the indexes return them, and PostgreSQL confirms those that are still true.

An index can be older than the mail: a message may be deleted, or changed so that it does not pass
the filters any more. So a match counts once PostgreSQL has found it by its primary key.
"""

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence, Set
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

import psycopg
from psycopg.types.json import Json

from mail_assets.month import ListMonth, known_month
from mail_assets.postgres.statements import Pending, planned_once, statement
from mail_assets.search.filters import MessageFilter
from mail_assets.search.lexemes import match_any
from mail_assets.vectors.index import Match

#: Threads that are completed with their other messages, and how many of these at most of each.
MAX_THREADS, MAX_THREAD_MESSAGES = 10, 20
#: Characters of new text, a dozen words, below which a message says little: "Thank you!".
BRIEF = 80
#: Share of the best similarity of an id's texts that is nearly as near.
NEARLY = 0.75
_NOTHING: Mapping[str, Any] = MappingProxyType({})


class MessageCopy(NamedTuple):
    """One row of a message, which can be in several lists and months."""

    month: ListMonth
    variant: int


class Candidate(NamedTuple):
    """A message as one leg sees it, or as fusion does.

    `chunks` maps the keys that the vector index returned to their cosine distances, nearest first;
    `ranks` are the ranks in the legs, from 1; `thread_score` is the part of the score that comes
    from the best messages of its thread; `begins`: it is the first of its thread; `is_brief`: it
    has little text of its own. `text` is the number of its text, None unless several claim the id.
    `is_named`: it has one of the names that are asked for, where nothing else is. `sent_at` is
    known in lists by date. `versions` are other versions of its patch that it stands for, and
    `best_version` that of them which matches better than itself.
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
    text: int | None = None
    is_named: bool = True
    sent_at: dt.datetime | None = None
    versions: tuple[str, ...] = ()
    best_version: str | None = None

    @property
    def thread_key(self) -> str:
        """The thread; a message without one is a thread of its own."""
        return self.thread_id or self.message_id


class WordHit(NamedTuple):
    """A copy of a message that has words of a query; `score` is its share of the best possible."""

    message_id: str
    copy: MessageCopy
    score: float


class SubjectHit(NamedTuple):
    """A copy of a message that PostgreSQL found by its subject or by the commits that it led to.

    `is_answer`: it answers another.
    """

    message_id: str
    copy: MessageCopy
    is_answer: bool = False


class Depths(NamedTuple):
    """Numbers of message copies by words and of chunks by meaning; 0: the index is not asked."""

    words: int = 0
    vectors: int = 0


class IndexMatches(NamedTuple):
    """The matches that both indexes returned, best first, and how many each was asked for.

    `passing` are the ids of the messages that the vector index was asked about, None for all.
    `words_ms` and `vectors_ms` are the milliseconds that each index took.
    """

    by_words: Sequence[WordHit] = ()
    by_meaning: Sequence[Match] = ()
    asked: Depths = Depths()
    passing: Sequence[str] | None = None
    words_ms: float = 0.0
    vectors_ms: float = 0.0


#: Identifies what an index returned: a copy of a message, or the key of a chunk.
Identity: TypeAlias = tuple[str, MessageCopy] | str


class ConfirmedMatches(NamedTuple):
    """The matches that are stored and pass the filters, best first.

    `by_subject` are those whose whole subject is the query, `by_link` those of commits that change
    what it names. `members` are messages of the best
    threads; `lexemes` are those of a query that the best message by words has.
    """

    by_words: list[Candidate]
    by_meaning: list[Candidate]
    members: list[Candidate]
    lexemes: frozenset[str]
    by_subject: Sequence[Candidate] = ()
    by_link: Sequence[Candidate] = ()

    def find_refused(self, matches: IndexMatches) -> set[Identity]:
        """Return the matches that do not pass, or that another copy makes superfluous."""
        copies = {(one.message_id, one.copy) for one in self.by_words}
        keys = {key for one in self.by_meaning for key in one.chunks}
        every = {*map(_identify, matches.by_words), *(one.key for one in matches.by_meaning)}
        return every - copies - keys


NO_MATCHES = ConfirmedMatches([], [], [], frozenset())


#: Rare lexemes that are looked up: a query with more of them was pasted.
MAX_RARE = 8


def ask_unknown(connection: psycopg.Connection, lexemes: Sequence[str]) -> Pending[frozenset[str]]:
    """Ask which of a few rare lexemes no message has."""
    if not 0 < len(lexemes) <= MAX_RARE:
        return Pending.known(frozenset())
    parameters = {"lexemes": [*lexemes], "queries": [match_any([one]) for one in lexemes]}
    asked = connection.execute(statement("search", "unknown_lexemes"), parameters)
    return Pending(asked.fetchall).then(lambda rows: frozenset(lexeme for (lexeme,) in rows))


def confirm_matches(
    connection: psycopg.Connection,
    filters: MessageFilter,
    matches: IndexMatches,
    lexemes: Sequence[str] = (),
    *,
    subjects: Sequence[SubjectHit] = (),
    linked: Sequence[SubjectHit] = (),
    names: Sequence[str] = (),
    refused: Set[Identity] = frozenset(),
    threads: bool = False,
) -> ConfirmedMatches:
    """Return the matches that are stored and pass; the messages of their threads only on request.

    `subjects` are messages whose whole subject is the query, `linked` those of commits that change
    what it names, `names` the lexemes of which a message
    that `is_named` has one. `refused`: matches that did not pass before. They are not read again
    but keep their rank, by which threads are ranked.
    """
    if not (matches.by_words or matches.by_meaning or subjects or linked):
        return NO_MATCHES
    by_words = [None if _identify(hit) in refused else hit for hit in matches.by_words]
    hits = [*by_words, *subjects, *linked]
    parameters = {
        **filters.parameters,
        # As JSON: of 300 hits psycopg writes arrays in 2.1 ms, and these in 0.2.
        "found_lists": Json([hit and hit.copy.month.list_name for hit in hits]),
        "found_months": Json([hit and hit.copy.month.month for hit in hits]),
        "found_ids": Json([hit and hit.message_id for hit in hits]),
        "found_variants": Json([hit and hit.copy.variant for hit in hits]),
        "found_keys": Json([None if one.key in refused else one.key for one in matches.by_meaning]),
        "found_lexemes": [*lexemes],
        "found_queries": [match_any([lexeme]) for lexeme in lexemes],
        "found_names": match_any(names),
        "found_threads": MAX_THREADS if threads else 0,
        "found_members": MAX_THREAD_MESSAGES,
        "found_brief": BRIEF,
    }
    at_place: dict[int, Candidate] = {}
    members = []
    had: set[str] = set()
    rows = connection.execute(filters.statement("confirmed"), parameters).fetchall()
    texts = _choose_texts(
        (row[1], row[5], row[0], _score_at(matches, row[0])) for row in rows if row[5] is not None
    )
    for place, message_id, list_name, month, variant, text, thread_id, *about, lexemes_had in rows:
        if text != texts.get(message_id):
            continue
        copy = MessageCopy(known_month(list_name, month), variant)
        score = _score_at(matches, place)
        begins, is_brief, is_named = about
        candidate = Candidate(
            *(message_id, copy, thread_id, score),
            begins=begins,
            is_brief=is_brief,
            text=text,
            is_named=is_named,
        )
        if place:
            at_place[place] = candidate
        else:
            members.append(candidate)
        had.update(lexemes_had or ())
    last = len(matches.by_words)
    stored = [
        (one, at_place[place]) for place, one in enumerate(subjects, last + 1) if place in at_place
    ]
    after = last + len(subjects) + 1
    by_link = [at_place[place] for place, _ in enumerate(linked, after) if place in at_place]
    begun = [found for one, found in stored if not one.is_answer]
    return ConfirmedMatches(
        first_copies(at_place[place] for place in range(1, last + 1) if place in at_place),
        _merge_chunks(matches.by_meaning, at_place),
        first_copies(members),
        frozenset(had),
        first_copies(begun or [found for _, found in stored]),
        first_copies(by_link),
    )


def _choose_texts(rows: Iterable[tuple[str, int, int, float]]) -> dict[str, int]:
    """Return the text that is shown of each contested id, by its number.

    Of the texts that have words of the query it is the one that arrived first, else of those that
    are nearly as near as the nearest. A row is an id, text, place and score.
    """
    by_words: list[tuple[str, int | None]] = []
    near: dict[str, dict[int, float]] = {}
    for message_id, text, place, score in rows:
        if place > 0:
            by_words.append((message_id, text))
        elif place:
            scores = near.setdefault(message_id, {})
            scores[text] = max(score, scores.get(text, score))
    chosen = {
        message_id: min(text for text, one in found.items() if one >= _bound(max(found.values())))
        for message_id, found in near.items()
    }
    return chosen | _first_texts(by_words)


def _bound(best: float) -> float:
    return best - (1.0 - NEARLY) * abs(best)


def _identify(hit: WordHit) -> Identity:
    return hit.message_id, hit.copy


def _score_at(matches: IndexMatches, place: int) -> float:
    """Return the score at a place of the statement: by words above 0, by meaning below."""
    if place < 0:
        return round(1.0 - matches.by_meaning[-place - 1].distance, 6)
    return matches.by_words[place - 1].score if 0 < place <= len(matches.by_words) else 0.0


def _merge_chunks(matches: Iterable[Match], at_place: dict[int, Candidate]) -> list[Candidate]:
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


def read_copies(
    connection: psycopg.Connection, filters: MessageFilter, name: str, **parameters: object
) -> list[Candidate]:
    """Return the copies of messages that a statement of sql/search.sql finds, with score 0."""
    values = {**filters.parameters, **parameters}
    rows = connection.execute(filters.statement(name), values).fetchall()
    return [
        Candidate(
            *(message_id, MessageCopy(known_month(list_name, month), variant), thread_id, 0.0),
            text=text,
            sent_at=sent_at,
        )
        for message_id, list_name, month, variant, text, thread_id, sent_at in rows
    ]


def first_copies(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Return each message once, in the copy that comes first.

    Of several texts under one id that of the lowest number: it arrived first.
    """
    found = [*candidates]
    texts = _first_texts((one.message_id, one.text) for one in found)
    first: dict[str, Candidate] = {}
    for one in found:
        if one.text == texts.get(one.message_id):
            first.setdefault(one.message_id, one)
    return [*first.values()]


def _first_texts(texts: Iterable[tuple[str, int | None]]) -> dict[str, int]:
    """Return the lowest number of a text for each contested id among some texts."""
    first: dict[str, int] = {}
    for message_id, text in texts:
        if text is not None:
            first[message_id] = min(text, first.get(message_id, text))
    return first


def append_unknown(ranked: Sequence[Candidate], more: Iterable[Candidate]) -> list[Candidate]:
    """Return a ranking followed by the messages that only another one has, with no better score."""
    known = {one.message_id for one in ranked}
    lowest = ranked[-1].score if ranked else 1.0
    unknown = (one for one in more if one.message_id not in known)
    return [*ranked, *(one._replace(score=min(one.score, lowest)) for one in unknown)]


class FoundVersion(NamedTuple):
    """A mail that has a version of a patch; of one `patch` the greatest stands for all.

    That is the version that was applied, else the newest one by no stranger. In results grouped by
    conversation the others are folded into it where they are in other threads (conversations.py):
    a reader of the thread sees its own.

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
        asked = connection.execute(query, {"message_ids": Json([*message_ids])})
    return {
        row[0]: FoundVersion((row[1], row[2]), False, row[4], row[5], row[3], row[0])
        for row in asked.fetchall()
    }
