"""What templates are filled with, beside the documents: parts of bodies, bars, links to refine."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from mail_assets.mail.body.segments import Segment
from mail_assets.mail.message.forgotten import is_stand_in
from mail_assets.month import months_between
from mail_assets.search.response import ChunkHit
from mail_assets.search.snippets import cut_snippet
from mail_assets.serving.text_view import Part, split_parts
from mail_assets.serving.urls import anchor, place_url, search_url

Document = Mapping[str, Any]

#: Characters of a chunk that a hit shows.
SNIPPET = 400
#: Levels that a thread is indented by: a line has to stay readable on a phone.
MAX_INDENT = 8
#: The histogram, in its own units, and the most months that it has a bar for; of more, years.
BAR_WIDTH, BAR_HEIGHT, MAX_MONTHS = 24, 60, 60


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
    """A link with a count."""

    text: str
    count: int
    url: str


def view_hits(document: Document) -> list[dict[str, Any]]:
    """Return the hits of a search with what a page shows of them."""
    return [
        {**hit, "snippet": _snippet(hit), "reasons": describe_reasons(hit)}
        for hit in document["hits"]
    ]


def view_histogram(document: Document, parameters: Mapping[str, str]) -> list[Bar]:
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
            url=_refine(parameters, f"date:{period}"),
        )
        for at, period in enumerate(periods)
    ]


def view_facets(document: Document, parameters: Mapping[str, str]) -> dict[str, list[Link]]:
    """Return the links that refine a search by list and by kind."""
    facets = document["facets"]
    return {
        name: [
            Link(value, count, _refine(parameters, f"{field}:{value}"))
            for value, count in facets[name].items()
        ]
        for name, field in (("lists", "list"), ("kinds", "kind"))
    }


def view_body(document: Document, mentions: list[str]) -> list[Part]:
    """Return the parts of the body of a message or of a post."""
    segments = [Segment(*one) for one in document["segments"]]
    return [*split_parts(document["body_text"], segments, frozenset(mentions))]


def view_posts(document: Document) -> Iterator[dict[str, Any]]:
    """Yield the posts of a page of a thread with what is shown of them."""
    on_page = {post["message_id"]: post for post in document["posts"]}
    for post in document["posts"]:
        parent_id = post["parent_id"] or ""
        parent = on_page.get(parent_id)
        subject_above = parent["subject_base"] if parent else document["subject"]
        yield {
            **post,
            "parts": [] if post["is_ghost"] else view_body(post, document.get("mentions", [])),
            "indent": min(post["depth"], MAX_INDENT),
            "new_subject": post["subject"] if post["subject_base"] != subject_above else "",
            "is_forgotten": is_stand_in(post["message_id"]),
            "parent": parent,
            "parent_url": f"#{anchor(parent_id)}" if parent else place_url(parent_id),
            "left_out": post["characters"] - len(post["body_text"]),
        }


def _snippet(hit: Document) -> list[tuple[str, bool]]:
    """Return what a hit shows of its best chunk in pieces, each with whether it is marked."""
    if not hit["chunks"]:
        return []
    first = hit["chunks"][0]
    spans = {name: tuple(map(tuple, first[name])) for name in ("spans", "highlights")}
    return [*cut_snippet(ChunkHit(**{**first, **spans}), SNIPPET)]


def describe_reasons(hit: Document) -> str:
    """Return why a message is a hit."""
    why = hit["why"]
    reasons = [f"{leg} {rank}" for leg, rank in sorted(why["ranks"].items())] or ["its thread"]
    if why["words"]:
        reasons.append(f"words {', '.join(why['words'])}")
    if why["distance"] is not None:
        reasons.append(f"distance {why['distance']:.3f}")
    return "; ".join(reasons)


def _refine(parameters: Mapping[str, str], field: str) -> str:
    query = f"{parameters.get('q', '')} {field}".strip()
    rest = {name: value for name, value in parameters.items() if name not in ("q", "offset")}
    return search_url(query, **rest)
