"""The full-text leg: messages ranked by BM25 over the index of words.

The index ranks all messages (words/). Here its score becomes the share of what the query could
reach at most, sum of weight * (K1 + 1) over its lexemes (Robertson, Zaragoza 2009), so that it is
0 to 1 and says the same in every query and language.

[newest] The newest messages that meet conditions, and how far back was looked for them.

An index of words names those with required words, and PostgreSQL's those of few. All others are
looked at from the newest on. Both so many and no more: what no index knows may be in none of them.
"""

import datetime as dt
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

import psycopg

from mail_assets.postgres.statements import statement
from mail_assets.search.candidates import Candidate, MessageCopy, WordHit, first_copies, read_copies
from mail_assets.search.field_conditions import FieldCondition, all_of
from mail_assets.search.filters import MAX_WALKED, MessageFilter
from mail_assets.search.live_index import LookedUp
from mail_assets.search.query import Frequencies, LanguageQuery, Query, WeighedTerm, weigh_terms
from mail_assets.vectors.filters import Filter
from mail_assets.words import query as words
from mail_assets.words.index import MissingWordsError, WordIndex

#: Robertson and Zaragoza's value, which the index has.
K1 = 1.2
#: Messages that are ranked where they are counted too; where filters are applied after the index,
#: more until so many pass, up to MAX_DEPTH.
FULLTEXT_DEPTH, MAX_DEPTH = 300, 4_800
#: Messages that are ranked for a page alone; more for one that ends beyond a third of them: some
#: are folded into others, or of a thread that has its hits. To read and verify one takes 0.06 ms.
PAGE_DEPTH, MESSAGES_OF_A_HIT = 100, 3
#: Messages, or chunks, that are looked at for a phrase with stop words: the text of each is read,
#: which takes 0.1 ms.
MAX_PATTERNED = 1_200
#: Messages by words that hybrid ranks: 300 rank no better (docs/search-experiments.md, "Depth"),
#: and take a quarter more of the time.
HYBRID_MESSAGES = 150
#: How much more an index is asked for where filters are applied after it and too few pass.
DEEPER = 4
#: Messages that are enough by words where filters are applied after the index: a page's most. More
#: for a page that ends beyond them: as many as there are hits up to its last.
ENOUGH = 100


def max_depth(query: Query) -> int:
    """Return how many messages or chunks are looked at, where few of them pass."""
    return MAX_PATTERNED if query.patterned else MAX_DEPTH


