"""Parts of pages that are not in documents: links, bars, reasons, and texts in pieces."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Any, NamedTuple

from mail_assets.mail.message.ids import is_placeholder
from mail_assets.mail.message.subjects import base_subject
from mail_assets.mail.message.text_addresses import MASK
from mail_assets.month import months_between
from mail_assets.search.language.fields import read_field
from mail_assets.search.language.request import Group, Sort
from mail_assets.search.language.syntax import ParsedRequest
from mail_assets.search.response import (
    REASONS,
    SHORTEST,
    ChunkHit,
    cut_beginning,
    cut_snippet,
    mark_spans,
    name_people,
)
from mail_assets.text.lookalikes import find_lookalikes
from mail_assets.web.bodies import flows_on, view_body
from mail_assets.web.requests import (
    OPTIONS,
    anchor,
    drop_filters,
    drop_quotes,
    find_address,
    place_url,
    refine,
)

Document = Mapping[str, Any]

#: Characters of a passage in a hit, and in a line of a conversation.
SNIPPET, LINE = 320, 200
#: Size of a bar in SVG units; most bars of months: longer periods have a bar for each year.
BAR_WIDTH, BAR_HEIGHT, MAX_MONTHS = 24, 60, 60
#: Most senders, and most years, among the links that refine; the histogram has every year.
SENDERS, YEARS = 10, 10
#: Most levels of indentation in a thread; lines must stay readable on a phone.
MAX_INDENT = 8
#: Most names of people in a thread's line.
NAMES = 3
#: Pages of a thread that a page links before it, and after it.
NEAR_PAGES = 3
#: The tags before a subject.
_TAGS = re.compile(r"\[[^\[\]]++\](?: ?+\[[^\[\]]++\])*+")
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
    """Return the hits of a search with the parts that pages show."""
    return [
        {
            **hit,
            "is_namesake": bool(hit["namesake"]),
            "title": [*mark_spans(hit["subject"], hit["subject_highlights"])],
            "snippet": _snippet(hit, SNIPPET),
            "reasons": describe_reasons(hit),
            "ordinal": document["ordinals"].get(hit["message_id"]) if hit["text"] == 1 else None,
        }
        for hit in document["hits"]
    ]


def view_conversations(document: Document, parsed: ParsedRequest) -> Iterator[dict[str, Any]]:
    """Yield the conversations of a search with their lines: the first message, then the best."""
    hits = {hit["message_id"]: hit for hit in document["hits"]}
    for one in document["conversations"]:
        first = one["first"]
        lines = [
            {**_view_line(hits[id], one), "ordinal": document["ordinals"].get(id)}
            for id in one["best"]
        ]
        if first and first["message_id"] not in one["best"]:
            beginning = {
                **first,
                "text": 1,
                "copies": (),
                "newer_copy": None,
                "other_versions": (),
                "patch": None,
                "attachments": (),
            }
            # a text of full length was cut within a word before
            size = min(LINE, SHORTEST - 1)
            beginning_of_text = cut_beginning(first["text"], size, keep_lines=True)
            snippet = [*_part_soft([(beginning_of_text, False)])]
            more = {
                "place": place_url(first["message_id"]),
                "is_first": True,
                "title": [],
                "reasons": "",
                "ordinal": None,
            }
            lines.insert(0, {**beginning, **more, "snippet": snippet})
        within = read_field("thread", one["thread_id"], None) if one["more"] else None
        yield {
            **one,
            "title": [*_mark_subject(one["subject"], [hits[id] for id in one["best"]])],
            "lines": [{**x, "is_namesake": bool(x["namesake"])} for x in lines],
            "who": name_people([name for name in one["names"] if _is_shown(name)], one["people"]),
            "more_url": refine(parsed, within, group=Group.message.value) if within else "",
        }


def _mark_subject(subject: str, hits: Iterable[Document]) -> Iterator[tuple[str, bool]]:
    """Yield the subject of a conversation in pieces, with the highlights of its hits."""
    for hit in hits:
        at = hit["subject"].find(subject)
        spans = [(start - at, end - at) for start, end in hit["subject_highlights"] if start >= at]
        if at >= 0 and spans and spans[-1][1] <= len(subject):
            return mark_spans(subject, spans)
    return mark_spans(subject, ())


def _view_line(hit: Document, one: Document) -> dict[str, Any]:
    """Return a hit as a line of its conversation, with its subject if that differs."""
    id, first, same = hit["message_id"], one["first"], base_subject(hit["subject"])
    title = [*mark_spans(hit["subject"], hit["subject_highlights"])]
    if same == one["subject"]:  # conversations have no tags, such as "[PATCH v5 2/3]"
        tags = _TAGS.match(hit["subject"])
        title = [(tags[0], False)] if tags else []
    return {
        **hit,
        "place": hit["url"] if hit["text"] > 1 or not one["thread_id"] else place_url(id),
        "is_first": first is not None and first["message_id"] == id,
        "title": title,
        "reasons": describe_reasons(hit),
        "snippet": _snippet(hit, LINE),
    }


def view_histogram(document: Document, parsed: ParsedRequest) -> list[Bar]:
    """Return a bar for each month, or year, from the first match to the last."""
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


def describe_reasons(hit: Document, *, names_words: bool = True) -> str:
    """Return the reasons why a message is a hit, as one line; its words are mail."""
    why = hit["why"]
    ranks, words = why["ranks"], why["words"]
    reasons = []
    if "fulltext" in ranks or words:
        rank = f", rank {ranks['fulltext']}" if "fulltext" in ranks else ""
        named = f": {', '.join(words)}" if words and names_words else ""
        reasons.append(f"words{rank}{named}")
    if "semantic" in ranks or why["distance"] is not None:
        rank = f", rank {ranks['semantic']}" if "semantic" in ranks else ""
        near = f", distance {why['distance']:.3f}" if why["distance"] is not None else ""
        reasons.append(f"meaning{rank}{near}")
    if not ranks:
        reasons.append(REASONS[why["found_by"]])
    reasons += why["commits"]
    return "; ".join(reasons)


def _snippet(hit: Document, size: int) -> list[tuple[str, bool]]:
    if not hit["chunks"]:
        return []
    first = hit["chunks"][0]
    spans = {name: tuple(map(tuple, first[name])) for name in ("spans", "highlights")}
    return [*_part_soft(cut_snippet(ChunkHit(**{**first, **spans}), size, keep_lines=True))]


def _part_soft(pieces: Iterable[tuple[str, bool]]) -> Iterator[tuple[str, bool]]:
    """Yield the pieces of a snippet; the end of a wrapped line is a separate piece."""
    pieces = [*pieces]
    lines = "".join(text for text, _ in pieces).split("\n")
    soft = iter([flows_on(line, after) for line, after in pairwise(lines)])
    for text, marked in pieces:
        first, *others = text.split("\n")
        yield first, marked
        for line in others:
            if next(soft):
                yield "\n", False
                yield line, marked
            else:
                yield f"\n{line}", marked


def _change(parsed: ParsedRequest, option: str) -> str:
    return find_address(parsed, **{option: OPTIONS[option]}, offset=0)


def view_posts(document: Document) -> Iterator[dict[str, Any]]:
    """Yield the posts of a thread's page with the parts that pages show."""
    on_page = {post["message_id"]: post for post in document["posts"] if not post["is_ghost"]}
    patches = {one["message_id"]: one for one in document["patch_states"]}
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
            "patch": patches.get(post["message_id"]),
            "is_forgotten": is_placeholder(post["message_id"]),
            "parent": parent,
            "parent_url": f"#{anchor(parent_id)}" if parent else place_url(parent_id),
            "left_out": post["characters"] - len(post["body_text"]),
            "is_namesake": bool(post["namesake"]),
        }


