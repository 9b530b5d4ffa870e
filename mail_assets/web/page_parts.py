"""Make what pages show besides their documents: links, bars, reasons, and texts in pieces."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple

from mail_assets.mail.body.segments import Segment
from mail_assets.mail.message.forgotten import is_placeholder
from mail_assets.mail.message.text_addresses import MASK, find_addresses
from mail_assets.month import months_between
from mail_assets.search.language.fields import read_field
from mail_assets.search.language.request import Sort
from mail_assets.search.language.syntax import ParsedRequest
from mail_assets.search.response import REASONS, ChunkHit, cut_snippet, mark_spans
from mail_assets.text.untrusted import TURNS
from mail_assets.web.requests import (
    OPTIONS,
    anchor,
    drop_filters,
    drop_quotes,
    find_address,
    page_url,
    place_url,
    refine,
)

Document = Mapping[str, Any]

#: Characters of a chunk that a hit shows.
SNIPPET = 400
#: Size of a bar in SVG units, and the most months with a bar each; a longer search has years.
BAR_WIDTH, BAR_HEIGHT, MAX_MONTHS = 24, 60, 60
#: Senders and years among the links that refine; the histogram has every year.
SENDERS, YEARS = 10, 10
#: A URL to link: no user name before the host, and no characters that change the direction of
#: text. Its path may have the id of a message.
_URL = re.compile(rf"https?://[^\s<>\"'`@/{TURNS}]++(?!@)(?:/[^\s<>\"'`{TURNS}]*+)?")
#: Characters at the end of a sentence, which are no part of a URL before them.
_AFTER_URL = ".,;:!?)]}"
#: Lines of the longest quote that is not folded.
OPEN_QUOTE = 12
#: Kinds of segments that are shown like another kind.
_SHOWN_AS = {"attribution": "quote", "footer": "signature"}
#: Levels by which a thread is indented: lines must stay readable on a phone.
MAX_INDENT = 8
#: Pages of a thread that a page links before and after itself.
NEAR_PAGES = 3
#: Citations as answers/citations write them, and code, which has none.
_CITED = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`|\[(\d{1,4}(?:, \d{1,4}){0,50})\]", re.DOTALL)


@dataclass(frozen=True)
class Bar:
    """A bar of the histogram: its month or year, its place, and the URL of the narrower search."""

    label: str
    count: int
    x: int
    height: int
    url: str


@dataclass(frozen=True)
class Link:
    """A link; `count` is the number of messages that it leads to, or 0."""

    text: str
    url: str
    count: int = 0


def view_hits(document: Document) -> list[dict[str, Any]]:
    """Return the hits of a search with what a page shows of them.

    Messages folded into a hit are shown if the document has their titles.
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
    """Return a bar for each month, or year, from the first that has a match to the last."""
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
    """Return the links that refine a search, by their heading."""
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
    """Yield links to searches that find more, for a search that found little or nothing."""
    request = parsed.request
    if request.mode != OPTIONS["mode"]:
        yield Link("By words and by meaning", _change(parsed, "mode"))
    if request.sort != Sort.relevance:
        yield Link("Best first, where words may be missing", _change(parsed, "sort"))
    if url := drop_filters(parsed):
        yield Link("Without the filters below the box", url)
    if not document["without_quotes"] and (url := drop_quotes(parsed)):
        yield Link("Without the quotes", url)


#: The orders of hits, as links name them.
_ORDERS = {Sort.relevance: "Best first", Sort.date: "Newest first", Sort.oldest: "Oldest first"}


def view_sorts(parsed: ParsedRequest) -> list[Link]:
    """Return the links to the other orders."""
    return [
        Link(name, find_address(parsed, sort=sort.value, offset=0))
        for sort, name in _ORDERS.items()
        if sort != parsed.request.sort
    ]


def describe_reasons(hit: Document) -> str:
    """Return the reasons why a message is a hit, as one line."""
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
    """Return a part of the best chunk in pieces; each says whether it is marked."""
    if not hit["chunks"]:
        return []
    first = hit["chunks"][0]
    spans = {name: tuple(map(tuple, first[name])) for name in ("spans", "highlights")}
    return [*cut_snippet(ChunkHit(**{**first, **spans}), SNIPPET)]


def _change(parsed: ParsedRequest, option: str) -> str:
    """Return the address of a search with the default of an option."""
    return find_address(parsed, **{option: OPTIONS[option]}, offset=0)


