"""Data types and helpers for the lines of a body: segments, blocks, runs, folded text."""

import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

#: Kinds of lines, each a byte: a run of lines of one kind is a run of equal bytes.
TEXT, QUOTE, ATTRIBUTION, SIGNATURE, FOOTER, PATCH = b"tqasfp"
KIND_NAMES = {
    TEXT: "text",
    QUOTE: "quote",
    ATTRIBUTION: "attribution",
    SIGNATURE: "signature",  # PGP armour too
    FOOTER: "footer",
    PATCH: "patch",
}
_BLANK = re.compile(rb"[ \t]")
_RUN = re.compile(rb"t+|q+|a+|s+|f+|p+")


class Segment(NamedTuple):
    """The characters body[start:end], all of one kind."""

    start: int
    end: int
    kind: str  # a name from `KIND_NAMES`


class LineBlock(NamedTuple):
    """Lines of one kind, from the current line up to `stop`."""

    stop: int
    kind: int
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
    """The lines of a body, and what the rules know about them so far."""

    whole: str  # the text of all lines
    lines: list[str]  # without their ends
    author: frozenset[str]  # words of the author's name
    texts: list[str] = field(init=False)  # the lines, stripped
    #: First character of each line: a line end for an empty line or one of a patch, and a question
    #: mark for characters outside ASCII.
    firsts: bytearray = field(init=False)
    #: The same without blanks in front; set by `find_signs`.
    signs: bytearray = field(init=False)
    kinds: bytearray = field(init=False)
    quoted: bytearray = field(init=False)  # 1 for each line that carries a quote mark
    first_quote: int = -1  # the first quoted line, or -1
    quote_heads: dict[int, QuoteHead] = field(default_factory=dict)  # by first line
    text_above: bool = False
    says_inline: bool = False  # the text above line `read_to` announces inline answers
    read_to: int = 0
    last_named: int | None = None  # the last line that begins with the author's name in brackets

    def __post_init__(self) -> None:
        self.texts = [line.strip() for line in self.lines]
        self.firsts = first_characters(self.lines)
        self.kinds = bytearray((TEXT,)) * len(self.lines)
        self.quoted = bytearray(len(self.lines))

    def fill(self, start: int, block: LineBlock) -> None:
        """Set the kind of the lines of a block; lines of a patch keep theirs, except in a quote."""
        former = self.kinds[start : block.stop]
        if block.kind != QUOTE and PATCH in former:  # a quoted diff is a quote
            kinds = bytes(PATCH if kind == PATCH else block.kind for kind in former)
        else:
            kinds = bytes((block.kind,)) * len(former)
        self.kinds[start : block.stop] = kinds

    def find_signs(self) -> None:
        """Set `signs`, when the patches are known."""
        self.signs = self.firsts[:]
        indented = self.that_begin(_BLANK)
        shown = first_characters([self.texts[i] for i in indented])
        for i, sign in zip(indented, shown, strict=True):
            self.signs[i] = sign

    def that_begin(self, characters: re.Pattern[bytes]) -> list[int]:
        """Return the lines outside of patches whose first character matches."""
        return [found.start() for found in characters.finditer(self.firsts)]

    def that_show(self, characters: re.Pattern[bytes]) -> list[int]:
        """Return the lines outside of patches whose first visible character matches."""
        return [found.start() for found in characters.finditer(self.signs)]

    def first_quoted(self, start: int, stop: int) -> int:
        """Return the first quoted line in start:stop, else `stop`, at most the number of lines."""
        found = self.quoted.find(1, start, stop)
        return min(stop, len(self.lines)) if found < 0 else found

    def has_text(self, start: int, stop: int) -> bool:
        """Return whether start:stop has a visible line of the kind TEXT."""
        pairs = zip(self.kinds[start:stop], self.texts[start:stop], strict=True)
        return any(text and kind == TEXT for kind, text in pairs)

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


def first_characters(lines: list[str]) -> bytearray:
    """Return the first characters of lines: see `BodyLines`."""
    return bytearray("".join([line[:1] or "\n" for line in lines]).encode("ascii", "replace"))


def find_runs(kinds: bytes | bytearray) -> Iterator[tuple[int, int, int]]:
    """Yield the runs of lines of one kind: first line, line after the last one, kind."""
    for run in _RUN.finditer(kinds):
        start, stop = run.span()
        yield start, stop, kinds[start]


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
