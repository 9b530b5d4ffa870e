"""The lexemes of a query and how much each weighs: rare ones weigh more.

    weight = share * ln(1 + (N - n + 0.5) / (n + 0.5)), n of N messages contain the lexeme

which is the inverse document frequency of BM25 (Robertson, Zaragoza 2009).
"""

import math
from dataclasses import dataclass

from mail_assets.search.frequencies import Frequencies
from mail_assets.search.query import LanguageQuery

#: Terms that are searched for, the heaviest; a pasted page has hundreds, and is found by these.
MAX_TERMS = 64


@dataclass(frozen=True)
class Term:
    """A lexeme of a query: about how many messages contain it, its share and its weight."""

    lexeme: str
    messages: int
    weight: float
    share: float = 1.0


def weigh_terms(query: LanguageQuery, frequencies: Frequencies) -> list[Term]:
    """Return the terms of a query in one language, rarest first."""
    terms = [
        _weigh(one.lexeme, one.share, frequencies.count(one.lexeme), frequencies.messages)
        for one in query.words.terms
    ]
    heaviest = sorted(terms, key=lambda term: (-term.weight, term.lexeme))[:MAX_TERMS]
    return sorted(heaviest, key=lambda term: (term.messages, term.lexeme))


def _weigh(lexeme: str, share: float, messages: int, corpus: int) -> Term:
    """Return a lexeme that `messages` of all in the corpus contain, with its weight."""
    rarity = math.log(1 + (max(corpus - messages, 0) + 0.5) / (messages + 0.5))
    return Term(lexeme, messages, share * rarity, share)
