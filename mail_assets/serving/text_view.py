"""Texts of mail as a page shows them: links, folded quotes, coloured patches, marked words."""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from mail_assets.mail.body.segments import Segment
from mail_assets.serving.addresses import MASK, find_addresses
from mail_assets.serving.urls import page_url

#: A link that may be followed: no user names before the host, no characters that turn the writing.
#: In its path there may be an id of a message.
_TURNS = r"\u061C\u200E\u200F\u202A-\u202E\u2066-\u2069"
_URL = re.compile(rf"https?://[^\s<>\"'`@/{_TURNS}]++(?!@)(?:/[^\s<>\"'`{_TURNS}]*+)?")
#: What ends a sentence or a bracket, and no URL.
_AFTER_URL = ".,;:!?)]}"


#: Lines that a quote has at most to be shown at once.
OPEN_QUOTE = 12
#: What is shown as what.
_SHOWN_AS = {"attribution": "quote", "footer": "signature"}


class Piece(NamedTuple):
    """A piece of text, and where it leads, "" for nowhere."""

    text: str
    url: str = ""


class Part(NamedTuple):
    """Lines of one kind: text, quote, patch or signature.

    An attribution goes with its quote, a footer with the signature before it.
    """

    kind: str
    lines: tuple[tuple[Piece, ...], ...]

    @property
    def is_folded(self) -> bool:
        """Whether the lines are shown on demand; the few lines of an answer's question are not."""
        if self.kind == "quote":
            return len(self.lines) > OPEN_QUOTE
        return self.kind == "signature"

    @property
    def opening(self) -> str:
        """The first line that says something."""
        lines = ("".join(piece.text for piece in line).strip("> ") for line in self.lines)
        return next((line for line in lines if line.strip("_-=*> ")), "")


def split_parts(text: str, segments: Sequence[Segment], ids: Collection[str]) -> Iterator[Part]:
    """Yield the parts of a body in order; `ids` are those in it that have a page."""
    spans = segments or [Segment(0, len(text), "text")]
    shown = [(_kind_of(kind), text[start:end]) for start, end, kind in spans]
    for kind, some in groupby(shown, key=lambda one: one[0]):
        joined = "".join(part for _, part in some).strip("\n")
        if joined.strip():
            lines = (tuple(link_pieces(line, ids)) for line in joined.split("\n"))
            yield Part(kind, tuple(lines))


def link_pieces(line: str, ids: Collection[str]) -> Iterator[Piece]:
    """Yield a line in pieces, its URLs and the ids of messages as links."""
    at = 0
    for start, end, url in _find_links(line, ids):
        if start >= at:
            yield from _plain(line[at:start])
            yield Piece(line[start:end], url)
            at = end
    yield from _plain(line[at:])


def _find_links(line: str, ids: Collection[str]) -> Iterable[tuple[int, int, str]]:
    found = []
    for match in _URL.finditer(line):
        url = match.group().rstrip(_AFTER_URL)
        if MASK not in url:  # what is hidden in a link led elsewhere
            found.append((match.start(), match.start() + len(url), url))
    for address in find_addresses(line) if ids else ():
        if address.text in ids:
            found.append((address.start, address.end, page_url("message", address.text)))
    return sorted(found)


def _plain(text: str) -> Iterator[Piece]:
    if text:
        yield Piece(text)


def _kind_of(kind: str) -> str:
    return _SHOWN_AS.get(kind, kind)
