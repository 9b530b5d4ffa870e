"""The words of a query in the text of a chunk, and their places in the message's body."""

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import psycopg

from mail_assets.postgres.statements import statement
from mail_assets.search.query import Query
from mail_assets.search.response import Span
from mail_assets.search.terms import Term

_WORD = re.compile(r"[^\W_]+")
#: Stemmers change the end of a word: only words that begin as a lexeme does are stemmed.
PREFIX = 3
#: Words of a language whose stems are kept, and those of one page more.
KEPT_WORDS = 50_000


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
        self._wanted = {*stems, *(name.lower() for name in identifiers)}
        # Identifiers first: they are longer than their pieces. A pattern of every word wanted would
        # take four times as long as one of any word.
        names = [_alternatives(identifiers)] if identifiers else []
        self._pattern = re.compile("|".join([*names, _WORD.pattern]), re.IGNORECASE)

    def find(self, text: str) -> Highlights:
        """Return the words of the query in a text."""
        if not self._wanted:
            return Highlights([], 0.0)
        found = [
            (match.span(), word)
            for match in self._pattern.finditer(text)
            if (word := match[0].lower()) in self._wanted
        ]
        lexemes = {self._stems.get(word, word) for _, word in found}
        # fsum: a set has another order in each process, and a rounded sum would follow it
        weight = math.fsum(self._weights.get(lexeme, 0.0) for lexeme in lexemes)
        return Highlights([span for span, _ in found], weight)


class StemReader:
    """Reads the stems of words over one connection, of each word once."""

    def __init__(self, connection: psycopg.Connection) -> None:
        self._connection = connection
        self._lexemes: dict[str, dict[str, list[str]]] = {}

    def build_highlighter(
        self, query: Query | None, terms: Iterable[Term], texts: Iterable[str]
    ) -> Highlighter:
        """Return a highlighter of a query for some texts; without a query it finds nothing."""
        if query is None:
            return Highlighter({}, (), ())
        return Highlighter(self._find_words(query, texts), query.parsed.identifiers, terms)

    def _find_words(self, query: Query, texts: Iterable[str]) -> dict[str, str]:
        """Return the words of the texts that are words of the query: word -> lexeme."""
        words = {word for text in texts for word in _WORD.findall(text.lower())}
        stems: dict[str, str] = {}
        for one in query.by_language:
            wanted = {*one.lexemes, *one.pieces}
            prefixes = {lexeme[:PREFIX] for lexeme in wanted}
            alike = sorted(word for word in words if word[:PREFIX] in prefixes)
            known = self._read(one.language, alike)
            stems |= {word: own for word in alike for own in known[word] if own in wanted}
        return stems

    def _read(self, language: str, words: Iterable[str]) -> Mapping[str, list[str]]:
        """Return the lexemes of these words, among others."""
        known = self._lexemes.setdefault(language, {})
        if len(known) > KEPT_WORDS:
            known.clear()
        if unknown := [word for word in words if word not in known]:
            parameters = {"language": language, "words": unknown}
            known |= dict(self._connection.execute(statement("search", "stems"), parameters))
        return known


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
