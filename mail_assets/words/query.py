"""A query of an index of words: what ranks, what a hit must have, what it must not have."""

from typing import NamedTuple

#: Shares are multiples of this; a backend rounds others.
SHARE_STEP = 0.25
#: Characters of a prefix that every backend compares.
EXACT_PREFIX = 8


class Term(NamedTuple):
    """A lexeme that ranks; `share`, in steps of SHARE_STEP, is its weight among others."""

    lexeme: str
    share: float = 1.0


class Phrase(NamedTuple):
    """Lexemes that follow each other; stop words between them are ignored."""

    lexemes: tuple[str, ...]


class Prefix(NamedTuple):
    """Any lexeme with this beginning."""

    text: str


#: A lexeme, or what several lexemes can match.
Clause = str | Phrase | Prefix


class WordQuery(NamedTuple):
    """Terms that rank messages, and clauses that a hit must or must not have.

    A hit has at least one of `terms`, if there are any, at least one clause of each element of
    `required`, and no clause of `excluded`. A backend may ignore the characters of a prefix after
    the first EXACT_PREFIX and find too much, so excluded prefixes are not longer. The first 100
    terms count; give the rare ones first.

    Without terms the newest come first, or the oldest where `oldest_from` is given: the time, in
    seconds since 1970, at which the first messages were sent. It saves time alone; others may be
    older.
    """

    terms: tuple[Term, ...]
    required: tuple[tuple[Clause, ...], ...] = ()
    excluded: tuple[Clause, ...] = ()
    oldest_from: float | None = None
