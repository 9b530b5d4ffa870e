"""Cut the new text of a message into chunks for the encoder.

The text is tokenised once and cut by token offsets: between paragraphs, else sentences, else
lines, else words. Chunks are spans of the original body, so a hit can cite exact characters.
SQL statements, query plans, tables and logs stay whole where they fit.

Counting relies on a tokenizer that splits at whitespace before anything else, as BERT
WordPiece does: the tokens of "header, line end, text" are then those of its two halves.
"""

from collections.abc import Sequence
from itertools import accumulate, islice, pairwise
from typing import NamedTuple

from tokenizers import Tokenizer

from mail_assets.text.chunk_ranges import choose_ranges
from mail_assets.text.chunk_sizes import ChunkSizes
from mail_assets.text.cut_points import CutPoints, find_cut_points
from mail_assets.text.document import build_document
from mail_assets.text.tokens import Tokens, count_tokens, tokenise

#: Goes into every fingerprint: raise it when chunks would come out differently.
CHUNKER_VERSION = "1"

Spans = Sequence[tuple[int, int]]


class Chunk(NamedTuple):
    """A piece of a message. text is the body at the spans; tokens counts the header too."""

    index: int  # type: ignore[assignment]  # hides tuple.index(), which nobody calls
    spans: tuple[tuple[int, int], ...]
    text: str
    tokens: int


class Chunks(NamedTuple):
    """The chunks of a message; truncated says that text is left over after the last."""

    chunks: list[Chunk]
    truncated: bool


def chunk_body(
    body: str, spans: Spans, header: str, tokenizer: Tokenizer, sizes: ChunkSizes
) -> Chunks:
    """Cut the text at the spans (ascending, apart) into chunks of at most sizes.max_tokens.

    Every visible character of the spans is in a chunk, unless the result is truncated. A
    message without new text has one chunk without spans, for its header; without either, none.
    Raises ValueError for spans out of order, for sizes that leave no room beside a header,
    and for a tokenizer that truncates or pads.
    """
    _check(body, spans, tokenizer, sizes)
    header_tokens = count_tokens(build_document(header, ""), tokenizer)
    room = sizes.with_header(header_tokens)
    joined = "".join(body[start:end] for start, end in spans)
    # no chunk is longer than max_chars, so what lies beyond these could be in none
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
    """Return (start, end, tokens) of the chunks in the text, at most one more than allowed."""
    pieces: list[tuple[int, int, int]] = []
    ranges = choose_ranges(tokens, cuts, text, tokenizer, room)
    for first, last in islice(ranges, room.max_chunks + 1):
        start, end = tokens.starts[first], tokens.starts[last]
        parts = -(-(end - start) // room.max_chars)  # more than 1: a single, very long word
        edges = [start + (end - start) * part // parts for part in range(parts + 1)]
        whole = parts == 1 and tokens.begins_word(first) and tokens.begins_word(last)
        for a, b in pairwise(edges):
            piece = text[a:b]
            a, b = a + len(piece) - len(piece.lstrip()), b - len(piece) + len(piece.rstrip())
            if a < b:
                pieces.append((a, b, last - first if whole else count_tokens(text[a:b], tokenizer)))
    return pieces


def _in_body(spans: Spans, start: int, end: int) -> tuple[tuple[int, int], ...]:
    """Translate a range of the joined text to spans of the body, joining those that touch."""
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
