"""Choose which of the cut points are taken: the ranges of tokens that become chunks."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import NamedTuple

from tokenizers import Tokenizer

from mail_assets.text.chunk_sizes import ChunkSizes
from mail_assets.text.cut_points import CutPoints
from mail_assets.text.tokens import Tokens, count_tokens


def choose_ranges(
    tokens: Tokens, cuts: CutPoints, text: str, tokenizer: Tokenizer, room: ChunkSizes
) -> Iterator[tuple[int, int]]:
    """Yield token ranges that cover the text; each may repeat the end of the one before.

    The last range takes all that is left as soon as that fits, so short tails stay attached.
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
            start = covered  # nothing new fits beside the repeated text
            continue
        while not (tokens.begins_word(start) and tokens.begins_word(end)) and end > start + 1:
            # a part of a word may alone be more tokens than it was in the word
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
    """Tokens among which a chunk may end: after `covered`, at most at `limit`."""

    start: int  # of the chunk
    covered: int  # the end of the chunk before
    limit: int


def _choose_end(tokens: Tokens, cuts: CutPoints, window: _Window, room: ChunkSizes) -> int | None:
    """Choose where a chunk ends.

    The best cut in the second half of the target, else the next one, else the one before;
    failing all, a word, unless the chunk can begin later (at covered) for a better choice.
    The target gives way where it would leave fewer than min_tokens for the last chunk.
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
