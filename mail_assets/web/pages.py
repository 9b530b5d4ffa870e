"""The pages: each a document, as JSON or as HTML.

[page_views] What the pages of messages, threads and months show beside their documents.

[rendering] Templates: filled with documents only, everything in them escaped.

[answer_view] The text of an answer as a page shows it: paragraphs, with what it cites as links.
"""

import functools
import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from mail_assets import __version__
from mail_assets.mail.body.segments import Segment
from mail_assets.mail.message.forgotten import is_placeholder
from mail_assets.search.language.fields import write_field
from mail_assets.search.language.permalink import name_phrases
from mail_assets.search.language.syntax import parse_request
from mail_assets.web.browse import Archives
from mail_assets.web.documents import Document, Documents
from mail_assets.web.page_parts import (
    Part,
    Piece,
    split_parts,
    view_advice,
    view_facets,
    view_histogram,
    view_hits,
    view_sorts,
)
from mail_assets.web.requests import (
    OPTIONS,
    QUESTION_PARAMETERS,
    SEARCH_PARAMETERS,
    anchor,
    fill_form,
    find_address,
    format_url,
    list_url,
    make_request,
    month_url,
    page_url,
    place_url,
    search_url,
)
from mail_assets.web.responses import ServingError

#: Levels that a thread is indented by: a line has to stay readable on a phone.
MAX_INDENT = 8
#: Pages before and behind one that it links.
NEAR_PAGES = 3


def view_body(document: Document, mentions: list[str]) -> list[Part]:
    """Return the parts of the body of a message or of a post."""
    segments = [Segment(*one) for one in document["segments"]]
    return [*split_parts(document["body_text"], segments, frozenset(mentions))]


def view_posts(document: Document) -> Iterator[dict[str, Any]]:
    """Yield the posts of a page of a thread with what is shown of them."""
    on_page = {post["message_id"]: post for post in document["posts"] if not post["is_ghost"]}
    level = min((post["depth"] for post in document["posts"]), default=0)
    for post in document["posts"]:
        parent_id = post["parent_id"] or ""
        parent = on_page.get(parent_id)
        subject_above = parent["subject_base"] if parent else document["subject"]
        yield {
            **post,
            "parts": [] if post["is_ghost"] else view_body(post, document.get("mentions", [])),
            "indent": min(post["depth"] - level, MAX_INDENT),
            "new_subject": post["subject"] if post["subject_base"] != subject_above else "",
            "is_forgotten": is_placeholder(post["message_id"]),
            "parent": parent,
            "parent_url": f"#{anchor(parent_id)}" if parent else place_url(parent_id),
            "left_out": post["characters"] - len(post["body_text"]),
        }


def choose_pages(document: Document) -> list[int]:
    """Return the pages of a thread that are linked, from 0: the first, the last, and the near."""
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


TEMPLATES = Path(__file__).with_name("templates")


def render(template: str, **values: Any) -> str:
    """Return a page of HTML."""
    return _environment().get_template(template).render(**values)


@functools.cache
def find_version() -> str:
    """Return what tells the pages of this version of the program from those of others."""
    digest = hashlib.sha256(__version__.encode())
    for path in sorted(TEMPLATES.iterdir()):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


@functools.cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
    )
    environment.globals |= {
        "anchor": anchor,
        "place_url": place_url,
        "sender": _sender,
        "message_url": functools.partial(page_url, "message"),
        "thread_url": functools.partial(page_url, "thread"),
        "similar_url": functools.partial(page_url, "similar"),
        "filter_url": _filter_url,
        "mid": _mid,
        "list_url": list_url,
        "month_url": month_url,
    }
    environment.filters["number"] = "{:,}".format
    return environment


def _sender(message: Mapping[str, str]) -> str:
    return message["from_name"] or message.get("from_email") or "unknown sender"


def _filter_url(**fields: str) -> str:
    """Return the address of a search for all that has some fields, in their order."""
    return search_url(" ".join(write_field(name, value) for name, value in fields.items()))


def _mid(message_id: str) -> str:
    """Return the URL that names a message wherever it is (RFC 2392)."""
    return f"mid:{quote(message_id, safe='@')}"


