"""Cut the new text of a message into chunks for the encoder.

The text is tokenised once and cut by token offsets: between paragraphs, else sentences, else
lines, else words. Chunks are spans of the original body, so a hit can cite exact characters.
SQL statements, query plans, tables and logs stay whole where they fit.
What does not live here: what counts as new text (`mail_assets.mail.segments`), and encoding.

Counting relies on a tokenizer that splits at whitespace before anything else, as BERT
WordPiece does: the tokens of "header, line end, text" are then those of its two halves.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate, islice, pairwise
from typing import NamedTuple

from tokenizers import Tokenizer

CHUNKER_VERSION = "1"

# A tokenizer makes at most one token of a UTF-8 byte (WordPiece makes three of a Hangul
# syllable), so this bounds the header in tokens too. Subjects rarely pass 120 characters.
MAX_HEADER_BYTES = 160
MIN_ROOM = 32  # tokens left beside the longest header

_LINE, _SENTENCE, _PARAGRAPH = 1, 2, 3  # how good a place it is to begin a chunk
_ENDS = (
    (_LINE, re.compile(r"\n")),
    (_SENTENCE, re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=[A-Z0-9\"'(\[])|(?<=[。！？])")),
    (_PARAGRAPH, re.compile(r"\n[ \t]*\n\s*")),
)

_SQL = re.compile(
    r"(?i)[ \t]*(?:[\w.@]+[=(-][#>*]+ ?)?(?:select|insert into|update|delete from|create|alter|"
    r"drop|with|explain|copy|merge into|grant|vacuum|analyze|declare|do \$)\b"
)
_LISTING = re.compile(
    r"[ \t]*QUERY PLAN\b|.*\((?:cost=|actual (?:time|rows)=)|[ \t]*->  |"  # plans
    r"[^|]*\S[ \t]*\|[ \t]|[ \t]*\||[ \t]*[-+=]{3}[-+= \t]*$|[ \t]*\(\d+ rows?\)|"  # tables
    r"(?:.*[ \]:])?(?:DEBUG\d?|LOG|INFO|NOTICE|WARNING|ERROR|FATAL|PANIC|DETAIL|HINT|CONTEXT|"
    r"STATEMENT|QUERY|LOCATION):  ?|LINE \d+:|"  # server messages
    r"[\[(]?\d{4}-\d\d-\d\d[ T]\d\d:\d\d|\[ *\d+\.\d{3,}\]|"  # log times
    r"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d |"  # syslog times
    r"[ \t]*(?:#\d+ |at \S+\(|File \".*\", line \d|Traceback \(most)"  # stack traces
)
_MIN_LISTING_LINES = 3

Spans = Sequence[tuple[int, int]]


class Sizes(NamedTuple):
    """Chunk sizes in tokens, without [CLS] and [SEP]. They belong to the model's profile."""

    target: int
    max_tokens: int
    min_tokens: int
    overlap: int
    max_chars: int = 8000  # a run of 60,000 letters is one unknown token: bound characters too
    max_chunks: int = 64  # per message; real mail holds log pastes of 70,000 tokens

    def with_header(self, tokens: int) -> "Sizes":
        """Return the sizes that are left for the text beside a header of so many tokens."""
        room = self.max_tokens - tokens
        return self._replace(target=min(self.target, room), max_tokens=room)


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


def document(header: str, text: str) -> str:
    """Return exactly what the encoder gets to see: the header, a line end and the text.

    A header over MAX_HEADER_BYTES in UTF-8 is cut there; an empty half leaves no line end.
    """
    header = header.strip()
    if len(header) * 4 > MAX_HEADER_BYTES:
        header = header.encode()[:MAX_HEADER_BYTES].decode(errors="ignore").strip()
    return f"{header}\n{text}" if header and text else header or text


