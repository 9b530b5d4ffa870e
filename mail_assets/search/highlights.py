"""The words of a query in the text of a chunk, and their places in the message's body."""

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
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
    """Where a text has words of the query, ascending and disjoint, and their lexemes' weight.

    `lexemes` has that of each span.
    """

    spans: list[Span]
    weight: float
    lexemes: list[str]


class Highlighter:
    """Finds a query's words in texts; built once for the texts of a page.

    `stems` maps words of the texts, in lower case, to the lexeme of the query that is their stem;
    `identifiers` are found as they are written, in any case.
    """

    def __init__(
        self, stems: Mapping[str, str], identifiers: Collection[str], terms: Iterable[Term]
    ) -> None:
        self._stems = stems
        self._beginnings = {word[:PREFIX] for word in stems}
        self._names = {name.lower() for name in identifiers}
        self._weights = {term.lexeme: term.weight for term in terms}

    def find(self, text: str) -> Highlights:
        """Return the words of the query in a text."""
        lowered = _lower(text)
        found = [
            one for one in _find_beginnings(lowered, self._beginnings) if one[1] in self._stems
        ]
        found += ((at, name) for name in self._names for at in _find_starts(lowered, name))
        # A name comes before its pieces, which are not found beside it.
        found.sort(key=lambda one: (one[0], -len(one[1])))
        spans: list[Span] = []
        lexemes: list[str] = []
        for start, word in found:
            if not spans or start >= spans[-1][1]:
                spans.append((start, start + len(word)))
                lexemes.append(self._stems.get(word, word))
        return Highlights(spans, self.weigh(lexemes), lexemes)

    def weigh(self, lexemes: Iterable[str]) -> float:
        """Return what some lexemes weigh together, each once."""
        # fsum: a set has another order in each process, and a rounded sum would follow it
        return math.fsum(self._weights.get(lexeme, 0.0) for lexeme in {*lexemes})


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
        lowered = [_lower(text) for text in texts]
        stems: dict[str, str] = {}
        for one in query.by_language:
            wanted = {*one.lexemes, *one.pieces}
            beginnings = {lexeme[:PREFIX] for lexeme in wanted}
            alike = sorted(
                {word for text in lowered for _, word in _find_beginnings(text, beginnings)}
            )
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


def _lower(text: str) -> str:
    """Return a text in lower case, every character at its place: of a few it would be two."""
    lowered = text.lower()
    if len(lowered) == len(text):
        return lowered
    return "".join(low if len(low := one.lower()) == 1 else one for one in text)


def _find_beginnings(text: str, beginnings: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Yield where a text has words whose first characters, PREFIX or fewer, are one of these.

    To search for each beginning takes a third of the time of a pattern of any word.
    """
    for beginning in beginnings:
        for at in _find_starts(text, beginning):
            word = _WORD.match(text, at)
            if word and word[0][:PREFIX] == beginning:
                yield at, word[0]


def _find_starts(text: str, part: str) -> Iterator[int]:
    """Yield where a text has a part that does not begin within a word."""
    at = text.find(part)
    while at >= 0:
        if at == 0 or not (text[at].isalnum() and text[at - 1].isalnum()):
            yield at
        at = text.find(part, at + 1)
