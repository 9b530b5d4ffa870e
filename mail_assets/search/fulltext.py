"""The full-text leg: messages ranked by BM25 over the word index.

The index (words/) scores messages. This module divides a score by the greatest possible score of
the query: the sum of weight * (K1 + 1) over its lexemes (Robertson, Zaragoza 2009). The result is 0
to 1 and means the same for every query and language.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from operator import attrgetter

from mail_assets.search.field_conditions import (
    MAX_WORD_CONSTRAINTS,
    WORD_FIELDS,
    all_of,
    build_index_filter,
)
from mail_assets.search.look_up import LookedUp
from mail_assets.search.matches import MessageCopy, WordHit
from mail_assets.search.query import LanguageQuery, LanguageTerms
from mail_assets.vectors.filters import Filter
from mail_assets.words.index import MissingWordsError, Term, WordIndex, WordMatch, WordQuery

#: BM25's k1: the value of Robertson and Zaragoza, which the index uses too.
K1 = 1.2
#: Messages that are ranked for conversations, or for facets. If filters are applied after the
#: index, more are asked for, up to MAX_DEPTH, until this many pass.
FULLTEXT_DEPTH, MAX_DEPTH = 300, 4_800
#: Messages that are ranked, or listed by date, for a page of single messages; DEEPER times as many
#: if they do not fill it. Confirming one takes 0.06 ms.
PAGE_DEPTH = 100
#: Ranked messages per message that has to pass.
MESSAGES_OF_A_HIT = 3
#: Messages by words that hybrid mode ranks; 300 rank no better (docs/benchmarks.md) and take a
#: quarter longer.
HYBRID_MESSAGES = 150
#: Growth of a request to an index when filters are applied after it and too few matches pass.
DEEPER = 4
#: Messages by words that are enough if filters are applied after the index: those of the largest
#: page. A page that ends later needs as many as there are hits up to its last one.
ENOUGH = 100


def enough(depth: int) -> int:
    """Return how many messages by words have to pass when `depth` are ranked."""
    return max(ENOUGH, depth // MESSAGES_OF_A_HIT)


def search_words(
    looked_up: LookedUp, languages: Sequence[LanguageTerms], depth: int = FULLTEXT_DEPTH
) -> list[WordHit]:
    """Return up to `depth` message copies that have a term and the required words, best first.

    Conditions that the index cannot check are not applied, and phrases are searched without their
    stop words; PostgreSQL checks both later.
    """
    if looked_up.passing.ids == ():
        return []
    hits: list[WordHit] = []
    for language in languages:
        if not language.weight:
            continue
        terms = tuple(Term(term.lexeme, term.share) for term in language.terms)
        asked = language.query.words._replace(terms=terms)
        if looked_up.passing.says_all:
            asked = WordQuery(terms)
        matches = _search(looked_up, language.query, asked, depth)
        # frequencies are estimates: a score must not exceed the greatest possible one
        most = max(language.weight * (K1 + 1), matches[0].score if matches else 0.0)
        for match in matches:
            copy = MessageCopy(match.month, match.variant)
            hits.append(WordHit(match.message_id, copy, round(match.score / most, 6)))
    hits.sort()
    hits.sort(key=attrgetter("score"), reverse=True)
    return hits[:depth]


def search_required(
    looked_up: LookedUp, most: int, oldest_from: float | None = None
) -> list[Sequence[WordMatch]] | None:
    """Return the newest messages with the required words, by language.

    With `oldest_from`, the time of the oldest message, return the oldest. None if no word is
    required in the language of some list.
    """
    if not _requires_words(looked_up):
        return None
    return [
        _search(looked_up, one, one.words._replace(terms=(), oldest_from=oldest_from), most)
        for one in looked_up.query.by_language
    ]


def has_any_word(looked_up: LookedUp) -> bool:
    """Return whether any message of the searched lists has a word of the query.

    Other conditions are ignored. True also if no words are indexed, because then it is unknown.
    """
    filters, index = looked_up.filters, looked_up.words
    lists = [one for one in filters.fields if any(field.name == "lists" for field in one)]
    where = build_index_filter(lists, WORD_FIELDS, MAX_WORD_CONSTRAINTS).where
    try:
        return any(
            index.search(WordQuery(one.words.terms), 1, where)
            for one in looked_up.query.by_language
            if one.words.terms
        )
    except MissingWordsError:
        return True


def find_required(looked_up: LookedUp, most: int) -> tuple[str, ...] | None:
    """Return the ids with the required words; None if more than `most` or no word is required."""
    if not _requires_words(looked_up):
        return None
    index, found = looked_up.words, set[str]()
    for one in looked_up.query.by_language:
        with _naming_remedy(index):
            asked = one.words._replace(terms=())
            ids = index.list_ids(asked, most + 1, _build_filter(one, looked_up))
        found.update(ids)
        if len(ids) > most:
            return None
    return tuple(sorted(found))


def _requires_words(looked_up: LookedUp) -> bool:
    """Return whether the query requires words in the language of every list."""
    asked = [one for one in looked_up.query.by_language if one.words.required]
    return {*looked_up.filters.lists} == {name for one in asked for name in one.lists}


def _search(
    looked_up: LookedUp, language: LanguageQuery, asked: WordQuery, depth: int
) -> Sequence[WordMatch]:
    index = looked_up.words
    with _naming_remedy(index):
        return index.search(asked, depth, _build_filter(language, looked_up))


def _build_filter(language: LanguageQuery, looked_up: LookedUp) -> Filter | None:
    known = looked_up.filters.word_filter.where
    conditions: list[Filter] = [] if known is None else [known]
    if len(looked_up.query.by_language) > 1:
        conditions.append({"list": {"$in": [*language.lists]}})
    if looked_up.passing.ids is not None:
        conditions.append({"message_id": {"$in": [*looked_up.passing.ids]}})
    return all_of(conditions)


@contextmanager
def _naming_remedy(index: WordIndex) -> Iterator[None]:
    try:
        yield
    except MissingWordsError:
        raise MissingWordsError(
            f"{index.label}: no words are indexed yet; run `mail-assets backfill`, or search with "
            "--mode semantic and without quotes"
        ) from None
