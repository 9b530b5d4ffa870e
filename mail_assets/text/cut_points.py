"""Find the places where a text may be cut, and rank how good each is to begin a chunk."""

import re
from collections.abc import Iterable
from itertools import accumulate
from typing import NamedTuple

from mail_assets.text.blocks import find_blocks
from mail_assets.text.tokens import Tokens

_LINE, _SENTENCE, _PARAGRAPH = 1, 2, 3  # how good a place it is to begin a chunk
_ENDS = (
    (_LINE, re.compile(r"\n")),
    (_SENTENCE, re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=[A-Z0-9\"'(\[])|(?<=[。！？])")),
    (_PARAGRAPH, re.compile(r"\n[ \t]*\n\s*")),
)


class CutPoints(NamedTuple):
    """Tokens at which a chunk may begin, and how good a place each is."""

    places: list[int]  # ascending
    ranks: dict[int, int]


def find_cut_points(
    tokens: Tokens, text: str, seams: Iterable[int], max_tokens: int, max_chars: int
) -> CutPoints:
    """Find the places to cut: the beginnings of lines, sentences and paragraphs.

    At a seam, a character offset, two pieces of text meet that stood apart; it is as good as a
    paragraph. No cut is inside a block that fits into max_tokens and max_chars.
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
