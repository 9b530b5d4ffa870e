"""Highlights: finds and weighs the words of a query in texts, and selects a hit's chunks."""

import math
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from itertools import repeat
from typing import NamedTuple

import psycopg

from mail_assets.search.look_up import LookedUp
from mail_assets.search.matches import Candidate
from mail_assets.search.query import Query, WeighedTerm, weigh_query
from mail_assets.search.response import SHORTEST, ChunkHit, Span, find_start
from mail_assets.tables.search_vectors import ADDRESS, stem_reader
from mail_assets.text.letters import is_unspaced
from mail_assets.text.words import Word, find_words

#: Most chunks of a message that a hit shows.
MAX_CHUNKS = 3
#: Tokens (texts between blanks) whose words are kept; a single page may add more.
KEPT_TOKENS = 50_000


class StoredChunk(NamedTuple):
    """A stored chunk; `spans` are the spans of its text in the body."""

    key: str
    index: int  # type: ignore[assignment]  # hides tuple.index(), which nobody calls
    text: str
    spans: tuple[Span, ...]


class Highlights(NamedTuple):
    """The spans of a text that are words of the query, ascending and disjoint.

    `weight` is the weight of all their lexemes. `lexemes` has the lexemes of each span: several if
    pairs of unspaced letters overlap.
    """

    spans: list[Span]
    weight: float
    lexemes: list[set[str]]


class Highlighter:
    """Finds a query's words in texts; built once for the texts of a page.

    `stems` maps words of the texts, in normal form, to the lexeme of the query that is their stem.
    `identifiers` are found as written, ignoring case. Overlapping pairs of unspaced letters make
    one span. Words in mail addresses are found only with `shows_addresses`.
    """

    def __init__(
        self,
        stems: Mapping[str, str],
        identifiers: Collection[str],
        terms: Iterable[WeighedTerm],
        *,
        shows_addresses: bool = True,
    ) -> None:
        self._stems = stems
        #: The places of the query's words in each token that has any.
        self._places: dict[str, list[tuple[int, int, str]]] = {}
        self._read = set[str]()
        self._names = {name.lower() for name in identifiers}
        self._weights = {term.lexeme: term.weight for term in terms}
        self._shows_addresses = shows_addresses

    def find(self, text: str) -> Highlights:
        """Return the words of the query in a text."""
        found = [*self._find_words(text)]
        if self._names:
            lowered = _lower(text)
            found += (
                (at, at + len(name), name)
                for name in self._names
                for at in _find_starts(lowered, name)
            )
        # A name comes before its pieces, so that these are not found within it.
        found.sort(key=lambda one: (one[0], -one[1]))
        spans: list[Span] = []
        lexemes: list[set[str]] = []
        for start, end, lexeme in found:
            overlaps = bool(spans) and start < spans[-1][1]
            if overlaps and not is_unspaced(lexeme):
                continue
            first = spans.pop()[0] if overlaps else start
            spans.append((first, end))
            if not overlaps:
                lexemes.append(set())
            lexemes[-1].add(lexeme)
        weight = self.weigh(set[str]().union(*lexemes))
        return Highlights(spans, weight, lexemes)

    def _find_words(self, text: str) -> Iterator[tuple[int, int, str]]:
        if not self._stems:
            return
        tokens = {*text.split()}
        for token in tokens - self._read:
            if not self._stems.keys().isdisjoint(_TOKENS[token].forms):
                self._places[token] = [*self._find_in_token(token)]
        self._read |= tokens
        for token in tokens & self._places.keys():
            for at in _find_tokens(text, token):
                for start, end, lexeme in self._places[token]:
                    yield at + start, at + end, lexeme

    def _find_in_token(self, token: str) -> Iterator[tuple[int, int, str]]:
        for word in _TOKENS[token].words:
            if word.in_address and not self._shows_addresses:
                continue
            lexemes = (self._stems.get(form) for form in (word.text, *word.forms))
            if lexeme := next(filter(None, lexemes), None):
                yield word.start, word.end, lexeme

    def weigh(self, lexemes: Set[str]) -> float:
        """Return the total weight of lexemes."""
        # fsum, because the order of a set differs between processes and would change the rounding
        return math.fsum(map(self._weights.get, lexemes, repeat(0.0)))