#: Numbers of citations as they are shown (answers/citations.py), and code, in which there are none.
_CITED = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`|\[(\d{1,4}(?:, \d{1,4}){0,50})\]", re.DOTALL)


def view_answer(document: Mapping[str, Any]) -> Iterator[list[Piece]]:
    """Yield the paragraphs of an answer; nothing in one leads anywhere but into the archive."""
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


#: What a form shows that nobody has filled in.
_EMPTY_FORM = dict.fromkeys(SEARCH_PARAMETERS, "") | OPTIONS
#: What stands below the box.
_FILTERS = SEARCH_PARAMETERS.keys() - {"q", "limit", "offset"}
#: What a page can be had as besides, where that is more than data.
FORMATS = {
    "search.html": ("json", "atom", "mbox.gz"),
    "thread.html": ("json", "atom", "mbox.gz"),
    "message.html": ("json", "mbox"),
}
#: What people read of the choices of a form, by parameter and value.
CHOICES = {
    "mode": {
        "hybrid": "words and meaning",
        "semantic": "meaning alone",
        "fulltext": "words alone",
    },
    "group": {
        "few": "three of a thread",
        "thread": "the best of each thread",
        "message": "every message",
    },
    "sort": {"relevance": "best first", "date": "newest first"},
}
_HEADINGS = {
    400: "This cannot be searched",
    404: "Not found",
    410: "Removed",
    503: "Try again soon",
}


@dataclass(frozen=True)
class Pages:
    """Renders the pages of documents; with `has_chat`, a search is answered in words above hits."""

    documents: Documents
    has_chat: bool = False

    def home(self) -> str:
        """Return the page with the empty form."""
        return self._render_search({})

    def find(self, parameters: Mapping[str, str]) -> Document:
        """Return what a search finds, the titles of what is folded, and words that are unknown."""
        document = self.documents.search(parameters)
        folded = {id for hit in document["hits"] for id in (*hit["in_thread"], *hit["copies"])}
        archives = Archives(self.documents.service, self.documents.publication)
        text = parse_request(make_request(document["parameters"])).text
        missing = archives.find_unknown_words(text) if document["short"] else []
        return document | {"titles": archives.titles(folded), "missing": missing}

    def search(self, document: Document) -> str:
        """Return the page of a search."""
        return self._render_search(document["parameters"], document=document)

    def message(self, document: Document) -> str:
        """Return the page of a message."""
        mentions = document.get("mentions", [])
        parts = view_body(document, mentions)
        others = [one | {"parts": view_body(one, mentions)} for one in document["other_texts"]]
        return self._render("message.html", document, parts=parts, others=others)

    def thread(self, document: Document) -> str:
        """Return the page of a whole conversation."""
        posts, linked = [*view_posts(document)], choose_pages(document)
        return self._render("thread.html", document, posts=posts, linked=linked)

    def similar(self, document: Document) -> str:
        """Return the page of the messages nearest in meaning to one."""
        hits = view_hits(document)
        return self._render("similar.html", document, hits=hits, robots="noindex")

    def lists(self, document: Document) -> str:
        """Return the page of all lists and months."""
        return self._render("lists.html", document)

    def months(self, document: Document) -> str:
        """Return the page of a list: its months."""
        return self._render("list.html", document, years=view_years(document))

    def month(self, document: Document) -> str:
        """Return a page of a month: its messages, thread by thread."""
        return self._render("month.html", document, threads=view_month(document))

    def question(self, parameters: Mapping[str, str]) -> str:
        """Return the form that asks a question, filled in as it was."""
        return self.answer({}, parameters)

    def answer(self, document: Document, parameters: Mapping[str, str]) -> str:
        """Return the page of an answer, with the form that asks another question."""
        asked = {**dict.fromkeys(QUESTION_PARAMETERS, ""), **parameters}
        return self._render(
            "answer.html",
            document,
            asked=asked,
            paragraphs=[*view_answer(document)] if document else [],
            lists=self.documents.service.options.lists,
            robots="noindex",
        )

    def error(self, error: ServingError, parameters: Mapping[str, str] | None = None) -> str:
        """Return the page of an error; that of a search has its form, to be corrected."""
        if parameters is not None:
            return self._render_search(parameters, error=error)
        heading = _HEADINGS.get(error.status, "This did not work")
        return self._render("error.html", None, error=error, heading=heading, robots="noindex")

    def _render_search(
        self,
        parameters: Mapping[str, str],
        document: Document | None = None,
        error: ServingError | None = None,
    ) -> str:
        form = _EMPTY_FORM | {name: value for name, value in parameters.items() if value}
        values: dict[str, Any] = {"hits": []}
        if document:
            parsed = parse_request(make_request(parameters))
            form = _EMPTY_FORM | fill_form(parsed)
            whole = find_address(parsed, offset=0)
            values = {
                # feeds and mailboxes are of the whole search, data is of the page that is shown
                "formats": _link_formats("search.html", whole)
                | {"json": format_url(document["url"], "json")},
                "hits": view_hits(document),
                "bars": view_histogram(document, parsed),
                "facets": view_facets(document, parsed),
                "missing": document["missing"],
                "dropped": name_phrases(document["without_quotes"]),
                "advice": [*view_advice(document, parsed)],
                "other_order": view_sorts(parsed),
                "first": parsed.request.offset + 1,
            }
        return self._render(
            "search.html",
            document,
            **values,
            form=form,
            has_filters=any(form[name] != _EMPTY_FORM[name] for name in form.keys() & _FILTERS),
            lists=self.documents.service.options.lists,
            choices=CHOICES,
            robots="noindex" if document or error else "",
            error=error,
            has_chat=self.has_chat,
        )

    def _render(self, template: str, document: Document | None, **values: Any) -> str:
        url = document.get("url", "") if document else ""
        defaults = {
            "robots": "",
            "form": None,
            "hides": self.documents.publication.hides,
            "canonical": url,
            "formats": _link_formats(template, url) if url else {},
        }
        return render(template, **{**defaults, "document": document, **values})


def _link_formats(template: str, url: str) -> dict[str, str]:
    """Return where a page is in the other formats that it can be had in."""
    return {name: format_url(url, name) for name in FORMATS.get(template, ("json",))}
