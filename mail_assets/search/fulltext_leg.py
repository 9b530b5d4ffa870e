"""The full-text leg: messages ranked by BM25 over the index of words.

The index ranks all messages (words/). Here its score becomes the share of what the query could
reach at most, sum of weight * (K1 + 1) over its lexemes (Robertson, Zaragoza 2009), so that it is
0 to 1 and says the same in every query and language.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from mail_assets.search.candidates import Candidate, MessageCopy
from mail_assets.search.filters import MessageFilter
from mail_assets.search.frequencies import Frequencies
from mail_assets.search.query import LanguageQuery, Query
from mail_assets.search.stored import WordHit
from mail_assets.search.terms import Term, weigh_terms
from mail_assets.vectors.filters import Filter
from mail_assets.words import query as words
from mail_assets.words.document import WordMatch
from mail_assets.words.errors import MissingWordsError
from mail_assets.words.index import WordIndex

#: Robertson and Zaragoza's value, which the index has.
K1 = 1.2
#: Messages that are ranked, the same for every page, so that a longer page begins as a shorter;
#: where filters are applied after the index, more until so many pass, up to MAX_DEPTH.
FULLTEXT_DEPTH, MAX_DEPTH = 300, 10_000


@dataclass(frozen=True)
class FulltextRanking:
    """What full text found, best first.

    `covered` is the share of the query's weight that the best message contains: 1 where it has
    every term. `terms` are those that were searched for.
    """

    candidates: list[Candidate]
    covered: float
    terms: list[Term]


@dataclass(frozen=True)
class LanguageTerms:
    """A query in the stems of one language and what each of them weighs."""

    query: LanguageQuery
    terms: list[Term]

    @property
    def weight(self) -> float:
        """The weight of all terms."""
        return sum(term.weight for term in self.terms)


def weigh_query(query: Query, frequencies: Frequencies) -> list[LanguageTerms]:
    """Return the terms of a query in each of its languages."""
    return [LanguageTerms(one, weigh_terms(one, frequencies)) for one in query.by_language]


def search_words(
    index: WordIndex,
    languages: Sequence[LanguageTerms],
    filters: MessageFilter,
    passing: Collection[str] | None = None,
    depth: int = FULLTEXT_DEPTH,
) -> list[WordHit]:
    """Return up to `depth` copies of messages that have a term and the required words, best first.

    Filters that the index does not know are not applied, and phrases over stop words not exactly:
    see stored.py. `passing` are the ids of the few messages that pass, where somebody knows them.

    Raises:
        WordsError: the index is missing or fails.
    """
    if passing is not None and not passing:
        return []
    hits: list[WordHit] = []
    for language in languages:
        if not language.weight:
            continue
        where = _where(language.query, filters, passing, alone=len(languages) == 1)
        matches = _search(index, _word_query(language), depth, where)
        # frequencies are estimates: the best is never beyond what can be reached
        best = max(language.weight * (K1 + 1), matches[0].score if matches else 0.0)
        for match in matches:
            copy = MessageCopy(match.month, match.variant)
            hits.append(WordHit(match.message_id, copy, round(match.score / best, 6)))
    return sorted(hits, key=lambda hit: (-hit.score, hit.message_id, hit.copy))[:depth]


def find_required(
    index: WordIndex, query: Query, filters: MessageFilter, most: int
) -> list[str] | None:
    """Return the ids of the messages that have the words that a query requires, newest first.

    None where they are more than `most`, or no word is required.
    """
    found: dict[str, None] = {}
    for one in query.by_language:
        if not one.words.required:
            return None
        asked = one.words._replace(terms=())
        where = _where(one, filters, None, alone=len(query.by_language) == 1)
        matches = _search(index, asked, most + 1, where)
        found |= dict.fromkeys(match.message_id for match in matches)
        if len(matches) > most:
            return None
    return [*found]


def measure_coverage(languages: Iterable[LanguageTerms], lexemes: frozenset[str]) -> float:
    """Return the share of a query's weight that some lexemes have, in the language that fits."""
    shares = [
        sum(term.weight for term in one.terms if term.lexeme in lexemes) / one.weight
        for one in languages
        if one.weight
    ]
    return round(max(shares, default=0.0), 4)


def _search(
    index: WordIndex, asked: words.WordQuery, top_k: int, where: Filter | None
) -> list[WordMatch]:
    try:
        return index.search(asked, top_k, where)
    except MissingWordsError:
        raise MissingWordsError(
            f"{index.label}: no words are indexed yet; run `mail-assets backfill`, or search with "
            "--mode semantic and without quotes"
        ) from None


def _word_query(language: LanguageTerms) -> words.WordQuery:
    """Return the query of a language with its heaviest terms alone."""
    terms = tuple(words.Term(term.lexeme, term.share) for term in language.terms)
    return language.query.words._replace(terms=terms)


def _where(
    query: LanguageQuery, filters: MessageFilter, passing: Collection[str] | None, *, alone: bool
) -> Filter | None:
    """Return the filter for the index: what it knows, in the lists of a language."""
    conditions: list[Filter] = [*filters.word_filters]
    if not alone:
        conditions.append({"list": {"$in": [*query.lists]}})
    if passing is not None:
        conditions.append({"message_id": {"$in": sorted(passing)}})
    if not conditions:
        return None
    return conditions[0] if len(conditions) == 1 else {"$and": conditions}
