"""Documents rendered as HTML pages. Templates get documents only, and escape them.

page_parts.py makes the parts of pages that are not in documents.
"""

import functools
import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from mail_assets import __version__
from mail_assets.mail.message.message import say_incomplete
from mail_assets.reading.patch_states import SHORT
from mail_assets.reading.series import NO_STANDING
from mail_assets.search.language.description import FORMS
from mail_assets.search.language.fields import write_field
from mail_assets.search.language.syntax import parse_request
from mail_assets.search.response import cut_beginning
from mail_assets.text.sentences import join_lines
from mail_assets.web.bodies import link_text, view_body
from mail_assets.web.browse import HomeDocument, Site
from mail_assets.web.document_types import (
    AnswerDocument,
    Document,
    ListsDocument,
    MonthDocument,
)
from mail_assets.web.documents import Documents
from mail_assets.web.page_parts import (
    Piece,
    choose_pages,
    name_sender,
    tell_apart,
    view_advice,
    view_answer,
    view_answers,
    view_conversations,
    view_facets,
    view_histogram,
    view_hits,
    view_month,
    view_outline,
    view_posts,
    view_sorts,
    view_years,
)
from mail_assets.web.parameters import QUESTION_PARAMETERS, SEARCH_PARAMETERS
from mail_assets.web.requests import (
    HOME,
    OPTIONS,
    Compared,
    anchor,
    commit_url,
    fill_form,
    find_address,
    format_url,
    list_url,
    make_request,
    month_url,
    page_url,
    patches_url,
    place_url,
    search_url,
    series_url,
)
from mail_assets.web.responses import STATIC, ServingError, static_url

TEMPLATES = Path(__file__).with_name("templates")
#: The values of an empty form.
_EMPTY_FORM = dict.fromkeys(SEARCH_PARAMETERS, "") | OPTIONS
#: Fields below the search box.
_FILTERS = SEARCH_PARAMETERS.keys() - {"q", "limit", "offset", "near"}
#: Formats of a page, if it has others than JSON.
FORMATS = {
    "search.html": ("json", "atom", "mbox.gz"),
    "thread.html": ("json", "atom", "mbox.gz"),
    "list.html": ("json", "atom", "mbox.gz"),
    "month.html": ("json", "atom", "mbox.gz"),
    "message.html": ("json", "mbox"),
    "patches.html": ("json",),
}
#: Most characters of a page's description for search engines.
MAX_ABOUT = 120
#: Labels of the choices of a form, by parameter and value.
CHOICES = {
    "mode": {"hybrid": "words and meaning", "semantic": "meaning alone", "fulltext": "words alone"},
    "group": {"conversation": "conversations", "message": "messages"},
    "sort": {"relevance": "best first", "date": "newest first", "oldest": "oldest first"},
}
_HEADINGS = {
    400: "This cannot be read",
    404: "Not found",
    410: "Removed",
    503: "Try again soon",
}


