"""Mask the addresses in a text of mail, as they are written and as they are commonly disguised.

A masked text has as many characters as before, so that spans of highlights and segments still fit:
mask first, then cut. https://www.unicode.org/reports/tr36/ names the characters that look like "@".
"""

import re
from collections.abc import Collection, Iterator
from typing import NamedTuple

#: Stands for each character of an address.
MASK = "\N{BULLET}"
#: The longest local part and domain (RFC 5321, 4.5.3.1).
MAX_LOCAL, MAX_DOMAIN = 64, 255

#: What an "@" is written as: itself and its likenesses, in URLs, HTML and quoted-printable, and by
#: people and archives that disguise addresses.
_AT = re.compile(
    r"[@\uFF20\uFE6B]|%40|=40|&#0{0,5}64;|&#x0{0,5}40;|&commat;"
    r"|[ \t]{0,2}[\[({<]{1,2}[ \t]?at[ \t]?[\])}>]{1,2}[ \t]{0,2}|[ \t]at[ \t]|-at-|_at_",
    re.IGNORECASE,
)
_INVISIBLE = r"\u00AD\u200B-\u200F\u2060\uFEFF"
#: A local part, backwards, or quotes around anything on its line. No slash: what is before it in a
#: URL stays.
_LOCAL_BACKWARDS = re.compile(rf"\"[^\"\n]++\"|[\w.!#$&'*+=?^`{{|}}~%{_INVISIBLE}-]++")
_DOT = r"(?:[.\u3002\uFF0E]|[ \t]{0,2}[\[({][ \t]?dot[ \t]?[\])}][ \t]{0,2}|[ \t]dot[ \t])"
_LABEL = rf"[\w{_INVISIBLE}-]++"
_DOMAIN = re.compile(rf"(?!www\.){_LABEL}(?:{_DOT}{_LABEL})++|\[[\dA-Fa-f.:]++\]", re.IGNORECASE)
#: A host without dots, after a plain "@" only.
_HOST = re.compile(_LABEL)
#: A version has none: "react@18.2"; an address of a network in brackets does without.
_LETTER = re.compile(r"[^\W\d_]|\[")
#: Where "at" is a word the domain ends with letters: "at 10.30" is a time.
_NAMED = re.compile(r"[^\W\d_]{2}")


class Address(NamedTuple):
    """An address in a text, from `start` to `end`."""

    start: int
    end: int
    text: str


def find_addresses(text: str) -> Iterator[Address]:
    """Yield what is an address, or a Message-ID, which looks like one; in time linear in `text`."""
    end = 0
    for at in _AT.finditer(text):
        before = text[max(end, at.start() - MAX_LOCAL) : at.start()]
        # most of what is hostile, a megabyte of "@", has no local part
        if not (local := _LOCAL_BACKWARDS.match(before[::-1])):
            continue
        if domain := _match_domain(text, at):
            start, end = at.start() - local.end(), domain.end()
            yield Address(start, end, text[start:end])


def _match_domain(text: str, at: re.Match[str]) -> re.Match[str] | None:
    bounds = at.end(), at.end() + MAX_DOMAIN
    domain = _DOMAIN.match(text, *bounds)
    if at.group() == "@":
        domain = domain or _HOST.match(text, *bounds)
        return domain if domain and _LETTER.search(domain.group()) else None
    return domain if domain and _NAMED.search(domain.group()[-6:]) else None


def mask_addresses(text: str, keep: Collection[str] = ()) -> str:
    """Return a text of the same length with its addresses masked, but for those to `keep`."""
    pieces: list[str] = []
    at = 0
    for address in find_addresses(text):
        if address.text not in keep:
            pieces += [text[at : address.start], MASK * (address.end - address.start)]
            at = address.end
    return "".join([*pieces, text[at:]])
