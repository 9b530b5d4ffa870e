"""Learn what repeats at the end of the messages of a list's month: footers and signatures.

A block of lines that ends messages of several authors in several threads is the list's footer;
one that ends several messages of one author is the author's signature. Blocks stand at the end
of the body, above a footer, or at the end of a top post's own text. What a person wrote once
repeats nowhere, so it is never taken for either. Only hashes of lines are kept, no text.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from itertools import zip_longest
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
        footer = _longest(_blocks("", ending.tail), self.footers)
        signature = _longest(_blocks(author, ending.tail[footer:]), self.signatures)
        own = _longest(_blocks(author, ending.own), self.signatures)
        return EndingMatch(footer, signature, own)


NO_ENDINGS = RepeatedEndings()


@dataclass
class _Evidence:
    """Where a block was seen: authors, threads, and the lines above it (None above nothing)."""

    authors: set[str] = field(default_factory=set)
    threads: set[str] = field(default_factory=set)
    above: set[int | None] = field(default_factory=set)


def learn_endings(endings: Iterable[tuple[str, str, Ending]]) -> RepeatedEndings:
    """Learn from all messages of a list's month: author, subject without "Re:", ending.

    The order of the messages does not matter, nor do copies of one: a block counts by the
    different lines that stand above it. Memory: some 30 numbers a message.
    """
    known = list(endings)
    shared: defaultdict[int, _Evidence] = defaultdict(_Evidence)
    for author, thread, ending in known:
        for block, above in _with_line_above("", ending.tail):
            shared[block].authors.add(author)
            shared[block].threads.add(thread)
            shared[block].above.add(above)
    footers = frozenset(
        block
        for block, seen in shared.items()
        if min(len(seen.authors), len(seen.threads), len(seen.above)) >= _MIN_FOOTER
    )
    signed: defaultdict[int, set[int | None]] = defaultdict(set)
    for author, _, ending in known:
        footer = _longest(_blocks("", ending.tail), footers)
        for lines in (ending.tail[footer:], ending.own):
            for block, above in _with_line_above(author, lines):
                signed[block].add(above)
    signatures = frozenset(block for block, above in signed.items() if len(above) >= _MIN_SIGNED)
    return RepeatedEndings(footers, signatures)


def _blocks(author: str, lines: Sequence[int]) -> Iterator[int]:
    """Yield a number for the last line, one for the last two lines, and so on."""
    block = number_of(author)
    for line in lines:
        block = (block ^ line) * _FACTOR & _BITS
        yield block


def _with_line_above(author: str, lines: Sequence[int]) -> Iterator[tuple[int, int | None]]:
    return zip_longest(_blocks(author, lines), lines[1:])


def _longest(blocks: Iterable[int], known: frozenset[int]) -> int:
    """Count the lines of the longest block that is known."""
    return max((n for n, block in enumerate(blocks, 1) if block in known), default=0)
