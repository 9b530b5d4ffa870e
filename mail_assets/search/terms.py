"""The lexemes of a query and how much each weighs: rare ones weigh more.

    weight = share * ln(1 + (N - n + 0.5) / (n + 0.5)), n of N messages contain the lexeme

which is the inverse document frequency of BM25 (Robertson, Zaragoza 2009).
"""

import math
from dataclasses import dataclass
from typing import Any

from mail_assets.search.frequencies import Frequencies
from mail_assets.search.query import LanguageQuery

#: Terms that are searched for, the heaviest; a pasted page has hundreds, and is found by these.
MAX_TERMS = 64


@dataclass(frozen=True)
class Term:
    """A lexeme of a query: about how many messages contain it, its share and its weight.

    `is_named`: the statistics name it; of others is only known that they are rarer.
    """

    lexeme: str
    messages: int
    weight: float
    share: float = 1.0
    is_named: bool = True

    def explain(self) -> dict[str, Any]:
        """Return it as JSON; the number of messages is null where it is not known."""
        known = self.messages if self.is_named else None
        return {
            "lexeme": self.lexeme,
            "messages": known,
            "weight": self.weight,
            "share": self.share,
        }


def weigh_terms(query: LanguageQuery, frequencies: Frequencies) -> list[Term]:
    """Return the terms of a query in one language, rarest first."""
    terms = [_weigh(one.lexeme, one.share, frequencies) for one in query.words.terms]
    heaviest = sorted(terms, key=lambda term: (-term.weight, term.lexeme))[:MAX_TERMS]
    return sorted(heaviest, key=lambda term: (term.messages, term.lexeme))


def _weigh(lexeme: str, share: float, frequencies: Frequencies) -> Term:
    messages = frequencies.count(lexeme)
    others = max(frequencies.messages - messages, 0)
    rarity = math.log(1 + (others + 0.5) / (messages + 0.5))
    return Term(lexeme, messages, share * rarity, share, frequencies.names(lexeme))