class Piece(NamedTuple):
    """A piece of text, and the URL that it links to, or ""."""

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
        """True if the lines are shown on demand; short quotes are always shown."""
        if self.kind == "quote":
            return len(self.lines) > OPEN_QUOTE
        return self.kind == "signature"

    @property
    def opening(self) -> str:
        """The first line that has more than a rule or a quote mark."""
        lines = ("".join(piece.text for piece in line).strip("> ") for line in self.lines)
        return next((line for line in lines if line.strip("_-=*> ")), "")


def split_parts(text: str, segments: Sequence[Segment], ids: Collection[str]) -> Iterator[Part]:
    """Yield the parts of a body in order; `ids` are ids of messages that it names."""
    spans = segments or [Segment(0, len(text), "text")]
    shown = [(_kind_of(kind), text[start:end]) for start, end, kind in spans]
    for kind, some in groupby(shown, key=lambda one: one[0]):
        joined = "".join(part for _, part in some).strip("\n")
        if joined.strip():
            lines = (tuple(link_pieces(line, ids)) for line in joined.split("\n"))
            yield Part(kind, tuple(lines))


def link_pieces(line: str, ids: Collection[str]) -> Iterator[Piece]:
    """Yield a line in pieces; URLs and ids of messages are links."""
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
        if MASK not in url:  # a masked URL leads elsewhere
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


def view_body(document: Document, mentions: list[str]) -> list[Part]:
    """Return the parts of the body of a message or of a post."""
    segments = [Segment(*one) for one in document["segments"]]
    return [*split_parts(document["body_text"], segments, frozenset(mentions))]


def view_posts(document: Document) -> Iterator[dict[str, Any]]:
    """Yield the posts of a page of a thread with what a page shows of them."""
    on_page = {post["message_id"]: post for post in document["posts"] if not post["is_ghost"]}
    level = min((post["depth"] for post in document["posts"]), default=0)
    for post in document["posts"]:
        parent_id = post["parent_id"] or ""
        parent = on_page.get(parent_id)
        subject_above = parent["subject_base"] if parent else document["subject"]
        yield {
            **post,
            "parts": [] if post["is_ghost"] else view_body(post, document["mentions"]),
            "indent": min(post["depth"] - level, MAX_INDENT),
            "new_subject": post["subject"] if post["subject_base"] != subject_above else "",
            "is_forgotten": is_placeholder(post["message_id"]),
            "parent": parent,
            "parent_url": f"#{anchor(parent_id)}" if parent else place_url(parent_id),
            "left_out": post["characters"] - len(post["body_text"]),
        }


def choose_pages(document: Document) -> list[int]:
    """Return the pages of a thread to link, from 0: the first, the last, and the nearest."""
    pages = document["pages"]
    here, last = pages.index(document["url"]), len(pages) - 1
    near = range(max(0, here - NEAR_PAGES), min(last, here + NEAR_PAGES) + 1)
    return sorted({0, *near, last})


def view_month(document: Document) -> Iterator[list[dict[str, Any]]]:
    """Yield the messages of each thread of a page of a month."""
    for _, some in groupby(document["posts"], key=lambda post: post["thread_id"]):
        posts = [*some]
        level = min(post["depth"] for post in posts)
        yield [{**post, "indent": min(post["depth"] - level, MAX_INDENT)} for post in posts]


def view_years(document: Document) -> dict[str, list[tuple[str, int]]]:
    """Return the months of a list with their counts, by year, the newest first."""
    months = sorted(document["months"].items(), reverse=True)
    return {
        year: [*reversed([*some])] for year, some in groupby(months, key=lambda one: one[0][:4])
    }


def view_answer(document: Mapping[str, Any]) -> Iterator[list[Piece]]:
    """Yield the paragraphs of an answer; their only links are citations of messages."""
    urls = {str(one["number"]): one["url"] for one in document["citations"]}
    pieces = [*_link_citations(document["text"], urls)]
    for paragraph in _split_lines(pieces):
        if any(piece.text.strip() for piece in paragraph):
            yield paragraph


def _split_lines(pieces: Iterable[Piece]) -> Iterator[list[Piece]]:
    line: list[Piece] = []
    for piece in pieces:
        first, *others = piece.text.split("\n")
        line.append(Piece(first, piece.url))
        for text in others:
            yield line
            line = [Piece(text)]
    yield line


def _link_citations(text: str, urls: Mapping[str, str]) -> Iterator[Piece]:
    at = 0
    for found in _CITED.finditer(text):
        if not found[1]:
            continue
        yield Piece(text[at : found.start()] + "[")
        for place, number in enumerate(found[1].split(", ")):
            yield Piece(", " if place else "")
            yield Piece(number, urls.get(number, ""))
        yield Piece("]")
        at = found.end()
    yield Piece(text[at:])
