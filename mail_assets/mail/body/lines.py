"""Data types and helpers for the lines of a body: segments, blocks, runs, folded text."""

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple


class Segment(NamedTuple):
    """The characters body[start:end], all of one kind."""

    start: int
    end: int
    kind: str  # "text", "quote", "attribution", "signature" (PGP armour too), "footer" or "patch"


class LineBlock(NamedTuple):
    """Lines of one kind, from the current line up to `stop`."""

    stop: int
    kind: str
    quotes_rest: bool = False  # all lines below are a quote


class QuoteHead(NamedTuple):
    """Lines up to `stop` that announce a quote or a forwarded message.

    Kinds:

    * "attribution": marked quotes follow.
    * "unmarked": an attribution above what is by default an unmarked quote.
    * "original": a header block above what is by default an unmarked quote.
    * "run-on": the unmarked quote begins on the line of its attribution.
    * "forwarded": a forwarded message follows.
    * "text": it only looks like an announcement.
    """

    stop: int
    kind: str


@dataclass(slots=True)
class BodyLines:
    """The lines of a body, without their ends, and their kinds as far as known."""

    lines: list[str]
    texts: list[str]  # the lines, stripped
    kinds: list[str]
    quoted: bytearray  # 1 for each line that carries a quote mark
    first_quote: int  # the first quoted line, or -1
    quote_heads: dict[int, QuoteHead]  # by first line
    author: frozenset[str]  # words of the author's name
    text_above: bool = False
    says_inline: bool = False  # the text above line `read_to` announces inline answers
    read_to: int = 0
    last_named: int | None = None  # the last line that begins with the author's name in brackets

    def fill(self, start: int, block: LineBlock) -> None:
        """Set the kind of the lines of a block; lines of a patch keep theirs, except in a quote."""
        former = self.kinds[start : block.stop]
        if block.kind != "quote" and "patch" in former:  # a quoted diff is a quote
            kinds = ["patch" if kind == "patch" else block.kind for kind in former]
        else:
            kinds = [block.kind] * len(former)
        self.kinds[start : block.stop] = kinds

    def first_quoted(self, start: int, stop: int) -> int:
        """Return the first quoted line in start:stop, else `stop`, at most the number of lines."""
        found = self.quoted.find(1, start, stop)
        return min(stop, len(self.lines)) if found < 0 else found

    def has_text(self, start: int, stop: int) -> bool:
        """Return whether start:stop has a visible line of the kind "text"."""
        pairs = zip(self.kinds[start:stop], self.texts[start:stop], strict=True)
        return any(text and kind == "text" for kind, text in pairs)

    def next_visible(self, i: int) -> int:
        """Return the first line from i on that is not blank, else the number of lines."""
        while i < len(self.texts) and not self.texts[i]:
            i += 1
        return i

    def quote_follows(self, i: int) -> bool:
        """Return whether the first visible line from i on is quoted."""
        i = self.next_visible(i)
        return i < len(self.lines) and bool(self.quoted[i])

    def neighbours(self, i: int) -> list[str]:
        """Return the lines above and below i."""
        return self.lines[max(i - 1, 0) : i] + self.lines[i + 1 : i + 2]


#: A function that returns the block which begins at a line, or None.
LineRule = Callable[[BodyLines, int], LineBlock | None]


def find_runs(kinds: Sequence[str]) -> Iterator[tuple[int, int, str]]:
    """Yield the runs of lines of one kind: first line, line after the last one, kind."""
    start = 0
    for kind, same in groupby(kinds):
        stop = start + len(list(same))
        yield start, stop, kind
        start = stop


# removed: marks of writing direction, soft hyphens, zero-width spaces; apostrophes become ASCII
_IGNORED = {
    0xAD: None,
    0x61C: None,
    **dict.fromkeys(range(0x200B, 0x2010)),
    **dict.fromkeys(range(0x202A, 0x202F)),
    **dict.fromkeys(range(0x2066, 0x206A)),
    0xFEFF: None,
    0x2019: "'",
}
_ACCENTS = re.compile(r"[\u0300-\u036f\u0591-\u05bd\u05bf-\u05c7\u064b-\u0652\u0670]+")
_CJK = "[\\u3040-\\u30ff\\u3400-\\u9fff]"  # kana and ideographs
# optional blanks next to these characters, except next to a Latin word
_UNSPACED = re.compile(rf"(?<![a-z]) (?={_CJK})|(?<={_CJK}) (?![a-z])")


def fold(text: str) -> str:
    """Fold a text so that spellings by different programs become equal.

    Removes differences in case, accents, width, kinds of space, marks of writing direction, and
    blanks before a colon.
    """
    if text.isascii():
        return " ".join(text.lower().split()).replace(" :", ":")
    # NFKD makes full-width colons and all no-break spaces ASCII
    text = unicodedata.normalize("NFKD", text.translate(_IGNORED)).casefold()
    text = unicodedata.normalize("NFC", _ACCENTS.sub("", text))
    return _UNSPACED.sub("", " ".join(text.split())).replace(" :", ":")


_MAX_LOWER_RUN = 4  # lower-case words in a row; more make a sentence
_MIN_LOWER = {".": 5, "!": 5, "?": 3}  # lower-case words of a sentence that ends with this mark
_FULL_STOPS = ("。", "！", "？")


def is_sentence(text: str) -> bool:
    """Return whether a paragraph is prose: several lower-case words in a row, or a full stop."""
    words = text.split()
    lower = run = 0
    for word in words:
        plain = word.strip(".,;:!?()\"'*")
        run = run + 1 if plain.isalpha() and plain.islower() else 0
        lower += run > 0
        if run > _MAX_LOWER_RUN:
            return True
    if (
        words
        and words[-1][:-1].isalpha()
        and lower >= _MIN_LOWER.get(words[-1][-1], len(words) + 1)
    ):
        return True
    return text.rstrip().endswith(_FULL_STOPS)
