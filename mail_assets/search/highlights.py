"""The words of a query in the text of a chunk, and their places in the message's body.

[text_weights] How much of a query a text or a thread has: its words weigh as in search, rare ones more.
"""

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from typing import NamedTuple

import psycopg

from mail_assets.postgres.statements import statement
from mail_assets.search.fulltext import measure_coverage, weigh_query
from mail_assets.search.lexemes import match_any
from mail_assets.search.live_index import LookedUp
from mail_assets.search.query import Query, WeighedTerm
from mail_assets.search.response import Span
from mail_assets.text.letters import distinct_words, find_words, is_unspaced

#: Words, and what stands between blanks, that are kept as read, and those of one page more.
KEPT_WORDS = 100_000
_TO_BLANK = re.compile(r"[^ \n]*")


class Highlights(NamedTuple):
    """Where a text has words of the query, ascending and disjoint, and their lexemes' weight.

    `lexemes` has those of each span: several where pairs of unspaced letters overlap.
    """

    spans: list[Span]
    weight: float
    lexemes: list[set[str]]


class Highlighter:
    """Finds a query's words in texts; built once for the texts of a page.

    `stems` maps words of the texts, in lower case, to the lexeme of the query that is their stem;
    `identifiers` are found as they are written, in any case. Pairs of unspaced letters that overlap
    are one span.
    """

    def __init__(
        self, stems: Mapping[str, str], identifiers: Collection[str], terms: Iterable[WeighedTerm]
    ) -> None:
        self._stems = stems
        self._names = {name.lower() for name in identifiers}
        self._weights = {term.lexeme: term.weight for term in terms}

    def find(self, text: str) -> Highlights:
        """Return the words of the query in a text."""
        lowered = _lower(text)
        found = [*_find_wanted(lowered, self._stems)]
        found += ((at, name) for name in self._names for at in _find_starts(lowered, name))
        # A name comes before its pieces, which are not found beside it.
        found.sort(key=lambda one: (one[0], -len(one[1])))
        spans: list[Span] = []
        lexemes: list[set[str]] = []
        for start, word in found:
            overlaps = bool(spans) and start < spans[-1][1]
            if overlaps and not is_unspaced(word):
                continue
            first = spans.pop()[0] if overlaps else start
            spans.append((first, start + len(word)))
            if not overlaps:
                lexemes.append(set())
            lexemes[-1].add(self._stems.get(word, word))
        weight = self.weigh(set[str]().union(*lexemes))
        return Highlights(spans, weight, lexemes)

    def weigh(self, lexemes: Set[str]) -> float:
        """Return what some lexemes weigh together."""
        # fsum: a set has another order in each process, and a rounded sum would follow it
        return math.fsum(self._weights.get(lexeme, 0.0) for lexeme in lexemes)


class StemReader:
    """Reads the stems of words over one connection, of each word once."""

    def __init__(self, connection: psycopg.Connection) -> None:
        self._connection = connection
        #: Of each language what was read, words and all between blanks that has them, and the words
        #: of each of its lexemes. To take a text apart at blanks is a fifth of finding its words.
        self._known: dict[str, set[str]] = {}
        self._of_lexeme: dict[tuple[str, str], set[str]] = {}

    def build_highlighter(
        self, query: Query | None, terms: Iterable[WeighedTerm], texts: Iterable[str]
    ) -> Highlighter:
        """Return a highlighter of a query for some texts; without a query it finds nothing."""
        if query is None:
            return Highlighter({}, (), ())
        return Highlighter(self._find_words(query, texts), query.parsed.identifiers, terms)

    def _find_words(self, query: Query, texts: Iterable[str]) -> dict[str, str]:
        """Return the words of these and other texts that are words of the query: word -> lexeme.

        A stem need not begin as its word does (umlauts, the article of Arabic), so that of every
        word is asked for.
        """
        wanted = {one.language: {*one.lexemes, *one.pieces} for one in query.by_language}
        parts = set[str]().union(*(_lower(text).split() for text in texts))
        self._read([language for language, lexemes in wanted.items() if lexemes], parts)
        stems: dict[str, str] = {}
        for language, lexemes in wanted.items():
            for lexeme in sorted(lexemes):
                stems |= dict.fromkeys(self._of_lexeme.get((language, lexeme), ()), lexeme)
        return stems

    def _read(self, languages: Sequence[str], parts: set[str]) -> None:
        """Read the lexemes of the words in parts of texts, of all languages in one statement."""
        if sum(map(len, self._known.values())) > KEPT_WORDS:
            self._known.clear()
            self._of_lexeme.clear()
        fresh: dict[str, set[str]] = {}
        unknown: list[tuple[str, str]] = []
        for language in languages:
            known = self._known.setdefault(language, set())
            if others := parts.difference(known):
                words = distinct_words(others)
                unknown += ((language, word) for word in sorted(words - known))
                fresh[language] = others | words
        if unknown:
            asked, unread = zip(*unknown, strict=True)
            parameters = {"languages": [*asked], "words": [*unread]}
            rows = self._connection.execute(statement("search", "stems"), parameters).fetchall()
            for language, word, lexemes in rows:
                for lexeme in lexemes:
                    self._of_lexeme.setdefault((language, lexeme), set()).add(word)
        for language, read in fresh.items():
            self._known[language] |= read


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