@dataclass(frozen=True)
class Pages:
    """Renders documents as pages; with `has_chat`, a search page has an answer above its hits."""

    documents: Documents
    site: Site
    has_chat: bool = False

    def home(self, document: HomeDocument) -> str:
        """Return the front page."""
        lists = self.documents.service.options.lists
        return self._render(
            "home.html", document, form=_EMPTY_FORM, lists=lists, choices=CHOICES, canonical=HOME
        )

    def opensearch(self) -> str:
        """Return the description of the search for browsers."""
        return render("opensearch.xml", site=self.site)

    def search(self, document: Document) -> str:
        """Return the page of a search."""
        return self._render_search(document["parameters"], document=document)

    def message(self, document: Document) -> str:
        """Return the page of a message."""
        mentions = document["mentions"]
        parts = view_body(document, mentions)
        first = next((part.text for part in parts if part.kind == "text"), "")
        others = [{**one, "parts": view_body(one, mentions)} for one in document["other_texts"]]
        near = (document["message_id"], document["subject"])
        return self._render(
            "message.html",
            document,
            parts=parts,
            others=others,
            near=near,
            answers=[*view_answers(document)],
            outline=view_outline(document),
            opening=cut_beginning(first, MAX_ABOUT),
        )

    def thread(self, document: Document) -> str:
        """Return the page of a whole conversation."""
        posts, linked = [*view_posts(document)], choose_pages(document)
        near = (document["thread_id"], document["subject"])
        people = {post["message_id"]: post for post in posts if not post["is_ghost"]}
        return self._render(
            "thread.html", document, posts=posts, linked=linked, near=near, people=people
        )

    def similar(self, document: Document) -> str:
        """Return the page of the messages nearest in meaning to one."""
        hits = view_hits(document)
        return self._render("similar.html", document, hits=hits, robots="noindex")

    def lists(self, document: ListsDocument) -> str:
        """Return the page of all lists."""
        return self._render("lists.html", document)

    def months(self, document: Document) -> str:
        """Return the page of a list: its months, and its newest threads."""
        about = self.site.lists.get(document["name"], "")
        return self._render("list.html", document, years=view_years(document), about=about)

    def month(self, document: MonthDocument) -> str:
        """Return a page of a month: its messages, thread by thread."""
        return self._render("month.html", document, threads=view_month(document))

    def commit(self, document: Document) -> str:
        """Return the page of a commit: its mail with the evidence, and its files."""
        ids = [one["message_id"] for one in document["links"] if one["mail"]]
        return self._render("commit.html", document, body=Markup(link_text(document["body"], ids)))

    def series(self, document: Document) -> str:
        """Return the page of a series with its versions side by side."""
        rows = [*view_changes(document)]
        comparison = document["comparison"]
        patches = [*view_comparison(comparison)] if comparison else []
        # not indexed: every pair of versions has a comparison
        robots = "noindex" if comparison else ""
        return self._render(
            "series.html",
            document,
            rows=rows,
            states=count_states(document),
            missing=name_missing(document),
            patches=patches,
            robots=robots,
        )

    def open_patches(self, document: Document) -> str:
        """Return a page of the open patches of a list."""
        groups = [*view_open_patches(document)]
        return self._render("patches.html", document, kind="open", groups=groups)

    def applied(self, document: Document) -> str:
        """Return a page of applied patches."""
        formats = {"json": format_url(document["url"], "json"), "atom": document["atom_url"]}
        return self._render("patches.html", document, kind="applied", groups=[], formats=formats)

    def applied_feed(self, document: Document) -> str:
        """Return the feed of applied patches as XML."""
        return write_feed("applied.xml", document, self.site.base_url)

    def answer(self, document: AnswerDocument | None, parameters: Mapping[str, str]) -> str:
        """Return the question form, filled in, with the answer if there is one."""
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
        """Return the page of an error; with `parameters` of a search it has the search form."""
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
        values: dict[str, Any] = {}
        if document:
            parsed = parse_request(make_request(parameters))
            form = _EMPTY_FORM | fill_form(parsed)
            whole = find_address(parsed, offset=0)
            values = {
                # feeds and mailboxes contain the whole search, JSON only this page
                "formats": _link_formats("search.html", whole)
                | {"json": format_url(document["url"], "json")},
                "rows": [*view_conversations(document, parsed)],
                "hits": [] if document["conversations"] else view_hits(document),
                "bars": view_histogram(document, parsed),
                "facets": view_facets(document, parsed),
                "advice": [*view_advice(document, parsed)],
                "other_orders": view_sorts(parsed),
                "without_near": find_address(parsed, near="", offset=0),
                "first": parsed.request.rows_before + 1,
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

    def _render(self, template: str, document: Mapping[str, Any] | None, **values: Any) -> str:
        url = document.get("url", "") if document else ""
        defaults = {
            "robots": "",
            "site": self.site,
            "form": None,
            "near": None,
            "hides": self.documents.publication.hides,
            "canonical": url,
            "formats": _link_formats(template, url) if url else {},
        }
        return render(template, **{**defaults, "document": document, **values})


def _link_formats(template: str, url: str) -> dict[str, str]:
    return {name: format_url(url, name) for name in FORMATS.get(template, ("json",))}


#: Characters that XML 1.0 forbids (2.2), even escaped.
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def write_feed(template: str, document: Document, base: str) -> str:
    """Return a feed as XML; its links begin with the URL of this site."""
    return _NOT_XML.sub("", render(template, document=document, base=base))


def render(template: str, **values: Any) -> str:
    """Return a template filled with values."""
    return open_templates().get_template(template).render(**values)


def compile_templates() -> None:
    """Compile all templates; a server does this before its first request."""
    environment = open_templates()
    for name in environment.list_templates():
        environment.get_template(name)


@functools.cache
def find_version() -> str:
    """Return a digest of the program's version and of the templates."""
    digest = hashlib.sha256(__version__.encode())
    for path in (*sorted(TEMPLATES.iterdir()), *sorted(STATIC.iterdir())):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


@functools.cache
def open_templates() -> Environment:
    """Return the templates of pages."""
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
    )
    environment.globals |= {
        "anchor": anchor,
        "place_url": place_url,
        "sender": name_sender,
        "tell_apart": tell_apart,
        "message_url": functools.partial(page_url, "message"),
        "thread_url": functools.partial(page_url, "thread"),
        "similar_url": functools.partial(page_url, "similar"),
        "filter_url": _filter_url,
        "mid": _mid,
        "list_url": list_url,
        "static": static_url,
        "month_url": month_url,
        "commit_url": commit_url,
        "patches_url": patches_url,
        "series_url": series_url,
        "compare_url": lambda id, old, new: series_url(id, Compared(old, new)),
        "link_commits": link_commits,
        "sized": _write_count,
        "language": FORMS,
        "no_standing": NO_STANDING,
        "say_incomplete": say_incomplete,
    }
    environment.filters["number"] = "{:,}".format
    environment.filters["ordinal"] = _write_ordinal
    environment.filters["joined"] = join_lines
    environment.filters["sentence"] = lambda words: f"{words[:1].upper()}{words[1:]}"
    return environment


