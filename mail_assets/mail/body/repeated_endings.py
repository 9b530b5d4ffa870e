"""Learn what repeats at the end of the messages of a list's month: footers and signatures.

A block of lines that ends messages of several authors in several threads is the list's footer;
one that ends several messages of one author is the author's signature. Blocks stand at the end
of the body, above a footer, or at the end of a top post's own text. What a person wrote once
repeats nowhere, so it is never taken for either. Only hashes of lines are kept, no text.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import NamedTuple

from mail_assets.mail.body.ending_lines import Ending, number_of

_MIN_FOOTER = 4  # authors, threads and different lines above
_MIN_SIGNED = 3  # different lines above in one author's messages
_FACTOR = 0x9E3779B97F4A7C15  # spreads the bits: Knuth's multiplicative hashing
_BITS = (1 << 63) - 1


class EndingMatch(NamedTuple):
    """How many visible lines of an ending's `tail` are footer, then signature; and of `own`."""

    footer: int = 0
    signature: int = 0
    own_signature: int = 0


@dataclass(frozen=True)
class RepeatedEndings:
    """What was learnt of a list's month: numbers that stand for blocks of lines.

    Two values are equal where they mark the same lines of any message.
    """

    footers: frozenset[int] = frozenset()
    signatures: frozenset[int] = frozenset()  # of author and block together

    @cached_property
    def digest(self) -> str:
        """Name this value in 32 hex digits: the same for the same messages in any order."""
        numbers = f"{sorted(self.footers)} {sorted(self.signatures)}"
        return blake2b(numbers.encode(), digest_size=16).hexdigest()

    def match(self, author: str, ending: Ending) -> EndingMatch:
        """Count the lines of an ending that are known.

        Where two values give the same match for a message, its segments are the same too.
        """
        footer = _count_known("", ending.tail, self.footers)
        signature = _count_known(author, ending.tail[footer:], self.signatures)
        own = _count_known(author, ending.own, self.signatures)
        return EndingMatch(footer, signature, own)


NO_ENDINGS = RepeatedEndings()


class _Block(NamedTuple):
    """The last lines of several messages: their number, how many, and whose, by position."""

    number: int
    length: int
    places: list[int]


def learn_endings(endings: Iterable[tuple[str, str, Ending]]) -> RepeatedEndings:
    """Learn from all messages of a list's month: author, subject without "Re:", ending.

    The order of the messages does not matter, nor do copies of one: a block counts by the
    different lines that stand above it. Memory: some 30 numbers a message.
    """
    known = list(endings)
    footers = _learn_footers(known)
    author_numbers = {author: number_of(author) for author, _, _ in known}
    signed: list[tuple[int, Sequence[int]]] = []
    for author, _, ending in known:
        footer = _count_known("", ending.tail, footers)
        signed.append((author_numbers[author], ending.tail[footer:]))
        signed.append((author_numbers[author], ending.own))
    signatures = frozenset(
        block.number
        for block in _find_repeated(signed, _MIN_SIGNED)
        if len({_line_above(signed[i][1], block.length) for i in block.places}) >= _MIN_SIGNED
    )
    return RepeatedEndings(footers, signatures)


def _learn_footers(known: Sequence[tuple[str, str, Ending]]) -> frozenset[int]:
    footers: set[int] = set()
    nobody = number_of("")
    tails = [(nobody, ending.tail) for _, _, ending in known]
    for block in _find_repeated(tails, _MIN_FOOTER):
        authors = {known[i][0] for i in block.places}
        threads = {known[i][1] for i in block.places}
        above = {_line_above(known[i][2].tail, block.length) for i in block.places}
        if min(len(authors), len(threads), len(above)) >= _MIN_FOOTER:
            footers.add(block.number)
    return frozenset(footers)


def _find_repeated(endings: Sequence[tuple[int, Sequence[int]]], minimum: int) -> Iterator[_Block]:
    """Yield the blocks that end at least `minimum` of the endings: author's number, lines.

    Line by line upwards: what ends with a rare block is not looked at any more.
    """
    alive = [(number, i) for i, (number, _) in enumerate(endings)]
    length = 0
    while alive:
        places: defaultdict[int, list[int]] = defaultdict(list)
        for number, i in alive:
            lines = endings[i][1]
            if length < len(lines):
                places[_add_line(number, lines[length])].append(i)
        length += 1
        repeated = {number: found for number, found in places.items() if len(found) >= minimum}
        yield from (_Block(number, length, found) for number, found in repeated.items())
        alive = [(number, i) for number, found in repeated.items() for i in found]


def _add_line(block: int, line: int) -> int:
    """Return the number of a block with one more line above it."""
    return (block ^ line) * _FACTOR & _BITS


def _line_above(lines: Sequence[int], length: int) -> int | None:
    """Return the line above the last `length` lines; None above nothing."""
    return lines[length] if length < len(lines) else None


def _count_known(author: str, lines: Sequence[int], known: frozenset[int]) -> int:
    """Count the lines of the longest block that is known."""
    if not lines or not known:
        return 0
    longest, block = 0, number_of(author)
    for length, line in enumerate(lines, 1):
        block = _add_line(block, line)
        if block in known:
            longest = length
    return longest
