"""The full-text leg: messages by their words, ranked by BM25.

ts_rank knows no rare words: it has no inverse document frequency. Here each lexeme weighs by
how rare it is, and rare ones choose which messages are ranked at all:

    weight = ln(1 + (N - n + 0.5) / (n + 0.5)), n of N messages have the lexeme
    score  = sum of weight * tf * (K1 + 1) / (tf + K1 * (1 - B + B * size / PIVOT))

over the lexemes, an occurrence in the subject counting SUBJECT times; divided by what a message
with every word could have, so that it is 0 to 1. What does not live here: reading a query
(words.py).
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import psycopg

from mail_assets.month import ListMonth
from mail_assets.postgres.statements import statement
from mail_assets.search.candidate import Candidate, Copy
from mail_assets.search.filters import Limits
from mail_assets.search.query import Question, Words, any_of

#: Robertson and Zaragoza's usual values; the subject's is the best of 1, 2 and 4.
K1, B, SUBJECT = 1.2, 0.75, 4
#: Different lexemes of a mean message: 54 to 73 in three lists.
PIVOT = 60
#: What an identifier is worth beside a word, and each of its pieces: a message that has
#: `harbor_lease` comes before those that have the harbor and the lease.
NAME, PIECE = 2.0, 0.25
#: Messages that are ranked, whatever the question: the bound of what a search can cost.
CANDIDATES = 2_000
#: Messages that are named, the same for every page, so that a longer page begins as a shorter.
DEPTH = 300
#: Messages of a lexeme that are counted where Postgres's statistics do not know it.
COUNTED = 5_000


@dataclass(frozen=True)
class Term:
    """A lexeme of a question: in how many messages it is, and its weight."""

    lexeme: str
    messages: int
    weight: float


@dataclass(frozen=True)
class Ranking:
    """What full text found, best first.

    `covered` is the share of the question's weight that is in the best message: 1 where it has
    every word. `terms` are what was looked for.
    """

    candidates: list[Candidate]
    covered: float
    terms: list[Term]


def fulltext(
    connection: psycopg.Connection, questions: Iterable[Question], words: Words, limits: Limits
) -> Ranking:
    """Rank the messages of each language's lists, and the rankings as one."""
    best: dict[str, Candidate] = {}
    covered: dict[str, float] = {}
    terms: list[Term] = []
    for question in questions:
        of_language = _terms(connection, question, words)
        terms += of_language
        for candidate, share in _rank(connection, question, of_language, limits):
            known = best.get(candidate.message_id)
            if known is None or candidate.score > known.score:
                best[candidate.message_id] = candidate
                covered[candidate.message_id] = share
    ranked = sorted(best.values(), key=lambda c: (-c.score, c.message_id))[:DEPTH]
    return Ranking(ranked, covered[ranked[0].message_id] if ranked else 0.0, terms)


def _terms(connection: psycopg.Connection, question: Question, words: Words) -> list[Term]:
    """Return what the question looks for, rarest first."""
    shares = dict.fromkeys([*question.pieces, *words.parts], PIECE)
    shares |= dict.fromkeys(question.lexemes, 1.0) | dict.fromkeys(words.identifiers, NAME)
    lexemes = [*shares]
    rows = connection.execute(
        statement("search", "frequencies"),
        {"lexemes": lexemes, "queries": [any_of([one]) for one in lexemes], "most": COUNTED},
    ).fetchall()
    terms = [
        Term(lexeme, has, shares[lexeme] * math.log(1 + (max(all_ - has, 0) + 0.5) / (has + 0.5)))
        for lexeme, (all_, has) in zip(lexemes, rows, strict=True)
    ]
    return sorted(terms, key=lambda term: (term.messages, term.lexeme))


def _rank(
    connection: psycopg.Connection, question: Question, terms: list[Term], limits: Limits
) -> list[tuple[Candidate, float]]:
    """Return messages of one language with the share of the weight that each has."""
    weight = sum(term.weight for term in terms)
    if not weight:
        return []
    rows = connection.execute(
        limits.statement("fulltext"),
        {
            **limits.parameters,
            "lists": question.lists,
            "question": _choosing(question, terms),
            "queries": [any_of([term.lexeme]) for term in terms],
            "weights": [term.weight for term in terms],
            "k1": K1,
            "k1_1": K1 + 1,
            "b": B,
            "pivot": PIVOT,
            "heading": SUBJECT,
            "candidates": CANDIDATES,
            "most": DEPTH,
        },
    ).fetchall()
    most = weight * (K1 + 1)
    return [
        (
            Candidate(
                message_id,
                Copy(ListMonth(list_name, month), variant),
                thread,
                round(score / most, 6),
            ),
            round(covered / weight, 4),
        )
        for message_id, list_name, month, variant, thread, score, covered in rows
    ]


def _choosing(question: Question, terms: list[Term]) -> str:
    """Return the tsquery that chooses what is ranked.

    All words, an identifier, or any of the rarest lexemes that stand in CANDIDATES messages
    together; where even the rarest stands in more, that one beside any other. The index finds
    these without reading what else is common.
    """
    there = [term for term in terms if term.messages]
    rare, messages = [], 0
    for term in there:
        messages += term.messages
        if messages > CANDIDATES:
            break
        rare.append(term.lexeme)
    if rare:
        chosen = any_of(rare)
    elif len(there) > 1:
        chosen = f"{any_of([there[0].lexeme])} & ({any_of(t.lexeme for t in there[1:])})"
    else:
        chosen = any_of(term.lexeme for term in there)
    wide = f"{question.narrow} | {chosen}" if chosen else question.narrow
    return f"({wide}) & ({question.required})" if question.required else wide
