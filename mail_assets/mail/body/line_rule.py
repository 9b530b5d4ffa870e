"""What the rules for lines of a body share: the body's lines, a rule's type and its result."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple


class LineBlock(NamedTuple):
    """Lines of one kind, from the current one up to stop."""

    stop: int
    kind: str
    quotes_rest: bool = False  # all lines below are a quote


class QuoteHead(NamedTuple):
    """Lines that announce a quote or a forwarded message, up to stop.

    Kinds: "attribution" (marked quotes follow), "unmarked" and "original" (an attribution and a
    header block that stand above unmarked quotes, if nothing else says otherwise), "forwarded",
    "text" (what only looks like it).
    """

    stop: int
    kind: str


@dataclass(slots=True)
class BodyLines:
    """The lines of a body, without their ends, and what is known about them so far."""

    lines: list[str]
    kinds: list[str]
    quoted: list[bool]
    next_quoted: list[int]  # first quoted line at or after each, else the number of lines
    quote_heads: dict[int, QuoteHead]  # by their first line
    text_above: bool = False

    def fill(self, start: int, block: LineBlock) -> None:
        """Give the lines of a block its kind."""
        for i in range(start, block.stop):
            if self.kinds[i] != "patch" or block.kind == "quote":  # a quoted diff is a quote
                self.kinds[i] = block.kind

    def next_visible(self, i: int) -> int:
        """Return the first line at or after i that is not blank, else the number of lines."""
        while i < len(self.lines) and not self.lines[i].strip():
            i += 1
        return i

    def quote_follows(self, i: int) -> bool:
        """Tell whether the first visible line at or after i is quoted."""
        i = self.next_visible(i)
        return i < len(self.lines) and self.quoted[i]

    def neighbours(self, i: int) -> list[str]:
        """Return the lines above and below i."""
        return self.lines[max(i - 1, 0) : i] + self.lines[i + 1 : i + 2]


#: A function that returns the block which begins at a line, or None.
LineRule = Callable[[BodyLines, int], LineBlock | None]
