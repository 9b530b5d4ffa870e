"""A question as an index of words takes it: what ranks, what every hit has, what none has."""

from typing import NamedTuple

#: Shares are multiples of this; a backend rounds others.
SHARE_STEP = 0.25
#: Characters of a prefix that every backend compares.
EXACT_PREFIX = 8


class Term(NamedTuple):
    """A lexeme that ranks; `share`, in steps of 0.25, is what it counts beside others so rare."""

    lexeme: str
    share: float = 1.0


class Phrase(NamedTuple):
    """Lexemes that follow each other; words without one (stop words) between them are ignored."""

    lexemes: tuple[str, ...]


class Prefix(NamedTuple):
    """Any lexeme that begins so."""

    text: str


#: A lexeme, or something that takes several.
Clause = str | Phrase | Prefix


class WordQuery(NamedTuple):
    """What a message is ranked by, and what it must and must not have.

    `terms` rank: a hit has at least one of them, unless there are none. `required` is a conjunction
    of alternatives: a hit has at least one clause of each. `excluded`: a hit has none of these.
    Of a prefix a backend may ignore what is beyond EXACT_PREFIX characters: it then finds too much,
    so none that is excluded is longer. The first 100 terms count; give the rare ones first.
    """

    terms: tuple[Term, ...]
    required: tuple[tuple[Clause, ...], ...] = ()
    excluded: tuple[Clause, ...] = ()