def find_namesakes(messages: Iterable[Document]) -> set[str]:
    """Return the names of senders that several people use, or that look like another's name."""
    return find_lookalikes((one["from_name"], tell_apart(one)) for one in messages)


def tell_apart(message: Document) -> str:
    """Return what distinguishes a sender from namesakes: the mark, or the address if shown."""
    return str(message.get("mark", "") or message.get("from_email", ""))


def name_apart(message: Document, namesakes: Collection[str] = ()) -> str:
    """Return the name of a sender, with a mark if it has namesakes or is one of `namesakes`."""
    name, other = name_sender(message), message.get("namesake", "")
    if not other and message["from_name"] in namesakes:
        other = tell_apart(message)
    return f"{name} ({other})" if other else name


def choose_pages(document: Document) -> list[int]:
    """Return the pages of a thread to link, from 0: the first, the last, and the nearest."""
    pages = document["pages"]
    here, last = pages.index(document["url"]), len(pages) - 1
    near = range(max(0, here - NEAR_PAGES), min(last, here + NEAR_PAGES) + 1)
    return sorted({0, *near, last})


def view_month(document: Document) -> Iterator[dict[str, Any]]:
    """Yield the threads of a page of a month: the messages of each, who wrote them, and when."""
    patches = {one["message_id"]: one for one in document["patch_states"]}
    for _, some in groupby(document["posts"], key=lambda post: post["thread_id"] or post["url"]):
        posts = [{**post, "patch": patches.get(post["message_id"])} for post in some]
        level = min(post["depth"] for post in posts)
        names = [*dict.fromkeys(name_sender(post) for post in posts)]
        yield {
            "posts": [
                {
                    **post,
                    "indent": min(post["depth"] - level, MAX_INDENT),
                    "is_namesake": bool(post["namesake"]),
                }
                for post in posts
            ],
            "who": name_people(names[:NAMES], len(names)),
            "days": [*dict.fromkeys(f(post["sent_at"][:10] for post in posts) for f in (min, max))],
        }