def _write_count(number: int, one: str, more: str = "") -> str:
    return f"{number:,} {one if number == 1 else more or f'{one}s'}"


def _write_ordinal(number: int) -> str:
    last = 0 if number % 100 in (11, 12, 13) else number % 10
    return f"{number:,}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(last, 'th') }"


def _filter_url(**fields: str) -> str:
    return search_url(" ".join(write_field(name, value) for name, value in fields.items()))


def _mid(message_id: str) -> str:
    """Return a URL that identifies a message in any archive (RFC 2392)."""
    return f"mid:{quote(message_id, safe='@')}"


#: States of files and patches in a comparison, in words.
STATES = {
    "same": "unchanged",
    "context": "only the lines around the changes differ",
    "changed": "changed",
    "added": "new",
    "dropped": "dropped",
}
#: An abbreviated id of a commit, as reading/patch_states.py writes it.
_ID = re.compile(rf"(\b[0-9a-f]{{{SHORT}}}\b)")
_CLASSES = {"+": "added", "-": "removed"}


def view_changes(document: Document) -> Iterator[dict[str, Any]]:
    """Yield the rows of a series: each change with a cell for every posting, which may be empty."""
    for change in document["changes"]:
        cells: list[list[Document]] = [[] for _ in document["postings"]]
        for version in change["versions"]:
            cells[version["posting"]].append(version)
        titles = Counter(one["title"] for one in change["versions"])
        yield {**change, "cells": cells, "has_titles": len(titles) > 1}


def count_states(document: Document) -> str:
    """Return how many changes of a series are in each state."""
    states = [one["state"] for one in document["changes"] if one["kind"] == "patch"]
    counts = Counter("open" if one == "silent" else one for one in states)
    return ", ".join(f"{count} {state}" for state, count in counts.most_common())


def name_missing(document: Document) -> str:
    """Return the versions before the newest that have no known mail: "v1 to v3, v5"."""
    known = sorted({one["version"] for one in document["postings"]})
    gaps = [(one + 1, after - 1) for one, after in pairwise([0, *known]) if after - one > 1]
    return ", ".join(
        f"v{first}" if first == last else f"v{first} to v{last}" for first, last in gaps
    )


def link_commits(words: str, commits: Sequence[str]) -> Iterator[Piece]:
    """Yield a text in pieces; commit ids in it are links."""
    known = {sha[:SHORT]: commit_url(sha) for sha in commits}
    for part in _ID.split(words):
        if part:
            yield Piece(part, known.get(part, ""))


def view_comparison(comparison: Document) -> Iterator[dict[str, Any]]:
    """Yield the patches of a comparison; each line of a file names the version that has it."""
    for one in comparison["changes"]:
        files = [
            {
                **file,
                "lines": [{"text": line, "kind": _find_kind(line)} for line in file["lines"]],
                "said": STATES[file["state"]],
            }
            for file in one["files"]
        ]
        yield {**one, "files": files, "said": STATES[one["state"]]}


def _find_kind(line: str) -> str:
    return _CLASSES.get(line[:1], "place" if line[1:3] == "@@" else "")


def view_open_patches(document: Document) -> Iterator[dict[str, Any]]:
    """Yield the open patches of a list; consecutive patches of one series form a group.

    Values that all patches of a group share are shown once. The page itself says "open".
    """
    for url, some in groupby(document["changes"], key=lambda one: one["series_url"]):
        patches = [
            {**one, "waits": one["words"].removeprefix("open").removeprefix(", ")} for one in some
        ][::-1]
        senders = {(one["from_name"], one.get("mark"), one["sent_at"][:10]) for one in patches}
        waits = {one["waits"] for one in patches}
        own, of_series = patches[0]["title"], patches[0]["series_title"]
        yield {
            "url": url,
            "title": of_series,
            "patches": patches,
            "is_posting": len(senders) == 1,
            "waits": patches[0]["waits"] if len(waits) == 1 else "",
            # the title of the only patch, if the series has another title
            "part": own if len(patches) == 1 and own != of_series else "",
        }
