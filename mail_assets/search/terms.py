"""The lexemes of a query and how much each weighs: rare ones weigh more.

    weight = share * ln(1 + (N - n + 0.5) / (n + 0.5)), n of N messages contain the lexeme

which is the inverse document frequency of BM25 (Robertson, Zaragoza 2009).
"""

import math
from dataclasses import dataclass

import psycopg

from mail_assets.postgres.statements import statement
from mail_assets.search.lexemes import match_any
from mail_assets.search.query import LanguageQuery

#: Messages counted of a lexeme that PostgreSQL's statistics do not know.
MAX_COUNTED = 5_000


@dataclass(frozen=True)
class Term:
    """A lexeme of a query: how many messages contain it, and its weight."""

    lexeme: str
    messages: int
    weight: float


def weigh_terms(connection: psycopg.Connection, query: LanguageQuery) -> list[Term]:
    """Return the terms of a query in one language, rarest first."""
    shares = {term.lexeme: term.share for term in query.words.terms}
    lexemes = [*shares]
    rows = connection.execute(
        statement("search", "frequencies"),
        {
            "lexemes": lexemes,
            "queries": [match_any([lexeme]) for lexeme in lexemes],
            "most": MAX_COUNTED,
        },
    ).fetchall()
    terms = [
        Term(lexeme, messages, shares[lexeme] * _inverse_frequency(corpus, messages))
        for lexeme, (corpus, messages) in zip(lexemes, rows, strict=True)
    ]
    return sorted(terms, key=lambda term: (term.messages, term.lexeme))


def _inverse_frequency(corpus: int, messages: int) -> float:
    """Return the weight of a lexeme that `messages` of all in the corpus contain."""
    return math.log(1 + (max(corpus - messages, 0) + 0.5) / (messages + 0.5))