def view_outline(document: Document) -> list[dict[str, Any]]:
    """Return the outline of a message's thread, indented relative to its lowest level."""
    nodes = document["outline"]
    level = min((node["depth"] for node in nodes), default=0)
    return [{**node, "indent": min(node["depth"] - level, MAX_INDENT)} for node in nodes]


def view_answers(document: Document) -> Iterator[dict[str, Any]]:
    """Yield the answers to a message, the beginning of each in pieces as those of a snippet.

    `new_subject` is set if the subject differs, as of the patches below a cover letter.
    """
    above = base_subject(document["subject"])
    namesakes = find_namesakes([document, *document["answers"]])
    for one in document["answers"]:
        text = [*_part_soft([(one["text"], False)])] if one["text"] else []
        subject = one["subject_base"]
        yield {
            **one,
            "text": text,
            "new_subject": subject if subject != above else "",
            "is_namesake": one["from_name"] in namesakes,
        }


def _is_shown(name: str) -> bool:
    return bool(name.strip(f"{MASK} \"'<>.@"))


def name_sender(message: Document) -> str:
    """Return the name of a sender; without a name, the address or "unknown sender" and a mark."""
    if _is_shown(message["from_name"]):
        return str(message["from_name"])
    mark = message.get("mark", "")
    return message.get("from_email") or (f"unknown sender {mark}" if mark else "unknown sender")


def view_years(document: Document) -> dict[str, list[tuple[str, int]]]:
    """Return the months of a list with their counts, by year, the newest first."""
    months = sorted(document["months"].items(), reverse=True)
    return {
        year: [*reversed([*some])] for year, some in groupby(months, key=lambda one: one[0][:4])
    }


class Piece(NamedTuple):
    """A piece of text, and the URL that it links to, or ""."""

    text: str
    url: str = ""


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
