"""The one door to the outside: what leaves it holds no address of anybody, unless that is wanted.

Every document passes, whatever it is made of; what is new in one is masked unless it is listed here
as an id.

[encoded] Mask what is encoded in a text of mail, where addresses stand that no reader of texts finds.

A public key holds the address of its owner in base64, and so do signatures, certificates and files
that are pasted. What they hold is not asked: it may be cut, compressed or encoded once more.

[passages] Parts of texts as passages that may be seen: an address that a part's border cuts is hidden.

A chunk ends where its size says, within a line and a word where there is no better place.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mail_assets.reading.records import read_around
from mail_assets.search.language.request import Request
from mail_assets.web.addresses import CONTEXT, MASK, mask_addresses
from mail_assets.web.searchers import SearchService

#: What stands before the text of a line, blanks, marks of quotes, those of a patch, and behind it.
_MARGIN, _END = r"[ \t>|+-]*+", r"[ \t\r]*+(?=\n|\Z)"
#: Lines of base64 have 64 characters (PGP, PEM) or 76 (MIME), and 20 capitals and digits among 60;
#: a path of a traceback has few, a hash no capitals.
_LONG = (
    r"(?=(?:[a-z\d+/]{0,59}[A-Z]){6})(?=(?:[A-Za-z/]{0,59}[\d+]){2})"
    rf"[A-Za-z\d+/]{{60,}}+={{0,2}}{_END}"
)
#: The lines behind it, of which the last is shorter, and a checksum.
_MORE = rf"(?:\n{_MARGIN}[A-Za-z\d+/=]++{_END})*+"
#: Of a text that was cut, the end of a line.
_CUT = rf"\A[A-Za-z\d+/]++{_END}\n"
_BASE64 = rf"(?:{_CUT})?{_MARGIN}{_LONG}{_MORE}"
#: Lines of uuencode, behind "begin" or the first of 45 bytes.
_UU_LINES = rf"(?:\n{_MARGIN}[!-`][ -`]{{4,60}}{_END})++"
_UU = rf"{_MARGIN}(?P<uu>begin [0-7]{{3,4}} [^\n]++|M[ -`]{{60}}{_END}){_UU_LINES}"
_ENCODED = re.compile(rf"^(?:{_BASE64}|{_UU})", re.MULTILINE)
_BASE64_SIGNS, _UU_SIGNS = re.compile(r"[A-Za-z\d+/=]+"), re.compile(r"\S+")
_KEY = re.compile(r"-----BEGIN PGP (?:PUBLIC|PRIVATE|SECRET) KEY BLOCK-----")


def mask_encoded(text: str) -> str:
    """Return a text of the same length with what is encoded masked; in time linear in `text`."""
    return _ENCODED.sub(_blacken, text)


def is_encoded(text: str) -> bool:
    """Return whether a text has a key of PGP, or is more than half encoded."""
    encoded = sum(match.end() - match.start() for match in _ENCODED.finditer(text))
    return bool(_KEY.search(text)) or 2 * encoded > len(text)


def _blacken(match: re.Match[str]) -> str:
    signs = _UU_SIGNS if match["uu"] else _BASE64_SIGNS
    return signs.sub(lambda found: MASK * len(found.group()), match.group())


#: Whether addresses are shown.
HIDDEN, SHOWN = "hidden", "shown"
ADDRESSES = (HIDDEN, SHOWN)

#: Keys of addresses, and of what is counted by them.
_PRIVATE = frozenset({"from_email", "recipients", "cc", "reply_to", "authors"})
#: Keys of ids, which look like addresses, of URLs, and of what the client itself has sent.
_OPEN = frozenset(
    {
        "message_id", "thread_id", "parent_id", "parent_message_id", "in_reply_to", "references",
        "copies", "in_thread", "also", "patches", "key", "mentions", "url", "next", "previous",
        "pages", "query", "query_id", "permalink", "parameters", "question",
    }
)  # fmt: skip
#: What is counted by the names of people, who may have written their address there.
_KEYED_BY_NAMES = frozenset({"senders"})


@dataclass(frozen=True)
class Publication:
    """What a document is made into before anybody sees it."""

    addresses: str = HIDDEN

    @property
    def hides(self) -> bool:
        """Whether addresses are hidden."""
        return self.addresses == HIDDEN

    @property
    def private_keys(self) -> frozenset[str]:
        """The keys that no document has."""
        return _PRIVATE if self.hides else frozenset()

    def publish(self, document: Any, ids: Collection[str] = ()) -> Any:
        """Return a document of plain values as it may be seen.

        Addresses in texts are masked at their length, but for `ids`, known to be Message-IDs, and
        so is what is encoded and may hold some.
        """
        return _mask(document, ids) if self.hides else document

    def restrict(self, request: Request) -> Request:
        """Return a request whose hits do not tell whether a guess at an address is right."""
        return replace(request, names_only=True) if self.hides else request

    def publish_part(self, text: str, start: int, end: int) -> str:
        """Return a part of a text as it may be seen: an address that it cuts is hidden too.

        CONTEXT characters before and behind it are read, and the same is hidden as in the whole.
        """
        if not self.hides:
            return text[start:end]
        first = max(0, start - CONTEXT)
        return _mask_text(text[first : end + CONTEXT], ())[start - first : end - first]


def _mask(value: Any, ids: Collection[str]) -> Any:
    match value:
        case str():
            return _mask_text(value, ids)
        case dict():
            return {
                key: inner if key in _OPEN else _mask_under(key, inner, ids)
                for key, inner in value.items()
                if key not in _PRIVATE
            }
        case list() | tuple():
            return [_mask(inner, ids) for inner in value]
    return value


def _mask_under(key: str, value: Any, ids: Collection[str]) -> Any:
    masked = _mask(value, ids)
    if key not in _KEYED_BY_NAMES:
        return masked
    counts: Counter[str] = Counter()
    for name, count in masked.items():  # of several names the same may be left
        counts[_mask_text(name, ())] += count
    return dict(counts)


def _mask_text(text: str, ids: Collection[str]) -> str:
    return mask_addresses(mask_encoded(text), ids)


Document = dict[str, Any]


def hide_cut_addresses(
    hits: Iterable[Document], service: SearchService, publication: Publication
) -> None:
    """Hide in the chunks of hits what is hidden in their messages, whatever a chunk holds of it."""
    chunks = [chunk for hit in hits for chunk in hit["chunks"] if chunk["spans"]]
    if not chunks or not publication.hides:
        return
    around = service.read(read_around, {chunk["key"] for chunk in chunks}, CONTEXT)
    for chunk in chunks:
        parts = _hide(chunk, around.get(chunk["key"], ()), publication)
        chunk["text"] = "".join(parts)


def cut_texts(posts: Iterable[Document], most: int) -> None:
    """Cut the texts of posts that are longer, behind a whole line if there is one.

    Addresses are hidden in them already, by up to CONTEXT characters more.
    """
    for post in posts:
        text = post["body_text"]
        if len(text) > most:
            line_end = text.rfind("\n", 0, most) + 1
            end = line_end or most
            post["body_text"] = text[:end]
            post["segments"] = [
                (start, min(stop, end), kind)
                for start, stop, kind in post["segments"]
                if start < end
            ]


def _hide(chunk: Document, around: Sequence[str], publication: Publication) -> Iterator[str]:
    """Yield the text of each span; of a message that was replaced meanwhile nothing is known."""
    at = 0
    for place, (start, end) in enumerate(chunk["spans"]):
        text = chunk["text"][at : at + end - start]
        at += end - start
        whole = around[place] if place < len(around) else ""
        first = min(start, CONTEXT)
        last = first + len(text)
        is_there = whole[first:last] == text
        yield publication.publish_part(whole, first, last) if is_there else MASK * len(text)
