"""Learn what repeats at the end of the messages of a list's month: footers and signatures.

A block of lines that ends messages of several authors in several threads is the list's footer;
one that ends several messages of one author is the author's signature. Blocks stand at the end
of the body, above a footer, or at the end of a top post's own text. What a person wrote once
repeats nowhere, so it is never taken for either. Only hashes of lines are kept, no text.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import NamedTuple

_MAX_FOOTER = 16  # visible lines
_MAX_SIGNATURE = 12  # visible lines
_MAX_LINES = _MAX_FOOTER + _MAX_SIGNATURE
_MIN_FOOTER_AUTHORS = 4
_MIN_FOOTER_THREADS = 4
_MIN_SIGNED = 3  # messages of one author

# what differs from message to message or from reader to reader: addresses, links' tokens, numbers
_VARYING = re.compile(r"[^\s<>()@]{1,80}@[^\s<>()@]{1,80}|(?<=[/?=&])[\w%+.-]{12,}+|\d+")
_TELLING = re.compile(r"://|www\.|@|[-_=*#~]{5}|\b(?:list|subscri|archive)")
_MIN_TELLING = 30  # characters of a line that tells something without a link


class Ending(NamedTuple):
    """The last lines of a message as numbers, the last line first; no text can be read from it.

    `tail` ends the body, above any footer that is known by name; `own` ends what the author
    wrote above a quote that goes to the end. A negative number is a line that is too common to
    make a footer by itself: a closing, a bracket, a short word.
    """

    tail: tuple[int, ...] = ()
    own: tuple[int, ...] = ()


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
        footer = _footer_length(ending, self.footers)
        signature = _known_length(_blocks(author, ending.tail[footer:]), self.signatures)
        own = _known_length(_blocks(author, ending.own), self.signatures)
        return EndingMatch(footer, signature, own)


NO_ENDINGS = RepeatedEndings()


def hash_line(line: str) -> int:
    """Return the number of a line, whatever its blanks, digits, addresses and tokens are."""
    folded = _VARYING.sub("#", " ".join(line.lower().split()))
    number = _number(folded)
    return number if len(folded) >= _MIN_TELLING or _TELLING.search(line) else -number


class EndingLines(NamedTuple):
    """Which lines of a body form its ending: indexes, the last line first."""

    tail: list[int]
    own: list[int]


def find_ending_lines(lines: Sequence[str], kinds: Sequence[str]) -> EndingLines:
    """Find the lines that may be footer or signature, by the kinds that the rules gave them.

    The body's first visible line is never among them: an ending has text above.
    """
    first = next((i for i, line in enumerate(lines) if line.strip()), len(lines))
    at = len(lines) - 1
    while at > first and (kinds[at] == "footer" or not lines[at].strip()):
        at -= 1
    tail, at = _lines_above(lines, kinds, at, first, _MAX_LINES)
    end = at
    while at > first and (kinds[at] in {"quote", "attribution"} or not lines[at].strip()):
        at -= 1
    quotes_rest = any(_begins_quote(lines, kinds, i) for i in range(at + 1, end + 1))
    own = _lines_above(lines, kinds, at, first, _MAX_SIGNATURE)[0] if quotes_rest else []
    return EndingLines(tail, own)


def hash_ending(lines: Sequence[str], found: EndingLines) -> Ending:
    """Return the lines of an ending as numbers."""
    return Ending(
        tuple(hash_line(lines[i]) for i in found.tail),
        tuple(hash_line(lines[i]) for i in found.own),
    )


def learn_endings(endings: Iterable[tuple[str, str, Ending]]) -> RepeatedEndings:
    """Learn from all messages of a list's month: author, subject without "Re:", ending.

    The order of the messages does not matter. Memory: some 30 numbers a message.
    """
    known = list(endings)
    authors: defaultdict[int, set[str]] = defaultdict(set)
    threads: defaultdict[int, set[str]] = defaultdict(set)
    for author, thread, ending in known:
        for block in _footer_blocks(ending):
            authors[block].add(author)
            threads[block].add(thread)
    footers = frozenset(
        block
        for block, people in authors.items()
        if len(people) >= _MIN_FOOTER_AUTHORS and len(threads[block]) >= _MIN_FOOTER_THREADS
    )
    signed: defaultdict[int, int] = defaultdict(int)
    for author, _, ending in known:
        footer = _footer_length(ending, footers)
        for block in {*_blocks(author, ending.tail[footer:]), *_blocks(author, ending.own)}:
            signed[block] += 1
    signatures = frozenset(block for block, count in signed.items() if count >= _MIN_SIGNED)
    return RepeatedEndings(footers, signatures)


def _lines_above(
    lines: Sequence[str], kinds: Sequence[str], at: int, first: int, limit: int
) -> tuple[list[int], int]:
    """Visible lines from `at` upwards that are no quote or patch, and where these begin."""
    found: list[int] = []
    while at > first and kinds[at] in {"text", "signature", "footer"} and len(found) < limit:
        if lines[at].strip():
            found.append(at)
        at -= 1
    return found, at


def _begins_quote(lines: Sequence[str], kinds: Sequence[str], i: int) -> bool:
    """Tell an attribution, or a quote without marks, from quotes between answers."""
    return kinds[i] == "attribution" or (lines[i].strip() != "" and ">" not in lines[i][:8])


def _footer_blocks(ending: Ending) -> Iterator[int]:
    return _blocks("", ending.tail[:_MAX_FOOTER])


def _blocks(author: str, lines: Sequence[int]) -> Iterator[int]:
    """Yield a number for the last line, one for the last two lines, and so on."""
    block = _number(author)
    for line in lines[:_MAX_FOOTER]:
        block = _number(f"{block} {line}")
        yield block


def _number(text: str) -> int:
    """Return a number of 63 bits, as PostgreSQL's bigint holds it."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest()) >> 1


def _footer_length(ending: Ending, footers: frozenset[int]) -> int:
    """Count the footer's lines; the topmost must tell something by itself."""
    length = _known_length(_footer_blocks(ending), footers)
    while length and ending.tail[length - 1] < 0:
        length -= 1
    return length


def _known_length(blocks: Iterable[int], known: frozenset[int]) -> int:
    length = 0
    for block in blocks:
        if block not in known:
            break
        length += 1
    return length
