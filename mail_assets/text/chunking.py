"""Cut the new text of a message into chunks for the encoder.

The text is tokenised once and cut by token offsets: between paragraphs, else sentences, else
lines, else words. Chunks are spans of the original body, so a hit can cite exact characters.
SQL statements, query plans, tables and logs stay whole if they fit.

Token counts assume a tokenizer that first splits at white space, as BERT WordPiece does. Then the
tokens of a document are those of its header and those of its text.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, islice, pairwise
from typing import NamedTuple

from tokenizers import Tokenizer

from mail_assets.text.chunk_sizes import MAX_HEADER_BYTES, ChunkSizes
from mail_assets.text.letters import cut_to_bytes
from mail_assets.text.sentences import find_blocks
from mail_assets.text.tokens import Tokens, count_tokens, tokenise

# --- cut points ---

_LINE, _SENTENCE, _PARAGRAPH = 1, 2, 3  # ranks of places where a chunk may begin
_ENDS = (
    (_LINE, re.compile(r"\n")),
    (_SENTENCE, re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=[A-Z0-9\"'(\[])|(?<=[。！？])")),
    (_PARAGRAPH, re.compile(r"\n[ \t]*\n\s*")),
)


class CutPoints(NamedTuple):
    """Tokens at which a chunk may begin, and the rank of each."""

    places: list[int]  # ascending
    ranks: dict[int, int]


def find_cut_points(
    tokens: Tokens, text: str, seams: Iterable[int], max_tokens: int, max_chars: int
) -> CutPoints:
    """Find the places to cut: the beginnings of lines, sentences and paragraphs.

    `seams` are character offsets at which separate pieces of text meet; they rank as paragraphs. No
    cut is inside a block that fits into max_tokens and max_chars.
    """
    ranks: dict[int, int] = {}
    for rank, pattern in _ENDS:
        for match in pattern.finditer(text):
            ranks[tokens.at(match.end())] = rank
    for seam in seams:
        ranks[tokens.at(seam)] = _PARAGRAPH
    lines = text.split("\n")
    line_starts = [0, *accumulate(len(line) + 1 for line in lines)]
    for block in find_blocks(lines):
        first, last = (tokens.at(line_starts[line]) for line in block)
        characters = tokens.starts[last] - tokens.starts[first]
        if last - first <= max_tokens and characters <= max_chars:
            for i in range(first + 1, last):
                ranks.pop(i, None)
    ranks.pop(0, None)
    ranks.pop(len(tokens.words), None)
    return CutPoints(sorted(ranks), ranks)


# --- sizes and the document of a chunk ---


def build_document(header: str, text: str) -> str:
    """Return the exact input of the encoder: the header, a line end and the text.

    A header longer than MAX_HEADER_BYTES is cut. If the header or the text is empty, there is no
    line end.
    """
    header = cut_to_bytes(header.strip(), MAX_HEADER_BYTES).strip()
    return f"{header}\n{text}" if header and text else header or text


def choose_ranges(
    tokens: Tokens, cuts: CutPoints, text: str, tokenizer: Tokenizer, room: ChunkSizes
) -> Iterator[tuple[int, int]]:
    """Yield token ranges that cover the text; a range may repeat the end of the previous one.

    As soon as the rest of the text fits, it becomes the last range: no short piece is left over.
    """
    starts, size = tokens.starts, len(tokens.words)
    places = cuts.places
    start = covered = 0
    while True:
        by_chars = bisect_right(starts, starts[start] + room.max_chars) - 1
        limit = max(start + 1, min(start + room.max_tokens, by_chars, size))
        window = _Window(start, covered, limit)
        end = size if limit == size else _choose_end(tokens, cuts, window, room)
        if end is None:
            start = covered  # nothing new fits next to the repeated text
            continue
        while not (tokens.begins_word(start) and tokens.begins_word(end)) and end > start + 1:
            # a part of a word may have more tokens alone than within the word
            surplus = count_tokens(text[starts[start] : starts[end]], tokenizer) - room.max_tokens
            if surplus <= 0:
                break
            end = max(start + 1, end - surplus)
        yield start, end
        if end == size:
            return
        again = bisect_left(places, end - room.overlap)
        repeat = places[again] if again < len(places) else end
        start = repeat if start < repeat < end else end
        covered = end


class _Window(NamedTuple):
    """The tokens where a chunk may end: after `covered`, and at `limit` at the latest."""

    start: int  # of the chunk
    covered: int  # the end of the previous chunk
    limit: int


def _choose_end(tokens: Tokens, cuts: CutPoints, window: _Window, room: ChunkSizes) -> int | None:
    """Return the end of a chunk, None if it must begin at `covered` instead.

    The end is the best cut in the second half of the target, else the next cut, else the previous
    one. Without a cut it is the end of a word, but a chunk that repeats text first begins at
    `covered`. The target shrinks if it would leave fewer than min_tokens for the last chunk.
    """
    start, covered, limit = window
    goal = min(limit, start + room.target, len(tokens.words) - room.min_tokens)
    goal = max(goal, start + 1)
    places = cuts.places
    half = max(covered + 1, start + room.target // 2)
    low, high = bisect_left(places, half), bisect_right(places, goal)
    if low < high:
        return max(places[low:high], key=lambda i: (cuts.ranks[i], i))
    if high < len(places) and covered < places[high] <= limit:
        return places[high]
    if low and covered < places[low - 1]:
        return places[low - 1]
    if start < covered:
        return None
    return next((i for i in range(goal, start, -1) if tokens.begins_word(i)), goal)


Spans = Sequence[tuple[int, int]]


class Chunk(NamedTuple):
    """A piece of a message; `text` is the body at the spans, `tokens` includes the header."""

    index: int  # type: ignore[assignment]  # hides tuple.index(), which is never called
    spans: tuple[tuple[int, int], ...]
    text: str
    tokens: int


class Chunks(NamedTuple):
    """The chunks of a message; `truncated`: text after the last chunk is in none."""

    chunks: list[Chunk]
    truncated: bool


def chunk_body(
    body: str, spans: Spans, header: str, tokenizer: Tokenizer, sizes: ChunkSizes
) -> Chunks:
    """Cut the text at the spans (ascending, disjoint) into chunks of at most sizes.max_tokens.

    Every visible character of the spans is in a chunk, unless the result is truncated. A message
    without new text has one chunk without spans, for its header. Without a header it has no chunk.

    Raises:
        ValueError: spans are out of order, sizes leave no room next to a header, or the tokenizer
            truncates or pads.
    """
    _check(body, spans, tokenizer, sizes)
    header_tokens = count_tokens(build_document(header, ""), tokenizer)
    room = sizes.with_header(header_tokens)
    joined = "".join(body[start:end] for start, end in spans)
    # text after this is in no chunk, because none is longer than max_chars
    text = joined[: sizes.max_chars * sizes.max_chunks]
    tokens = tokenise(text, tokenizer)
    beyond = bool(joined[len(text) :].strip())
    if not tokens.words:
        return Chunks([Chunk(0, (), "", header_tokens)] if header_tokens else [], beyond)
    cuts = CutPoints([], {})
    if len(tokens.words) > room.max_tokens or len(text) > room.max_chars:
        seams = [at for at in accumulate(end - start for start, end in spans) if at < len(text)]
        cuts = find_cut_points(tokens, text, seams, room.max_tokens, room.max_chars)
    pieces = _pieces(tokens, cuts, text, tokenizer, room)
    kept = pieces[: sizes.max_chunks]
    chunks: list[Chunk] = []
    for start, end, size in kept:
        where = _in_body(spans, start, end)
        chunk_text = "".join(body[a:b] for a, b in where)
        chunks.append(Chunk(len(chunks), where, chunk_text, header_tokens + size))
    return Chunks(chunks, beyond or len(pieces) > len(kept))


def _check(body: str, spans: Spans, tokenizer: Tokenizer, sizes: ChunkSizes) -> None:
    edges = [0, *(edge for span in spans for edge in span), len(body)]
    if any(left > right for left, right in pairwise(edges)):
        raise ValueError(
            f"spans overlap or leave the body of {len(body)} characters: {spans!r:.200}"
        )
    if tokenizer.truncation is not None or tokenizer.padding is not None:
        raise ValueError("the tokenizer truncates or pads: call no_truncation() and no_padding()")
    sizes.check()


def _pieces(
    tokens: Tokens, cuts: CutPoints, text: str, tokenizer: Tokenizer, room: ChunkSizes
) -> list[tuple[int, int, int]]:
    # (start, end, tokens) of the chunks, at most one more than allowed
    pieces: list[tuple[int, int, int]] = []
    ranges = choose_ranges(tokens, cuts, text, tokenizer, room)
    for first, last in islice(ranges, room.max_chunks + 1):
        start, end = tokens.starts[first], tokens.starts[last]
        parts = -(-(end - start) // room.max_chars)  # more than 1 for a single, very long word
        edges = [start + (end - start) * part // parts for part in range(parts + 1)]
        whole = parts == 1 and tokens.begins_word(first) and tokens.begins_word(last)
        for a, b in pairwise(edges):
            piece = text[a:b]
            a, b = a + len(piece) - len(piece.lstrip()), b - len(piece) + len(piece.rstrip())
            if a < b:
                pieces.append((a, b, last - first if whole else count_tokens(text[a:b], tokenizer)))
    return pieces


def _in_body(spans: Spans, start: int, end: int) -> tuple[tuple[int, int], ...]:
    """Translate a range of the joined text to spans of the body; adjacent spans are joined."""
    found: list[tuple[int, int]] = []
    position = 0
    for a, b in spans:
        left, right = max(start, position), min(end, position + b - a)
        if left < right:
            piece = a + left - position, a + right - position
            if found and found[-1][1] == piece[0]:
                piece = found.pop()[0], piece[1]
            found.append(piece)
        position += b - a
    return tuple(found)
