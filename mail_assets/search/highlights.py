"""The words of a question in the text of a chunk, and where they stand in the message's body."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import psycopg

from mail_assets.search.fulltext import Term
from mail_assets.search.response import Span
from mail_assets.search.words import Question
from mail_assets.store.statements import statement

_WORD = re.compile(r"[^\W_]+")
#: Stemmers change the end of a word: words that begin otherwise are not asked about.
PREFIX = 3


class Marks(NamedTuple):
    """Where a chunk's text has words of the question, ascending, and their lexemes' weight."""

    spans: list[Span]
    weight: float


class Highlighter:
    """Finds a question's words in texts; made once for the texts of a page.

    `stems` are the words of the texts that have a lexeme of the question as their stem, by
    lower case; `names` are identifiers, found as they are written, whatever their case.
    """

    def __init__(self, stems: Mapping[str, str], names: Collection[str], terms: Iterable[Term]):
        self._stems = stems
        self._weights = {term.lexeme: term.weight for term in terms}
        pattern = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
        self._names = re.compile(pattern, re.IGNORECASE) if pattern else None

    def marks(self, text: str) -> Marks:
        """Return the marks in a text; names before the words that they are made of."""
        spans: list[Span] = []
        found: set[str] = set()
        if self._names:
            for match in self._names.finditer(text):
                spans.append(match.span())
                found.add(match[0].lower())
        for match in _WORD.finditer(text):
            lexeme = self._stems.get(match[0].lower())
            if lexeme is not None:
                found.add(lexeme)
                if not any(s < match.end() and match.start() < e for s, e in spans):
                    spans.append(match.span())
        return Marks(sorted(spans), sum(self._weights.get(one, 0.0) for one in found))


def read_stems(
    connection: psycopg.Connection, questions: Sequence[Question], texts: Iterable[str]
) -> dict[str, str]:
    """Return the words of the texts that are words of the questions: word -> lexeme."""
    words = {match[0].lower() for text in texts for match in _WORD.finditer(text)}
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