class _Token(NamedTuple):
    """The words of a token, and all their forms."""

    words: tuple[Word, ...]
    forms: frozenset[str]


class _Tokens(dict[str, _Token]):
    """The words of tokens; the dict computes missing ones and is cleared when full."""

    def __missing__(self, token: str) -> _Token:
        if len(self) >= KEPT_TOKENS:
            self.clear()
        words = tuple(find_words(token))
        made = _Token(words, frozenset(form for one in words for form in (one.text, *one.forms)))
        self[token] = made
        return made


_TOKENS = _Tokens()


class WordReader:
    """Finds words of a query in texts; PostgreSQL stems each word once."""

    def __init__(self, connection: psycopg.Connection) -> None:
        self._stems = stem_reader(connection)
        #: The tokens whose words were stemmed, by language.
        self._known: dict[str, set[str]] = {}
        #: The words of each lexeme, by language and lexeme.
        self._of_lexeme: dict[tuple[str, str], set[str]] = {}

    def build_highlighter(
        self, query: Query | None, terms: Iterable[WeighedTerm], texts: Iterable[str]
    ) -> Highlighter:
        """Return a highlighter for texts; without a query it finds nothing."""
        if query is None:
            return Highlighter({}, (), ())
        found = self._find_words(query, texts)
        beginnings = [one[:-1] for one in query.parsed.identifier_parts if one.endswith(".")]
        names = [*query.parsed.identifiers, *beginnings]
        return Highlighter(found, names, terms, shows_addresses=query.shows_addresses)

    def _find_words(self, query: Query, texts: Iterable[str]) -> dict[str, str]:
        """Return the words of texts read so far that the query has: word -> lexeme.

        A stem may begin differently from its word (umlauts, the article of Arabic), so every word
        is stemmed.
        """
        wanted = {one.language: {*one.lexemes, *one.pieces} for one in query.by_language}
        tokens = set[str]().union(*(text.split() for text in texts))
        self._read([language for language, lexemes in wanted.items() if lexemes], tokens)
        stems = {word: f"{ADDRESS}{word}" for word in query.parsed.in_addresses}
        for language, lexemes in wanted.items():
            for lexeme in sorted(lexemes):
                stems |= dict.fromkeys(self._of_lexeme.get((language, lexeme), ()), lexeme)
        return stems

    def _read(self, languages: Sequence[str], tokens: set[str]) -> None:
        """Read the lexemes of words for all languages, in one statement."""
        if sum(map(len, self._known.values())) > KEPT_TOKENS:
            self._known.clear()
            self._of_lexeme.clear()
        fresh = {one: tokens.difference(self._known.setdefault(one, set())) for one in languages}
        found = set[str]().union(*fresh.values())
        words = set[str]().union(*(_TOKENS[token].forms for token in found))
        if not words:
            return
        for language, stems in self._stems.read(languages, words).items():
            for word in words:
                for lexeme in stems.get(word, (word,)):
                    self._of_lexeme.setdefault((language, lexeme), set()).add(word)
            self._known[language] |= fresh[language]


def select_chunks(
    candidate: Candidate, chunks: Sequence[StoredChunk], highlighter: Highlighter
) -> list[ChunkHit]:
    """Return the best-matching chunks of a message, best first.

    If only the thread found the message, return the first chunk.
    """
    # A long message has dozens of chunks: if words do not rank them, only the shown ones are
    # highlighted.
    by_words = "fulltext" in candidate.ranks
    highlights = {chunk.key: highlighter.find(chunk.text) for chunk in chunks if by_words}
    evidence = _weigh_chunks(candidate, chunks, highlights)
    ranked = sorted(chunks, key=lambda chunk: (-evidence[chunk.key], chunk.index))
    best = evidence[ranked[0].key] if ranked else 0.0
    shown = [chunk for chunk in ranked[:MAX_CHUNKS] if evidence[chunk.key] > 0] or ranked[:1]
    highlights |= {c.key: highlighter.find(c.text) for c in shown if c.key not in highlights}
    return [
        ChunkHit(
            key=chunk.key,
            index=chunk.index,
            text=chunk.text,
            spans=chunk.spans,
            score=_share(candidate.score, evidence[chunk.key] / best if best else 1.0),
            distance=candidate.chunks.get(chunk.key),
            highlights=to_body_spans(highlights[chunk.key].spans, chunk.spans),
            focus=_find_focus(chunk.text, highlights[chunk.key], highlighter),
        )
        for chunk in shown
    ]


