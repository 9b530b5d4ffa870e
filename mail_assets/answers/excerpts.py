"""Excerpts of the hits for an answer, within a budget of tokens.

The best chunk of each hit comes first, then the other chunks of the hits, then the chunks before
and after these. A chunk that does not fit is skipped. Consecutive chunks of a message become one
excerpt, without repeating the text that they share.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import NamedTuple, TypeAlias

import psycopg

from mail_assets.errors import WrongInputError
from mail_assets.postgres.statements import statement
from mail_assets.search.response import Hit

#: Tokens of the header of an excerpt: sender, date, lists, subject, id, spans.
HEADER_TOKENS = 120
#: Replaces the text between two spans: a quote, a signature, a patch.
GAP = "\n[...]\n"

Spans = tuple[tuple[int, int], ...]
#: Returns a text from start to end with hidden parts masked; the length stays the same.
Hide: TypeAlias = Callable[[str, int, int], str]


class BudgetError(WrongInputError):
    """The budget is too small for any excerpt; the message names MAIL_CHAT_BUDGET and a minimum."""


class ChunkText(NamedTuple):
    """A chunk: the body of its message, its spans in the body, and its tokens."""

    body: str
    spans: Spans
    tokens: int

    @property
    def cost(self) -> int:
        """Tokens in a prompt, where each line begins with a bar."""
        lines = sum(self.body.count("\n", start, end) + 1 for start, end in self.spans)
        return HEADER_TOKENS + self.tokens + lines


@dataclass(frozen=True)
class Excerpt:
    """A part of a message and the number by which it is cited.

    `namesake` is the address or the mark of the sender if the mail found has another sender with
    the same name.
    """

    number: int
    hit: Hit
    spans: Spans
    text: str
    namesake: str = ""

    def contains(self, other: "Excerpt") -> bool:
        """Return whether each span of another excerpt is within a span of this one."""
        return self.hit.message_id == other.hit.message_id and all(
            any(first <= start and end <= last for first, last in self.spans)
            for start, end in other.spans
        )


def show_all(text: str, start: int, end: int) -> str:
    """Return a part of a text without hiding anything."""
    return text[start:end]


def find_excerpts(
    connection: psycopg.Connection, hits: Sequence[Hit], budget: int, hide: Hide = show_all
) -> list[Excerpt]:
    """Return excerpts of the hits in their order, numbered from 1, of at most `budget` tokens.

    Raises:
        BudgetError: no excerpt fits.
    """
    chunks = {chunk.key for hit in hits for chunk in hit.chunks}
    keys = {key for chunk in chunks for key in (chunk, *neighbour_keys(chunk))}
    rows = connection.execute(statement("answer", "chunks"), {"keys": [*keys]}).fetchall()
    texts = {
        key: ChunkText(body, tuple(zip(spans[::2], spans[1::2], strict=True)), tokens)
        for body, found in rows
        for key, spans, tokens in found
    }
    excerpts = select_excerpts(hits, texts, budget, hide)
    if texts and not excerpts:
        least = min(text.cost for text in texts.values())
        raise BudgetError(f"MAIL_CHAT_BUDGET='{budget}': an excerpt needs at least {least} tokens")
    return excerpts


def select_excerpts(
    hits: Sequence[Hit], texts: Mapping[str, ChunkText], budget: int, hide: Hide = show_all
) -> list[Excerpt]:
    """Return excerpts of the most important chunks that fit, joined by message."""
    taken: dict[str, set[str]] = {}
    left = budget
    for hit, key in _by_importance(hits):
        known = taken.get(hit.message_id, set())
        if key not in texts or key in known:
            continue
        cost = texts[key].cost
        if cost <= left:
            left -= cost
            taken[hit.message_id] = known | {key}
    excerpts: list[Excerpt] = []
    for hit in hits:
        chosen = sorted(taken.get(hit.message_id, ()), key=_index)
        for run in _runs(chosen):
            spans, text = join_chunks([texts[key] for key in run], hide)
            excerpts.append(Excerpt(len(excerpts) + 1, hit, spans, text))
    return excerpts


def neighbour_keys(key: str) -> tuple[str, str]:
    """Return the keys of the chunks before and after a chunk; these chunks may not exist."""
    stem, index = key.rpartition("#")[0], _index(key)
    return f"{stem}#{index - 1}", f"{stem}#{index + 1}"


def join_chunks(chunks: Sequence[ChunkText], hide: Hide = show_all) -> tuple[Spans, str]:
    """Return the spans of chunks of one body, merged if they touch, and their text."""
    body = chunks[0].body
    spans: list[tuple[int, int]] = []
    for start, end in sorted(span for chunk in chunks for span in chunk.spans):
        # spans with only white space between them touch: chunks do not include it
        if spans and not body[spans[-1][1] : start].strip():
            first, last = spans.pop()
            start, end = first, max(last, end)
        spans.append((start, end))
    shown = [_without_blank_lines(body, start, end) for start, end in spans]
    return tuple(shown), GAP.join(hide(body, start, end) for start, end in shown)


def _without_blank_lines(body: str, start: int, end: int) -> tuple[int, int]:
    text = body[start:end]
    start += len(text) - len(text.lstrip("\n"))
    return start, start + len(text.strip("\n"))


def _by_importance(hits: Sequence[Hit]) -> Iterator[tuple[Hit, str]]:
    """Yield the first chunk of each hit, then the second of each, and at last all neighbours."""
    found: list[tuple[Hit, str]] = []
    for rank in zip_longest(*([(hit, chunk.key) for chunk in hit.chunks] for hit in hits)):
        found.extend(pair for pair in rank if pair)
    yield from found
    for hit, key in found:
        for neighbour in neighbour_keys(key):
            yield hit, neighbour


def _runs(keys: Iterable[str]) -> Iterator[list[str]]:
    """Yield the sorted keys of one message in runs of consecutive chunks."""
    run: list[str] = []
    for key in keys:
        if run and key != neighbour_keys(run[-1])[1]:
            yield run
            run = []
        run.append(key)
    if run:
        yield run


def _index(key: str) -> int:
    return int(key.rpartition("#")[2])
