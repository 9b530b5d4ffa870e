"""The words of a question in the text of a chunk, and where they stand in the message's body."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import psycopg

from mail_assets.postgres.statements import statement
from mail_assets.search.fulltext import Term
from mail_assets.search.query import Question
from mail_assets.search.response import Span

_WORD = re.compile(r"[^\W_]+")
#: Stemmers change the end of a word: words that begin otherwise are not asked about.
PREFIX = 3


class Marks(NamedTuple):
    """Where a text has words of the question, ascending and apart, and their lexemes' weight."""

    spans: list[Span]
    weight: float


class Highlighter:
    """Finds a question's words in texts; made once for the texts of a page.

    `stems` are words of the texts, in lower case, with the lexeme of the question that is their
    stem; `names` are identifiers, found as they are written, whatever their case.
    """

    def __init__(
        self, stems: Mapping[str, str], names: Collection[str], terms: Iterable[Term]
    ) -> None:
        self._stems = stems
        self._weights = {term.lexeme: term.weight for term in terms}
        patterns = [_any(names)] if names else []  # first: they are longer than their pieces
        patterns += [rf"(?<![^\W_])(?:{_any(stems)})(?![^\W_])"] if stems else []
        self._pattern = re.compile("|".join(patterns), re.IGNORECASE) if patterns else None

    def marks(self, text: str) -> Marks:
        """Return the marks in a text."""
        if self._pattern is None:
            return Marks([], 0.0)
        matches = [*self._pattern.finditer(text)]
        words = {match[0].lower() for match in matches}
        lexemes = {self._stems.get(word, word) for word in words}
        weight = sum(self._weights.get(lexeme, 0.0) for lexeme in lexemes)
        return Marks([match.span() for match in matches], weight)


def read_stems(
    connection: psycopg.Connection, questions: Sequence[Question], texts: Iterable[str]
) -> dict[str, str]:
    """Return the words of the texts that are words of the questions: word -> lexeme."""
    words = {word for text in texts for word in _WORD.findall(text.lower())}
    stems: dict[str, str] = {}
    for question in questions:
        lexemes = {*question.lexemes, *question.pieces}
        beginnings = {lexeme[:PREFIX] for lexeme in lexemes}
        like = sorted(word for word in words if word[:PREFIX] in beginnings)
        if like:
            parameters = {"language": question.language, "words": like, "lexemes": [*lexemes]}
            stems |= dict(connection.execute(statement("search", "stems"), parameters).fetchall())
    return stems


def in_body(spans: Iterable[Span], chunk: Sequence[Span]) -> tuple[Span, ...]:
    """Return spans of a chunk's text as spans of the body, cut where the chunk's are.

    `chunk` are the spans of the body that make the text, one after the other.
    """
    found: list[Span] = []
    for start, end in spans:
        at = 0
        for body_start, body_end in chunk:
            length = body_end - body_start
            low, high = max(start, at), min(end, at + length)
            if low < high:
                found.append((body_start + low - at, body_start + high - at))
            at += length
    return tuple(found)


def _any(words: Iterable[str]) -> str:
    return "|".join(map(re.escape, sorted(words, key=len, reverse=True)))