def chunk(body: str, spans: Spans, header: str, tokenizer: Tokenizer, sizes: Sizes) -> Chunks:
    """Cut the text at the spans (ascending, apart) into chunks of at most sizes.max_tokens.

    Every visible character of the spans is in a chunk, unless the result is truncated. A
    message without new text has one chunk without spans, for its header; without either, none.
    Raises ValueError for spans out of order, for sizes that leave no room beside a header,
    and for a tokenizer that truncates or pads.
    """
    _check(body, spans, tokenizer, sizes)
    header_tokens = _count(tokenizer, document(header, ""))
    room = sizes.with_header(header_tokens)
    joined = "".join(body[start:end] for start, end in spans)
    # no chunk is longer than max_chars, so what lies beyond these could be in none
    text = joined[: sizes.max_chars * sizes.max_chunks]
    tokens = _tokenise(text, tokenizer)
    beyond = bool(joined[len(text) :].strip())
    if not tokens.words:
        return Chunks([Chunk(0, (), "", header_tokens)] if header_tokens else [], beyond)
    if len(tokens.words) > room.max_tokens or len(text) > room.max_chars:
        _find_cuts(tokens, text, spans, room)
    pieces = _pieces(tokens, text, tokenizer, room)
    kept = pieces[: sizes.max_chunks]
    chunks: list[Chunk] = []
    for start, end, count in kept:
        where = _in_body(spans, start, end)
        chunk_text = "".join(body[a:b] for a, b in where)
        chunks.append(Chunk(len(chunks), where, chunk_text, header_tokens + count))
    return Chunks(chunks, beyond or len(pieces) > len(kept))


def _check(body: str, spans: Spans, tokenizer: Tokenizer, sizes: Sizes) -> None:
    edges = [0, *(edge for span in spans for edge in span), len(body)]
    if any(left > right for left, right in pairwise(edges)):
        raise ValueError(
            f"spans overlap or leave the body of {len(body)} characters: {spans!r:.200}"
        )
    if tokenizer.truncation is not None or tokenizer.padding is not None:
        raise ValueError("the tokenizer truncates or pads: call no_truncation() and no_padding()")
    if sizes.max_tokens < MAX_HEADER_BYTES + MIN_ROOM:
        raise ValueError(
            f"max_tokens is {sizes.max_tokens}: at least {MAX_HEADER_BYTES + MIN_ROOM} are needed, "
            f"{MAX_HEADER_BYTES} of them for the longest header"
        )
    if (
        not 0 <= sizes.overlap < sizes.target <= sizes.max_tokens
        or min(sizes.max_chars, sizes.max_chunks) < 1
    ):
        raise ValueError(
            f"sizes must obey 0 <= overlap < target <= max_tokens and be positive: {sizes}"
        )


class _Tokens(NamedTuple):
    """Tokens of a text. Characters without a token belong to the token on their left."""

    starts: list[int]  # first character of each token, and the length of the text
    words: list[int | None]  # number of the word of which each token is a piece
    cuts: dict[int, int]  # token -> how good a place it is to begin a chunk

    def begins_word(self, i: int) -> bool:
        return i in (0, len(self.words)) or self.words[i] != self.words[i - 1]


def _tokenise(text: str, tokenizer: Tokenizer) -> _Tokens:
    encoding = tokenizer.encode(text, add_special_tokens=False)
    starts = [start for start, _ in encoding.offsets]
    return _Tokens([0, *starts[1:], len(text)], encoding.word_ids, {})


def _count(tokenizer: Tokenizer, text: str) -> int:
    return len(tokenizer.encode(text, add_special_tokens=False))


def _find_cuts(tokens: _Tokens, text: str, spans: Spans, room: Sizes) -> None:
    """Note where chunks may begin, the better reason last; none inside a block that fits."""
    starts, cuts = tokens.starts, tokens.cuts
    size = len(tokens.words)
    for rank, pattern in _ENDS:
        for match in pattern.finditer(text):
            cuts[bisect_left(starts, match.end(), 0, size)] = rank
    for length in accumulate(end - start for start, end in spans):
        if length < len(text):  # two answers with a quote between them
            cuts[bisect_left(starts, length, 0, size)] = _PARAGRAPH
    lines = text.split("\n")
    at = [0, *accumulate(len(line) + 1 for line in lines)]
    for block in (*_listings(lines), *_statements(lines)):
        first, last = (bisect_left(starts, at[line], 0, size) for line in block)
        if last - first <= room.max_tokens and starts[last] - starts[first] <= room.max_chars:
            for i in range(first + 1, last):
                cuts.pop(i, None)
    cuts.pop(0, None)
    cuts.pop(size, None)


