"""The words of a query in texts: the chunks that a hit shows, highlights, and their weight."""

import math
import re
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from typing import NamedTuple

import psycopg

from mail_assets.postgres.statements import statement
from mail_assets.search.look_up import LookedUp
from mail_assets.search.matches import Candidate
from mail_assets.search.query import Query, WeighedTerm, weigh_query
from mail_assets.search.response import SHORTEST, ChunkHit, Span, find_start
from mail_assets.text.letters import distinct_words, find_words, is_unspaced

#: Chunks that are shown of a message.
MAX_CHUNKS = 3
#: Words, and texts between blanks, whose stems are kept; one page may add more.
KEPT_WORDS = 100_000
_TO_BLANK = re.compile(r"[^ \n]*")


class StoredChunk(NamedTuple):
    """A chunk as it is stored; `spans` are the places of its text in the body."""

    key: str
    index: int  # type: ignore[assignment]  # hides tuple.index(), which nobody calls
    text: str
    spans: tuple[Span, ...]


class Highlights(NamedTuple):
    """The places where a text has words of the query, ascending and disjoint.

    `weight` is that of all their lexemes. `lexemes` has those of each span: several where pairs of
    unspaced letters overlap.
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
        # A name comes before its pieces, which are then not found within it.
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
        """Return the weight of some lexemes together."""
        # fsum: a set has another order in each process, and a rounded sum would follow it
        return math.fsum(self._weights.get(lexeme, 0.0) for lexeme in lexemes)


class StemReader:
    """Reads the stems of words over one connection, each word once."""

    def __init__(self, connection: psycopg.Connection) -> None:
        self._connection = connection
        #: By language, the words that were read and the texts between blanks that contain them: to
        #: take texts apart at blanks costs a fifth of finding their words.
        self._known: dict[str, set[str]] = {}
        #: The words of each lexeme of a language.
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

        A stem need not begin as its word does (umlauts, the article of Arabic), so the stem of
        every word is read.
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


def select_chunks(
    candidate: Candidate, chunks: Sequence[StoredChunk], highlighter: Highlighter
) -> list[ChunkHit]:
    """Return the chunks of a message that match best, best first.

    If none matches, because the message was found by its thread alone, the first one is shown.
    """
    # A long message has dozens of chunks: where words do not rank them, only those that are shown
    # are highlighted.
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
    """Return how well each chunk matches, by its key: 0 to 2.

    The sum of the weight of its words, where full text found the message, and its similarity, each
    as a share of the best chunk's. `highlights` are those of all chunks, or of none.
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
    """Return the score of a chunk whose evidence is a share of the best one's."""
    return round(score - abs(score) * (1 - share), 6)


def _find_focus(text: str, found: Highlights, highlighter: Highlighter) -> int:
    """Return the start of the highlight whose snippet has most of the query, 0 without one.

    That is the weight of its different lexemes, then their number: by meaning none has a weight.
    """
    best, focus = (-1.0, 0), 0
    for at, _ in found.spans:
        start = find_start(text, at, SHORTEST)
        first = bisect_left(found.spans, (start, 0))
        last = bisect_left(found.spans, (start + SHORTEST, 0))
        lexemes = set[str]().union(*found.lexemes[first:last])
        weight = highlighter.weigh(lexemes), len(lexemes)
        if weight > best:
            best, focus = weight, at
    return focus


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
    """Return a text in lower case, every character at its place: a few would become two."""
    lowered = text.lower()
    if len(lowered) == len(text):
        return lowered
    return "".join(low if len(low := one.lower()) == 1 else one for one in text)


def _find_wanted(text: str, wanted: Collection[str]) -> Iterator[tuple[int, str]]:
    """Yield the places of wanted words in a text.

    Only the text between the blanks around each place is taken apart: all words of a text take
    eight times as long.
    """
    for start, end in {*_find_surroundings(text, wanted)}:
        for at, word in find_words(text[start:end]):
            if word in wanted:
                yield start + at, word


def _find_surroundings(text: str, parts: Iterable[str]) -> Iterator[Span]:
    """Yield the spans between blanks that contain a part."""
    for part in parts:
        at = text.find(part)
        while at >= 0:
            end = _TO_BLANK.match(text, at).end()  # type: ignore[union-attr]  # may be empty
            yield max(text.rfind(" ", 0, at), text.rfind("\n", 0, at)) + 1, end
            at = text.find(part, end)


def _find_starts(text: str, part: str) -> Iterator[int]:
    at = text.find(part)
    while at >= 0:
        before = text[at - 1 : at]
        if not (text[at].isalnum() and before.isalnum() and not is_unspaced(before)):
            yield at
        at = text.find(part, at + 1)


def weigh_texts(stems: StemReader, found: LookedUp, texts: Sequence[str]) -> list[float]:
    """Return the share of the query's weight that each text has, 0 to 1.

    For a query in several languages it is the share in the language whose weight is largest.
    """
    languages = weigh_query(found.query, found.frequencies)
    whole = max((one.weight for one in languages), default=0.0)
    if not whole:
        return [0.0] * len(texts)
    terms = [term for one in languages for term in one.terms]
    highlighter = stems.build_highlighter(found.query, terms, texts)
    return [min(1.0, highlighter.find(text).weight / whole) for text in texts]
