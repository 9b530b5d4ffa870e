"""The words of a query in the text of a chunk, and their places in the message's body."""

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import psycopg

from mail_assets.postgres.statements import statement
from mail_assets.search.query import LanguageQuery, Query
from mail_assets.search.response import Span
from mail_assets.search.terms import Term

_WORD = re.compile(r"[^\W_]+")
#: Stemmers change the end of a word: only words that begin as a lexeme does are stemmed.
PREFIX = 3


class Highlights(NamedTuple):
    """Where a text has words of the query, ascending and disjoint, and their lexemes' weight."""

    spans: list[Span]
    weight: float


class Highlighter:
    """Finds a query's words in texts; built once for the texts of a page.

    `stems` maps words of the texts, in lower case, to the lexeme of the query that is their stem;
    `identifiers` are found as they are written, in any case.
    """

    def __init__(
        self, stems: Mapping[str, str], identifiers: Collection[str], terms: Iterable[Term]
    ) -> None:
        self._stems = stems
        self._weights = {term.lexeme: term.weight for term in terms}
        # Identifiers first: they are longer than their pieces.
        patterns = [_alternatives(identifiers)] if identifiers else []
        patterns += [rf"(?<![^\W_])(?:{_alternatives(stems)})(?![^\W_])"] if stems else []
        self._pattern = re.compile("|".join(patterns), re.IGNORECASE) if patterns else None

    def find(self, text: str) -> Highlights:
        """Return the words of the query in a text."""
        if self._pattern is None:
            return Highlights([], 0.0)
        matches = [*self._pattern.finditer(text)]
        words = {match[0].lower() for match in matches}
        lexemes = {self._stems.get(word, word) for word in words}
        # fsum: a set has another order in each process, and a rounded sum would follow it
        weight = math.fsum(self._weights.get(lexeme, 0.0) for lexeme in lexemes)
        return Highlights([match.span() for match in matches], weight)


def build_highlighter(
    connection: psycopg.Connection,
    query: Query | None,
    terms: Iterable[Term],
    texts: Iterable[str],
) -> Highlighter:
    """Return a highlighter of a query for some texts; one that finds nothing without a query."""
    if query is None:
        return Highlighter({}, (), ())
    stems = read_stems(connection, query.by_language, texts)
    return Highlighter(stems, query.parsed.identifiers, terms)


def read_stems(
    connection: psycopg.Connection, queries: Sequence[LanguageQuery], texts: Iterable[str]
) -> dict[str, str]:
    """Return the words of the texts that are words of the query: word -> lexeme."""
    words = {word for text in texts for word in _WORD.findall(text.lower())} if queries else set()
    stems: dict[str, str] = {}
    for query in queries:
        lexemes = {*query.lexemes, *query.pieces}
        prefixes = {lexeme[:PREFIX] for lexeme in lexemes}
        alike = sorted(word for word in words if word[:PREFIX] in prefixes)
        if alike:
            parameters = {"language": query.language, "words": alike, "lexemes": [*lexemes]}
            stems |= dict(connection.execute(statement("search", "stems"), parameters).fetchall())
    return stems


def to_body_spans(spans: Iterable[Span], chunk: Sequence[Span]) -> tuple[Span, ...]:
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


def _alternatives(words: Iterable[str]) -> str:
    return "|".join(map(re.escape, sorted(words, key=len, reverse=True)))
