"""Which lines end a mail, as candidates for footer and signature, and their numbers.

Numbers stand for lines: equal for lines that differ only in blanks, digits, addresses and tokens.
"""

import re
from collections.abc import Sequence
from hashlib import blake2b
from typing import NamedTuple

MAX_FOOTER = 16  # visible lines
MAX_SIGNATURE = 12  # visible lines

# what differs from message to message or from reader to reader: links' tokens, numbers, addresses
_TOKEN_OR_NUMBER = r"(?<=[/?=&])[\w%+.-]{12,}+|\d+"
_VARYING = re.compile(_TOKEN_OR_NUMBER)
_VARYING_OR_ADDRESS = re.compile(rf"[^\s<>()@]{{1,80}}+@[^\s<>()@]{{1,80}}+|{_TOKEN_OR_NUMBER}")
_MAY_VARY = re.compile(r"[\d/?=&]")


class Ending(NamedTuple):
    """The last lines of a message as numbers, the last line first; no text can be read from it.

    `tail` ends the body, above any footer that is known by name; `own` ends what the author
    wrote above a quote that goes to the end. Numbers have 63 bits, as PostgreSQL's bigint holds.
    """

    tail: tuple[int, ...] = ()
    own: tuple[int, ...] = ()


class EndingLines(NamedTuple):
    """Which lines of a body form its ending: indexes, the last line first."""

    tail: list[int]
    own: list[int]


def find_ending_lines(lines: Sequence[str], kinds: Sequence[str]) -> EndingLines:
    """Find the lines that may be footer or signature, by the kinds that the rules gave them.

    The body's first visible line is the last of them at most: it tells what stands above.
    """
    first = next((i for i, line in enumerate(lines) if line.strip()), len(lines))
    at = len(lines) - 1
    while at >= first and (kinds[at] == "footer" or not lines[at].strip()):
        at -= 1
    tail, at = _lines_above(lines, kinds, at, first, MAX_FOOTER + MAX_SIGNATURE)
    end = at
    while at >= first and (kinds[at] in {"quote", "attribution"} or not lines[at].strip()):
        at -= 1
    quotes_rest = any(_begins_quote(lines, kinds, i) for i in range(at + 1, end + 1))
    own = _lines_above(lines, kinds, at, first, MAX_SIGNATURE)[0] if quotes_rest else []
    return EndingLines(tail, own)


def hash_ending(lines: Sequence[str], found: EndingLines) -> Ending:
    """Return the lines of an ending as numbers."""
    return Ending(
        tuple(hash_line(lines[i]) for i in found.tail),
        tuple(hash_line(lines[i]) for i in found.own),
    )


def hash_line(line: str) -> int:
    """Return the number of a line, whatever its blanks, digits, addresses and tokens are."""
    return number_of(_without_varying(" ".join(line.lower().split())))


def _without_varying(line: str) -> str:
    """Put a sign in place of what varies: most lines hold nothing that does."""
    if "@" in line:
        return _VARYING_OR_ADDRESS.sub("#", line)
    return _VARYING.sub("#", line) if _MAY_VARY.search(line) else line


def number_of(text: str) -> int:
    """Return the number of a text."""
    return (
        int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()) >> 1
    )


def _lines_above(
    lines: Sequence[str], kinds: Sequence[str], at: int, first: int, limit: int
) -> tuple[list[int], int]:
    """Visible lines from `at` upwards that are no quote or patch, and where these begin."""
    found: list[int] = []
    while at >= first and kinds[at] in {"text", "signature", "footer"} and len(found) < limit:
        if lines[at].strip():
            found.append(at)
        at -= 1
    return found, at


def _begins_quote(lines: Sequence[str], kinds: Sequence[str], i: int) -> bool:
    """Tell an attribution, or a quote without marks, from quotes between answers."""
    return kinds[i] == "attribution" or (lines[i].strip() != "" and ">" not in lines[i][:8])
