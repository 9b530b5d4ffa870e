"""Matches: the indexes return them, and PostgreSQL confirms those that still hold.

An index can be older than the mail: a message may have been deleted, or may no longer pass the
filters. So a match counts only after PostgreSQL has found its row by primary key.
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

#: Most threads whose other messages are added, and most messages added per thread.
MAX_THREADS, MAX_THREAD_MESSAGES = 10, 20
#: Characters of new text (a dozen words) below which a message is brief, such as "Thank you!".
BRIEF = 80
#: A text of a contested id is nearly as near with this share of the best text's similarity.
NEARLY = 0.75
_NOTHING: Mapping[str, Any] = MappingProxyType({})


class MessageCopy(NamedTuple):
    """Key of one stored copy of a message, which can be in several lists and months."""

    month: ListMonth
    variant: int


class Candidate(NamedTuple):
    """A message that may become a hit, in the ranking of one leg or of both.

    - `chunks`: cosine distances by the keys that the vector index returned, nearest first.
    - `ranks`: rank in each leg, from 1.
    - `thread_score`: the part of the score that comes from the best messages of its thread.
    - `begins`: it is the first message of its thread.
    - `is_brief`: it has little new text.
    - `text`: number of its text; None unless several texts claim the id.
    - `is_named`: the query has names only, and the message has one of them.
    - `sent_at`: set in lists by date.
    - `versions`: other versions of its patch that it represents; `best_version` is the one of these
      that matches better than itself.
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
        """Identity of the thread; a message in no thread is its own."""
        return self.thread_id or self.message_id


class WordHit(NamedTuple):
    """A message copy found by words; `score` is its share of the best possible score."""

    message_id: str
    copy: MessageCopy
    score: float


class SubjectHit(NamedTuple):
    """A copy found by subject or by its commits; `is_answer`: it answers another message."""

    message_id: str
    copy: MessageCopy
    is_answer: bool = False


class Depths(NamedTuple):
    """Numbers of matches to ask for: copies by words, chunks by meaning; 0 skips the index."""

    words: int = 0
    vectors: int = 0


class IndexMatches(NamedTuple):
    """The matches that both indexes returned, best first, and how many each was asked for.

    `passing` has the ids to which the vector search was limited; None for all messages. `words_ms`
    and `vectors_ms` are the milliseconds that each index took.
    """

    by_words: Sequence[WordHit] = ()
    by_meaning: Sequence[Match] = ()
    asked: Depths = Depths()
    passing: Sequence[str] | None = None
    words_ms: float = 0.0
    vectors_ms: float = 0.0


#: Identity of a match: a message copy, or the key of a chunk.
Identity: TypeAlias = tuple[str, MessageCopy] | str


class ConfirmedMatches(NamedTuple):
    """The matches that are stored and pass the filters, best first.

    - `by_subject`: messages whose whole subject is the query.
    - `by_link`: mail of commits that change the named files or functions.
    - `members`: other messages of the best threads.
    - `lexemes`: lexemes of the query in the best message by words.
    """

    by_words: list[Candidate]
    by_meaning: list[Candidate]
    members: list[Candidate]
    lexemes: frozenset[str]
    by_subject: Sequence[Candidate] = ()
    by_link: Sequence[Candidate] = ()

    def find_refused(self, matches: IndexMatches) -> set[Identity]:
        """Return the matches that do not pass, or that another copy of the message replaces."""
        copies = {(one.message_id, one.copy) for one in self.by_words}
        keys = {key for one in self.by_meaning for key in one.chunks}
        every = {*map(_identify, matches.by_words), *(one.key for one in matches.by_meaning)}
        return every - copies - keys


NO_MATCHES = ConfirmedMatches([], [], [], frozenset())


#: Most rare lexemes that are looked up; a query with more was pasted.
MAX_RARE = 8


def ask_unknown(connection: psycopg.Connection, lexemes: Sequence[str]) -> Pending[frozenset[str]]:
    """Ask for the lexemes that no message has; checks only a few."""
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
    """Return the matches that are stored and pass, with `threads` also messages of their threads.

    - `subjects`: messages whose whole subject is the query.
    - `linked`: mail of commits that change the named files or functions.
    - `names`: lexemes; a message with one of them `is_named`.
    - `refused`: matches that the filters already rejected. They are not read again but keep their
      rank, by which threads are ranked.
    """
    if not (matches.by_words or matches.by_meaning or subjects or linked):
        return NO_MATCHES
    by_words = [None if _identify(hit) in refused else hit for hit in matches.by_words]
    hits = [*by_words, *subjects, *linked]
    parameters = {
        **filters.parameters,
        # JSON, because psycopg writes arrays of 300 hits in 2.1 ms, and JSON in 0.2 ms.
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
    """Choose the text to show of each contested id, and return its number by id.

    It is the first to arrive of the texts that have words of the query; if none has, of those
    nearly as near as the nearest. A row is an id, text, place and score.
    """
    by_words: list[tuple[str, int | None]] = []
    near: dict[str, dict[int, float]] = {}
    for message_id, text, place, score in rows:
        if place > 0:
            by_words.append((message_id, text))
        elif place:
            scores = near.setdefault(message_id, {})
            scores[text] = max(score, scores.get(text, score))
    chosen = {}
    for message_id, found in near.items():
        best = max(found.values())
        least = best - (1.0 - NEARLY) * abs(best)
        chosen[message_id] = min(text for text, one in found.items() if one >= least)
    return chosen | _first_texts(by_words)


def _identify(hit: WordHit) -> Identity:
    return hit.message_id, hit.copy


def _score_at(matches: IndexMatches, place: int) -> float:
    """Return the score of a match; places above 0 are matches by words, below 0 by meaning."""
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
    """Return the message copies that a statement of sql/search.sql finds, with score 0."""
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
    """Return each message once, in its first copy; of several texts, the one that arrived first."""
    found = [*candidates]
    texts = _first_texts((one.message_id, one.text) for one in found)
    first: dict[str, Candidate] = {}
    for one in found:
        if one.text == texts.get(one.message_id):
            first.setdefault(one.message_id, one)
    return [*first.values()]


def _first_texts(texts: Iterable[tuple[str, int | None]]) -> dict[str, int]:
    """Return the lowest text number of each contested id."""
    first: dict[str, int] = {}
    for message_id, text in texts:
        if text is not None:
            first[message_id] = min(text, first.get(message_id, text))
    return first


def append_unknown(ranked: Sequence[Candidate], more: Iterable[Candidate]) -> list[Candidate]:
    """Append the messages that are only in `more`; their scores never exceed those before them."""
    known = {one.message_id for one in ranked}
    lowest = ranked[-1].score if ranked else 1.0
    unknown = (one for one in more if one.message_id not in known)
    return [*ranked, *(one._replace(score=min(one.score, lowest)) for one in unknown)]


class FoundVersion(NamedTuple):
    """A message with a version of a patch; the greatest of one `patch` represents all.

    That is the applied version, else the newest version that no stranger sent. In results grouped
    by conversation, versions in other threads are folded into it (conversations.py). Versions in
    the same thread are not, because a reader of the thread sees them.

    `is_named`: the query names this version. `is_own`: not sent by a stranger.
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
    """Return the messages that have another version of the same patch among `message_ids`, by id.

    With `every`, versions outside `message_ids` count and are returned too.
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