def enough(depth: int) -> int:
    """Return how many messages are to pass of those by words, where `depth` are ranked."""
    return max(ENOUGH, depth // MESSAGES_OF_A_HIT)


@dataclass(frozen=True)
class FulltextRanking:
    """What full text found, best first.

    `covered` is the share of the query's weight that the best message contains: 1 where it has
    every term. `terms` are those that were searched for.
    """

    candidates: list[Candidate]
    covered: float
    terms: list[WeighedTerm]


@dataclass(frozen=True)
class LanguageTerms:
    """A query in the stems of one language and what each of them weighs."""

    query: LanguageQuery
    terms: list[WeighedTerm]

    @property
    def weight(self) -> float:
        """The weight of all terms."""
        return sum(term.weight for term in self.terms)


def weigh_query(query: Query, frequencies: Frequencies) -> list[LanguageTerms]:
    """Return the terms of a query in each of its languages."""
    return [LanguageTerms(one, weigh_terms(one, frequencies)) for one in query.by_language]


@dataclass(frozen=True)
class NewestIds:
    """The ids of the newest messages with required words.

    `oldest` are the last of each language that has others.
    """

    message_ids: list[str]
    oldest: list[str]

    @property
    def complete(self) -> bool:
        """Whether there are no others."""
        return not self.oldest


def search_words(
    looked_up: LookedUp, languages: Sequence[LanguageTerms], depth: int = FULLTEXT_DEPTH
) -> list[WordHit]:
    """Return up to `depth` copies of messages that have a term and the required words, best first.

    Filters that the index does not know are not applied, and phrases over stop words not exactly:
    see stored.py.

    Raises:
        WordsError: the index is missing or fails.
    """
    if looked_up.passing is not None and not looked_up.passing:
        return []
    hits: list[WordHit] = []
    for language in languages:
        if not language.weight:
            continue
        where = _where(language.query, looked_up)
        index = looked_up.words
        with _naming_remedy(index):
            matches = index.search(_word_query(language), depth, where)
        # frequencies are estimates: the best is never beyond what can be reached
        best = max(language.weight * (K1 + 1), matches[0].score if matches else 0.0)
        for match in matches:
            copy = MessageCopy(match.month, match.variant)
            hits.append(WordHit(match.message_id, copy, round(match.score / best, 6)))
    return sorted(hits, key=lambda hit: (-hit.score, hit.message_id, hit.copy))[:depth]


def find_required(looked_up: LookedUp, most: int) -> tuple[str, ...] | None:
    """Return the ids of the messages that have the words that a query requires.

    None where they are more than `most`, or no word is required.

    Raises:
        WordsError: the index is missing or fails.
    """
    if not _requires_words(looked_up):
        return None
    index, found = looked_up.words, set[str]()
    for one in looked_up.query.by_language:
        asked = one.words._replace(terms=())
        with _naming_remedy(index):
            ids = index.list_ids(asked, most + 1, _where(one, looked_up))
        found.update(ids)
        if len(ids) > most:
            return None
    return tuple(sorted(found))


def find_newest(looked_up: LookedUp, most: int) -> NewestIds | None:
    """Return the newest messages, so many of each language, with the words that a query requires.

    None where a language requires none that the index knows: PostgreSQL finds these.

    Raises:
        WordsError: the index is missing or fails.
    """
    if not _requires_words(looked_up):
        return None
    index, found, oldest = looked_up.words, set[str](), []
    for one in looked_up.query.by_language:
        asked = one.words._replace(terms=())
        with _naming_remedy(index):
            matches = index.search(asked, most, _where(one, looked_up))
        found.update(match.message_id for match in matches)
        if len(matches) >= most:
            oldest.append(matches[-1].message_id)
    return NewestIds(sorted(found), oldest)


def measure_coverage(languages: Iterable[LanguageTerms], lexemes: frozenset[str]) -> float:
    """Return the share of a query's weight that some lexemes have, in the language that fits."""
    shares = [
        sum(term.weight for term in one.terms if term.lexeme in lexemes) / one.weight
        for one in languages
        if one.weight
    ]
    return round(max(shares, default=0.0), 4)


def _requires_words(looked_up: LookedUp) -> bool:
    """Say whether every list is of a language in which the query requires words of a message."""
    asked = [one for one in looked_up.query.by_language if one.words.required]
    return {*looked_up.filters.lists} == {name for one in asked for name in one.lists}


@contextmanager
def _naming_remedy(index: WordIndex) -> Iterator[None]:
    try:
        yield
    except MissingWordsError:
        raise MissingWordsError(
            f"{index.label}: no words are indexed yet; run `mail-assets backfill`, or search with "
            "--mode semantic and without quotes"
        ) from None


def _word_query(language: LanguageTerms) -> words.WordQuery:
    """Return the query of a language with its heaviest terms alone."""
    terms = tuple(words.Term(term.lexeme, term.share) for term in language.terms)
    return language.query.words._replace(terms=terms)


def _where(query: LanguageQuery, looked_up: LookedUp) -> Filter | None:
    """Return the filter for the index: what it knows, in the lists of a language."""
    known = looked_up.filters.word_filter.where
    conditions: list[Filter] = [] if known is None else [known]
    if len(looked_up.query.by_language) > 1:
        conditions.append({"list": {"$in": [*query.lists]}})
    if looked_up.passing is not None:
        conditions.append({"message_id": {"$in": sorted(looked_up.passing)}})
    return all_of(conditions)


class Newest(NamedTuple):
    """Messages, newest first.

    `is_all`: no more are found, however many are asked for. `looked_back_to`: those before that
    day were not looked at.
    """

    candidates: list[Candidate]
    is_all: bool
    looked_back_to: dt.date | None = None


def list_newest(connection: psycopg.Connection, looked_up: LookedUp, most: int) -> Newest:
    """Return the newest messages that pass the filters, of `most` copies.

    Raises:
        WordsError: the index of words is missing or fails.
    """
    filters = looked_up.filters
    deepest = max_depth(looked_up.query)
    depth = min(deepest, max(ENOUGH, most))
    while (ids := find_newest(looked_up, depth)) is not None:
        copies = _read_named(connection, filters, ids.message_ids, most)
        if len(copies) >= most or ids.complete or depth == deepest:
            break
        depth = min(deepest, DEEPER * depth)
    if ids is not None:
        is_all = len(copies) < most
        day = _find_first_day(connection, ids) if is_all else None
        return Newest(first_copies(copies), is_all, day)
    if looked_up.passing is not None:
        copies = _read_named(connection, filters, looked_up.passing, most)
        return Newest(first_copies(copies), len(copies) < most)
    copies = read_copies(connection, filters.walk(), "newest", most=most)
    if len(copies) < most and reads_little(connection, filters):
        copies = read_copies(connection, filters.find_by_index(), "newest", most=most)
    elif len(copies) < most:
        return Newest(first_copies(copies), True, find_horizon(connection, filters))
    return Newest(first_copies(copies), len(copies) < most)


def _find_first_day(connection: psycopg.Connection, ids: NewestIds) -> dt.date | None:
    """Return the first day (UTC) of which an index named all messages, None where of every day."""
    if ids.complete:
        return None
    parameters = {"message_ids": ids.oldest}
    row = connection.execute(statement("search", "last_sent"), parameters).fetchone()
    return _day_after(row[0]) if row and row[0] else None


def _read_named(
    connection: psycopg.Connection, filters: MessageFilter, ids: Iterable[str], most: int
) -> list[Candidate]:
    named = filters.require_field(FieldCondition("ids", [*ids]))
    return read_copies(connection, named, "newest", most=most)


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
    return _day_after(row[0]) if row else None


def _day_after(sent_at: dt.datetime) -> dt.date:
    return sent_at.astimezone(dt.UTC).date() + dt.timedelta(1)
