"""What the page of a search shows beside its document: reasons, bars, links to refine, advice.

[text_view] Texts of mail as a page shows them: links, folded quotes, coloured patches, marked words.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple

from mail_assets.mail.body.segments import Segment
from mail_assets.month import months_between
from mail_assets.search.language.fields import read_field
from mail_assets.search.language.request import Sort
from mail_assets.search.language.syntax import ParsedRequest
from mail_assets.search.response import REASONS, ChunkHit, cut_snippet, mark_spans
from mail_assets.web.addresses import MASK, find_addresses
from mail_assets.web.requests import (
    OPTIONS,
    drop_filters,
    drop_quotes,
    find_address,
    page_url,
    refine,
)

Document = Mapping[str, Any]

#: Characters of a chunk that a hit shows.
SNIPPET = 400
#: The histogram, in its own units, and the most months that it has a bar for; of more, years.
BAR_WIDTH, BAR_HEIGHT, MAX_MONTHS = 24, 60, 60
#: Senders and years that are named; the histogram has every year.
SENDERS, YEARS = 10, 10


@dataclass(frozen=True)
class Bar:
    """A month or year of the histogram: where its bar stands, and the search that it leads to."""

    label: str
    count: int
    x: int
    height: int
    url: str


@dataclass(frozen=True)
class Link:
    """A link, with a count where it has one."""

    text: str
    url: str
    count: int = 0


def view_hits(document: Document) -> list[dict[str, Any]]:
    """Return the hits of a search with what a page shows of them.

    Those that are folded into one have titles where the document has them.
    """
    titles = document.get("titles", {})
    return [
        {
            **hit,
            "title": [*mark_spans(hit["subject"], hit["subject_highlights"])],
            "snippet": _snippet(hit),
            "reasons": describe_reasons(hit),
            "folded": [titles[id] for id in hit["in_thread"] if id in titles],
            "duplicates": [titles[id] for id in hit["copies"] if id in titles],
        }
        for hit in document["hits"]
    ]


def view_histogram(document: Document, parsed: ParsedRequest) -> list[Bar]:
    """Return a bar for each month from the first to the last that has a match, or for each year."""
    facets = document["facets"]
    if not facets["months"]:
        return []
    counts, periods = facets["months"], months_between(min(facets["months"]), max(facets["months"]))
    if len(periods) > MAX_MONTHS:
        first, last = int(min(facets["years"])), int(max(facets["years"]))
        counts, periods = facets["years"], [str(year) for year in range(first, last + 1)]
    most = max(counts.values())
    return [
        Bar(
            label=period,
            count=counts.get(period, 0),
            x=at * BAR_WIDTH,
            height=-(-BAR_HEIGHT * counts.get(period, 0) // most),
            url=refine(parsed, read_field("date", period, None)),
        )
        for at, period in enumerate(periods)
    ]


def view_facets(document: Document, parsed: ParsedRequest) -> dict[str, list[Link]]:
    """Return the links that refine a search, under the headings that they stand under."""
    facets = document["facets"]
    senders = [one for one in facets["senders"].items() if MASK not in one[0]]
    fields = {
        "By list": ("list", facets["lists"].items()),
        "By sender": ("from", senders[:SENDERS]),
        "By year": ("date", sorted(facets["years"].items(), reverse=True)[:YEARS]),
        "By kind": ("kind", facets["kinds"].items()),
    }
    return {
        heading: [
            Link(value, refine(parsed, read_field(name, value, None)), count)
            for value, count in some
        ]
        for heading, (name, some) in fields.items()
        if some
    }


def view_advice(document: Document, parsed: ParsedRequest) -> Iterator[Link]:
    """Yield the searches that find more than one that found little or nothing."""
    request = parsed.request
    if request.mode != OPTIONS["mode"]:
        yield Link("By words and by meaning", _change(parsed, "mode"))
    if request.sort == Sort.date:
        yield Link("Best first, where words may be missing", _change(parsed, "sort"))
    if url := drop_filters(parsed):
        yield Link("Without the filters below the box", url)
    if not document["without_quotes"] and (url := drop_quotes(parsed)):
        yield Link("Without the quotes", url)


def view_sorts(parsed: ParsedRequest) -> Link:
    """Return the link to the other order."""
    if parsed.request.sort == Sort.date:
        return Link("Best first", _change(parsed, "sort"))
    return Link("Newest first", find_address(parsed, sort=Sort.date.value, offset=0))


def describe_reasons(hit: Document) -> str:
    """Return why a message is a hit."""
    why = hit["why"]
    ranks, words = why["ranks"], ", ".join(why["words"])
    reasons = []
    if "fulltext" in ranks or words:
        rank = f", rank {ranks['fulltext']}" if "fulltext" in ranks else ""
        reasons.append(f"words{rank}{f': {words}' if words else ''}")
    if "semantic" in ranks or why["distance"] is not None:
        rank = f", rank {ranks['semantic']}" if "semantic" in ranks else ""
        near = f", distance {why['distance']:.3f}" if why["distance"] is not None else ""
        reasons.append(f"meaning{rank}{near}")
    if not ranks:
        reasons.append(REASONS[why["found_by"]])
    return "; ".join(reasons)


def _snippet(hit: Document) -> list[tuple[str, bool]]:
    """Return what a hit shows of its best chunk in pieces, each with whether it is marked."""
    if not hit["chunks"]:
        return []
    first = hit["chunks"][0]
    spans = {name: tuple(map(tuple, first[name])) for name in ("spans", "highlights")}
    return [*cut_snippet(ChunkHit(**{**first, **spans}), SNIPPET)]


def _change(parsed: ParsedRequest, option: str) -> str:
    """Return the address of a search with an option as it is where nothing is said."""
    return find_address(parsed, **{option: OPTIONS[option]}, offset=0)


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
