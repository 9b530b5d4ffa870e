"""The full-text leg: messages ranked by BM25.

PostgreSQL's ts_rank knows no rare words: it has no inverse document frequency. Here each lexeme
weighs by how rare it is (terms.py), and the rare ones choose which messages are ranked at all:

    score = sum of weight * tf * (K1 + 1) / (tf + K1 * (1 - B + B * size / PIVOT_SIZE))

over the lexemes, an occurrence in the subject counting SUBJECT_WEIGHT times; divided by the score
of a message with every lexeme, so that it is 0 to 1 (Robertson, Zaragoza 2009).
"""

from dataclasses import dataclass

import psycopg

from mail_assets.month import ListMonth
from mail_assets.search.candidates import Candidate, MessageCopy
from mail_assets.search.filters import MessageFilter
from mail_assets.search.lexemes import match_any
from mail_assets.search.query import LanguageQuery, Query
from mail_assets.search.terms import Term, weigh_terms

#: Robertson and Zaragoza's usual values; the subject's is the best of 1, 2 and 4.
K1, B, SUBJECT_WEIGHT = 1.2, 0.75, 4
#: Distinct lexemes of a mean message: 54 to 73 in three lists.
PIVOT_SIZE = 60
#: Messages that are ranked, whatever the query: this bounds the cost of a search.
MAX_RANKED = 2_000
#: Messages that are returned, the same for every page, so that a longer page begins as a shorter.
MAX_RETURNED = 300


@dataclass(frozen=True)
class FulltextRanking:
    """What full text found, best first.

    `covered` is the share of the query's weight that the best message contains: 1 where it has
    every term. `terms` are those that were searched for.
    """

    candidates: list[Candidate]
    covered: float
    terms: list[Term]


def rank_fulltext(
    connection: psycopg.Connection, query: Query, filters: MessageFilter
) -> FulltextRanking:
    """Rank the messages of each language's lists, and merge the rankings by score."""
    best: dict[str, Candidate] = {}
    covered: dict[str, float] = {}
    terms: list[Term] = []
    for one in query.by_language:
        weighed = weigh_terms(connection, one)
        terms += weighed
        for candidate, share in _rank_language(connection, one, weighed, filters):
            known = best.get(candidate.message_id)
            if known is None or candidate.score > known.score:
                best[candidate.message_id] = candidate
                covered[candidate.message_id] = share
    ranked = sorted(best.values(), key=lambda c: (-c.score, c.message_id))[:MAX_RETURNED]
    return FulltextRanking(ranked, covered[ranked[0].message_id] if ranked else 0.0, terms)


def _rank_language(
    connection: psycopg.Connection,
    query: LanguageQuery,
    terms: list[Term],
    filters: MessageFilter,
) -> list[tuple[Candidate, float]]:
    """Return messages of one language, each with the share of the weight that it contains."""
    weight = sum(term.weight for term in terms)
    if not weight:
        return []
    rows = connection.execute(
        filters.statement("fulltext"),
        {
            **filters.parameters,
            "lists": query.lists,
            "question": _selecting_query(query, terms),
            "queries": [match_any([term.lexeme]) for term in terms],
            "weights": [term.weight for term in terms],
            "k1": K1,
            "k1_1": K1 + 1,
            "b": B,
            "pivot": PIVOT_SIZE,
            "heading": SUBJECT_WEIGHT,
            "candidates": MAX_RANKED,
            "most": MAX_RETURNED,
        },
    ).fetchall()
    max_score = weight * (K1 + 1)
    ranked = []
    for message_id, list_name, month, variant, thread_id, score, covered in rows:
        copy = MessageCopy(ListMonth(list_name, month), variant)
        candidate = Candidate(message_id, copy, thread_id, round(score / max_score, 6))
        ranked.append((candidate, round(covered / weight, 4)))
    return ranked


def _selecting_query(query: LanguageQuery, terms: list[Term]) -> str:
    """Return the tsquery that selects the messages to rank.

    All words, an identifier, or any of the rarest lexemes that occur in MAX_RANKED messages
    together; where even the rarest occurs in more, that one beside any other. The index finds
    these without reading the common ones.
    """
    occurring = [term for term in terms if term.messages]
    rare, messages = [], 0
    for term in occurring:
        messages += term.messages
        if messages > MAX_RANKED:
            break
        rare.append(term.lexeme)
    if rare:
        selected = match_any(rare)
    elif len(occurring) > 1:
        rarest, *others = (term.lexeme for term in occurring)
        selected = f"{match_any([rarest])} & ({match_any(others)})"
    else:
        selected = match_any(term.lexeme for term in occurring)
    wide = f"{query.narrow} | {selected}" if selected else query.narrow
    return f"({wide}) & ({query.required})" if query.required else wide