def _weigh_chunks(
    candidate: Candidate, chunks: Sequence[StoredChunk], highlights: Mapping[str, Highlights]
) -> dict[str, float]:
    """Return how well each chunk matches, 0 to 2, by its key.

    This is the sum of two shares of the best chunk's value: the weight of its words, if full text
    found the message, and its similarity. `highlights` has all chunks, or none.
    """
    heaviest = max((one.weight for one in highlights.values()), default=0.0) or 1.0
    nearest = max((1 - distance for distance in candidate.chunks.values()), default=0.0) or 1.0
    evidence = {}
    for key in (chunk.key for chunk in chunks):
        words = highlights[key].weight / heaviest if highlights else 0.0
        near = (1 - candidate.chunks[key]) / nearest if key in candidate.chunks else 0.0
        evidence[key] = words + near
    return evidence


def _share(score: float, share: float) -> float:
    """Return the score of a chunk; `share` is its evidence relative to the best chunk's."""
    return round(score - abs(score) * (1 - share), 6)


def _find_focus(text: str, found: Highlights, highlighter: Highlighter) -> int:
    """Return the start of the highlight whose snippet has most of the query; 0 if there is none.

    Snippets are compared by the weight of their different lexemes, then by their number, because
    in semantic mode lexemes have no weight.
    """
    best, focus = (-1.0, 0), 0
    most = found.weight, len(set[str]().union(*found.lexemes))
    for at, _ in found.spans:
        start = find_start(text, at, SHORTEST)
        first = bisect_left(found.spans, (start, 0))
        last = bisect_left(found.spans, (start + SHORTEST, 0))
        lexemes = set[str]().union(*found.lexemes[first:last])
        weight = highlighter.weigh(lexemes), len(lexemes)
        if weight > best:
            best, focus = weight, at
        if best == most:
            break
    return focus


def to_body_spans(spans: Iterable[Span], chunk: Sequence[Span]) -> tuple[Span, ...]:
    """Convert spans of a chunk's text to spans of the body, cut where the chunk's spans end.

    `chunk` has the spans of the body that make up the text, in order.
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
    """Lower the case of a text and keep its length; some characters would become two."""
    lowered = text.lower()
    if len(lowered) == len(text):
        return lowered
    return "".join(low if len(low := one.lower()) == 1 else one for one in text)


def _find_tokens(text: str, token: str) -> Iterator[int]:
    """Yield the places of a text between blanks."""
    at = text.find(token)
    while at >= 0:
        end = at + len(token)
        if not (text[at - 1 : at].strip() or text[end : end + 1].strip()):
            yield at
        at = text.find(token, at + 1)


def _find_starts(text: str, part: str) -> Iterator[int]:
    at = text.find(part)
    while at >= 0:
        before = text[at - 1 : at]
        if not (text[at].isalnum() and before.isalnum() and not is_unspaced(before)):
            yield at
        at = text.find(part, at + 1)


def weigh_texts(stems: WordReader, found: LookedUp, texts: Sequence[str]) -> list[float]:
    """Return the share of the query's weight (its heaviest language) that each text has, 0 to 1."""
    languages = weigh_query(found.query, found.frequencies)
    whole = max((one.weight for one in languages), default=0.0)
    if not whole:
        return [0.0] * len(texts)
    terms = [term for one in languages for term in one.terms]
    highlighter = stems.build_highlighter(found.query, terms, texts)
    return [min(1.0, highlighter.find(text).weight / whole) for text in texts]
