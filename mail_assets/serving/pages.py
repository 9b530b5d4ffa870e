"""The pages: each a document, as JSON or as HTML."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mail_assets.search.language.permalink import name_phrases
from mail_assets.search.language.syntax import parse_request
from mail_assets.serving.answer_view import view_answer
from mail_assets.serving.archives import Archives
from mail_assets.serving.documents import Document, Documents
from mail_assets.serving.errors import ServingError
from mail_assets.serving.page_views import (
    choose_pages,
    view_body,
    view_month,
    view_posts,
    view_years,
)
from mail_assets.serving.parameters import QUESTION_PARAMETERS, SEARCH_PARAMETERS, make_request
from mail_assets.serving.rendering import render
from mail_assets.serving.search_address import OPTIONS, fill_form, find_address
from mail_assets.serving.search_views import (
    view_advice,
    view_facets,
    view_histogram,
    view_hits,
    view_sorts,
)
from mail_assets.serving.urls import format_url

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