def _listings(lines: list[str]) -> Iterator[tuple[int, int]]:
    """Find runs of plan, table or log lines and what is indented below them."""
    first = None
    for i, line in enumerate([*lines, ""]):
        if _LISTING.match(line) or (first is not None and line[:1] in {" ", "\t"} and line.strip()):
            first = i if first is None else first
        elif first is not None:
            if i - first >= _MIN_LISTING_LINES:
                yield first, i
            first = None


def _statements(lines: list[str]) -> Iterator[tuple[int, int]]:
    """Find SQL statements: to the line that ends in ";", with no blank line between."""
    first = None
    for i, line in enumerate(lines):
        if not line.strip():
            first = None
        elif first is None and _SQL.match(line):
            first = i
        if first is not None and line.rstrip().endswith(";"):
            yield first, i + 1
            first = None


def _pieces(
    tokens: _Tokens, text: str, tokenizer: Tokenizer, room: Sizes
) -> list[tuple[int, int, int]]:
    """Return (start, end, tokens) of the chunks in the text, at most one more than allowed."""
    pieces: list[tuple[int, int, int]] = []
    for first, last in islice(_ranges(tokens, text, tokenizer, room), room.max_chunks + 1):
        start, end = tokens.starts[first], tokens.starts[last]
        parts = -(-(end - start) // room.max_chars)  # more than 1: a single, very long word
        edges = [start + (end - start) * part // parts for part in range(parts + 1)]
        whole = parts == 1 and tokens.begins_word(first) and tokens.begins_word(last)
        for a, b in pairwise(edges):
            piece = text[a:b]
            a, b = a + len(piece) - len(piece.lstrip()), b - len(piece) + len(piece.rstrip())
            if a < b:
                pieces.append((a, b, last - first if whole else _count(tokenizer, text[a:b])))
    return pieces


def _ranges(
    tokens: _Tokens, text: str, tokenizer: Tokenizer, room: Sizes
) -> Iterator[tuple[int, int]]:
    """Yield token ranges that cover the text; each may repeat the end of the one before.

    The last range takes all that is left as soon as that fits, so short tails stay attached.
    """
    starts, size = tokens.starts, len(tokens.words)
    cuts = sorted(tokens.cuts)
    start = covered = 0
    while True:
        by_chars = bisect_right(starts, starts[start] + room.max_chars) - 1
        limit = max(start + 1, min(start + room.max_tokens, by_chars, size))
        end = size if limit == size else _end(tokens, cuts, start, covered, limit, room)
        if end is None:
            start = covered  # nothing new fits beside the repeated text
            continue
        while not (tokens.begins_word(start) and tokens.begins_word(end)) and end > start + 1:
            # a part of a word that stands alone may be more tokens than it was in the word
            surplus = _count(tokenizer, text[starts[start] : starts[end]]) - room.max_tokens
            if surplus <= 0:
                break
            end = max(start + 1, end - surplus)
        yield start, end
        if end == size:
            return
        repeat = bisect_left(cuts, end - room.overlap)
        start = cuts[repeat] if repeat < len(cuts) and start < cuts[repeat] < end else end
        covered = end


def _end(
    tokens: _Tokens, cuts: list[int], start: int, covered: int, limit: int, room: Sizes
) -> int | None:
    """Choose where the chunk from start ends, after covered and at most at limit.

    The best cut in the second half of the target, else the next one, else the one before;
    failing all, a word, unless the chunk can begin later (at covered) for a better choice.
    The target gives way where it would leave fewer than min_tokens for the last chunk.
    """
    goal = min(limit, start + room.target, len(tokens.words) - room.min_tokens)
    goal = max(goal, start + 1)
    half = max(covered + 1, start + room.target // 2)
    low, high = bisect_left(cuts, half), bisect_right(cuts, goal)
    if low < high:
        return max(cuts[low:high], key=lambda i: (tokens.cuts[i], i))
    if high < len(cuts) and covered < cuts[high] <= limit:
        return cuts[high]
    if low and covered < cuts[low - 1]:
        return cuts[low - 1]
    if start < covered:
        return None
    return next((i for i in range(goal, start, -1) if tokens.begins_word(i)), goal)


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
