"""The lines of a body under inspection, and what a rule says about them.

What lives here: what the rules share. What does not: the rules (`quotes`, `attributions`,
`signatures`) and the order in which they are asked (`segments`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple


class LineBlock(NamedTuple):
    """A rule's verdict: the lines from the current one up to stop are of this kind."""

    stop: int
    kind: str


@dataclass(slots=True)
class BodyLines:
    """The lines of a body, without their ends, and what is known about them so far."""

    lines: list[str]
    kinds: list[str]
    quoted: list[bool]
    next_quoted: list[int]  # first quoted line at or after each, else the number of lines
    text_above: bool = False

    def fill(self, start: int, claim: LineBlock) -> None:
        """Give the claimed lines their kind."""
        for i in range(start, claim.stop):
            if self.kinds[i] != "patch" or claim.kind == "quote":  # a quoted diff is a quote
                self.kinds[i] = claim.kind

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


LineRule = Callable[[BodyLines, int], LineBlock | None]  # may claim from line i on, or pass
