"""What of the hits is shown to a chat model: excerpts of messages, within a budget of tokens.

The best chunk of each hit comes first, then the hits' other chunks, then the chunks before and
after those that were taken, each only while it fits. Chunks of a message that follow one another
make one excerpt, in which the text that they share stands once.
What does not live here: how excerpts are put to the model (prompt.py).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import NamedTuple

import psycopg

from mail_assets.postgres.statements import statement
from mail_assets.search.response import Hit
from mail_assets.settings.errors import SettingsError

#: Tokens of what stands around a text: sender, date, lists, subject, id, places.
FRAME = 120
#: What stands where text was cut out between two spans: a quote, a signature, a patch.
GAP = "\n[...]\n"

Spans = tuple[tuple[int, int], ...]


class Piece(NamedTuple):
    """A chunk: the body of its message, where in it the chunk stands, its tokens."""

    body: str
    spans: Spans
    tokens: int

    @property
    def cost(self) -> int:
        """Tokens in a prompt, where a bar stands before each line."""
        lines = sum(self.body.count("\n", start, end) + 1 for start, end in self.spans)
        return FRAME + self.tokens + lines


@dataclass(frozen=True)
class Excerpt:
    """A part of a message under the number by which it is cited."""

    number: int
    hit: Hit
    spans: Spans
    text: str


def find_excerpts(
    connection: psycopg.Connection, hits: Sequence[Hit], budget: int
) -> list[Excerpt]:
    """Return excerpts of the hits in their order, numbered from 1, of `budget` tokens at most.

    Raises:
        SettingsError: not one fits.
    """
    chunks = {chunk.key for hit in hits for chunk in hit.chunks}
    keys = {key for chunk in chunks for key in (chunk, *neighbours(chunk))}
    rows = connection.execute(statement("answer", "pieces"), {"keys": [*keys]}).fetchall()
    pieces = {
        key: Piece(body, tuple(zip(spans[::2], spans[1::2], strict=True)), tokens)
        for body, found in rows
        for key, spans, tokens in found
    }
    excerpts = pack(hits, pieces, budget)
    if pieces and not excerpts:
        least = min(piece.cost for piece in pieces.values())
        raise SettingsError("MAIL_CHAT_BUDGET", str(budget), f"an excerpt takes {least} at least")
    return excerpts


def pack(hits: Sequence[Hit], pieces: Mapping[str, Piece], budget: int) -> list[Excerpt]:
    """Choose pieces by their worth until the budget is spent, and join them message by message."""
    taken: dict[str, set[str]] = {}
    left = budget
    for hit, key in _by_worth(hits):
        known = taken.get(hit.message_id, set())
        if key not in pieces or key in known:
            continue
        cost = pieces[key].cost
        if cost <= left:
            left -= cost
            taken[hit.message_id] = known | {key}
    excerpts: list[Excerpt] = []
    for hit in hits:
        chosen = sorted(taken.get(hit.message_id, ()), key=_index)
        for run in _runs(chosen):
            spans, text = join([pieces[key] for key in run])
            excerpts.append(Excerpt(len(excerpts) + 1, hit, spans, text))
    return excerpts


def neighbours(key: str) -> tuple[str, str]:
    """Return the keys of the chunks before and after one, which need not exist."""
    stem, index = key.rpartition("#")[0], _index(key)
    return f"{stem}#{index - 1}", f"{stem}#{index + 1}"


def join(pieces: Sequence[Piece]) -> tuple[Spans, str]:
    """Return where pieces of one body stand, what touches or overlaps joined, and their text."""
    body = pieces[0].body
    spans: list[tuple[int, int]] = []
    for start, end in sorted(span for piece in pieces for span in piece.spans):
        # chunks end before the blanks that part them
        if spans and not body[spans[-1][1] : start].strip():
            first, last = spans.pop()
            start, end = first, max(last, end)
        spans.append((start, end))
    return tuple(spans), GAP.join(body[start:end].strip("\n") for start, end in spans)


def _by_worth(hits: Sequence[Hit]) -> Iterator[tuple[Hit, str]]:
    """Yield the first chunk of each hit, the second of each, ..., then all their neighbours."""
    found: list[tuple[Hit, str]] = []
    for place in zip_longest(*([(hit, chunk.key) for chunk in hit.chunks] for hit in hits)):
        found.extend(pair for pair in place if pair)
    yield from found
    for hit, key in found:
        for neighbour in neighbours(key):
            yield hit, neighbour


def _runs(keys: Iterable[str]) -> Iterator[list[str]]:
    """Yield the keys of one message, sorted, in runs that follow one another."""
    run: list[str] = []
    for key in keys:
        if run and key != neighbours(run[-1])[1]:
            yield run
            run = []
        run.append(key)
    if run:
        yield run


def _index(key: str) -> int:
    return int(key.rpartition("#")[2])
