"""The tokens of a text and the places where it may be cut.

What lives here: tokenising once, and how good a place each token is to begin a chunk. What does
not: which of the places are taken (`mail_assets.text.chunking`).
"""

import re
from bisect import bisect_left
from collections.abc import Iterable
from itertools import accumulate
from typing import NamedTuple

from tokenizers import Tokenizer

from mail_assets.text.blocks import blocks

_LINE, _SENTENCE, _PARAGRAPH = 1, 2, 3  # how good a place it is to begin a chunk
_ENDS = (
    (_LINE, re.compile(r"\n")),
    (_SENTENCE, re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=[A-Z0-9\"'(\[])|(?<=[。！？])")),
    (_PARAGRAPH, re.compile(r"\n[ \t]*\n\s*")),
)


class Tokens(NamedTuple):
    """Tokens of a text. Characters without a token belong to the token on their left."""

    starts: list[int]  # first character of each token, and the length of the text
    words: list[int | None]  # number of the word of which each token is a piece

    def begins_word(self, i: int) -> bool:
        """Tell whether nothing is torn apart before token i; true at both ends of the text."""
        return i in (0, len(self.words)) or self.words[i] != self.words[i - 1]

    def at(self, character: int) -> int:
        """Return the first token that begins at or after a character, else their number."""
        return bisect_left(self.starts, character, 0, len(self.words))


class Cuts(NamedTuple):
    """Tokens at which a chunk may begin, and how good a place each is."""

    places: list[int]  # ascending
    ranks: dict[int, int]


def tokenise(text: str, tokenizer: Tokenizer) -> Tokens:
    """Tokenise without the special tokens."""
    encoding = tokenizer.encode(text, add_special_tokens=False)
    starts = [start for start, _ in encoding.offsets]
    return Tokens([0, *starts[1:], len(text)], encoding.word_ids)


def count(text: str, tokenizer: Tokenizer) -> int:
    """Count the tokens of a text, the special ones left out."""
    return len(tokenizer.encode(text, add_special_tokens=False))


def find_cuts(
    tokens: Tokens, text: str, seams: Iterable[int], max_tokens: int, max_chars: int
) -> Cuts:
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
    for block in blocks(lines):
        first, last = (tokens.at(line_starts[line]) for line in block)
        characters = tokens.starts[last] - tokens.starts[first]
        if last - first <= max_tokens and characters <= max_chars:
            for i in range(first + 1, last):
                ranks.pop(i, None)
    ranks.pop(0, None)
    ranks.pop(len(tokens.words), None)
    return Cuts(sorted(ranks), ranks)