def _find_wanted(text: str, wanted: Collection[str]) -> Iterator[tuple[int, str]]:
    """Yield where a text has words that are wanted.

    What stands between blanks around each place is looked at: all words of a text take eight times
    as long.
    """
    for start, end in {*_find_surroundings(text, wanted)}:
        for at, word in find_words(text[start:end]):
            if word in wanted:
                yield start + at, word


def _find_surroundings(text: str, parts: Iterable[str]) -> Iterator[tuple[int, int]]:
    """Yield from which blank to which the parts stand."""
    for part in parts:
        at = text.find(part)
        while at >= 0:
            end = _TO_BLANK.match(text, at).end()  # type: ignore[union-attr]  # may be empty
            yield max(text.rfind(" ", 0, at), text.rfind("\n", 0, at)) + 1, end
            at = text.find(part, end)


def _find_starts(text: str, part: str) -> Iterator[int]:
    """Yield where a text has a part that does not begin within a word."""
    at = text.find(part)
    while at >= 0:
        if at == 0 or not (text[at].isalnum() and _goes_on(text[at - 1])):
            yield at
        at = text.find(part, at + 1)


def _goes_on(letter: str) -> bool:
    """Say whether a word may go on behind a letter."""
    return letter.isalnum() and not is_unspaced(letter)


#: Messages of a thread that are looked at, those around the one that was found: who answers is near
#: who asks, and a thread of thousands has any word.
THREAD_MESSAGES = 60


def weigh_texts(stems: StemReader, found: LookedUp, texts: Sequence[str]) -> list[float]:
    """Return the share of the query's weight that each text has, 0 to 1.

    Of a query in several languages it is the share of the weight in the language that has most.
    """
    languages = weigh_query(found.query, found.frequencies)
    whole = max((one.weight for one in languages), default=0.0)
    if not whole:
        return [0.0] * len(texts)
    terms = [term for one in languages for term in one.terms]
    highlighter = stems.build_highlighter(found.query, terms, texts)
    return [min(1.0, highlighter.find(text).weight / whole) for text in texts]


def weigh_thread(connection: psycopg.Connection, found: LookedUp, message_id: str) -> float:
    """Return the share of the query's weight that a message has with its thread, 0 to less than 1.

    Of k words it is (k - 1) / k at most: whatever is found has one, so that one says nothing. They
    are counted in the language that knows most stop words.
    """
    languages = weigh_query(found.query, found.frequencies)
    lexemes = sorted({term.lexeme for one in languages for term in one.terms})
    parameters = {
        "message_id": message_id,
        "lexemes": lexemes,
        "queries": [match_any([lexeme]) for lexeme in lexemes],
        "most": THREAD_MESSAGES,
    }
    rows = connection.execute(statement("answer", "thread_lexemes"), parameters).fetchall()
    share = measure_coverage(languages, frozenset(lexeme for (lexeme,) in rows))
    words = min((len(one.terms) for one in languages if one.terms), default=1)
    return share * (1 - 1 / words)
