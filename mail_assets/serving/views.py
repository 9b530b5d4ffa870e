"""The views of the archive: each document at its paths, as a page or as data."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request

from mail_assets.serving.archives import Archives
from mail_assets.serving.documents import Document, Documents
from mail_assets.serving.feeds import Feeds
from mail_assets.serving.inputs import (
    read_id,
    read_list,
    read_month,
    read_nothing,
    read_query,
)
from mail_assets.serving.pages import Pages
from mail_assets.serving.responses import DEFAULT_MAX_AGE, SEARCH_MAX_AGE
from mail_assets.serving.search_address import find_other_address

HTML, JSON, ATOM = "text/html", "application/json", "application/atom+xml"


@dataclass(frozen=True)
class View:
    """A document and how it is written, at `/NAME`, or at `/NAME/ID` where `read` takes an id.

    `find_address` tells where a reader is sent who came by another address than its one.
    """

    name: str
    read: Callable[[Request], tuple[Any, ...]]
    make_document: Callable[..., Document]
    write: Callable[[Document], str]
    media_type: str
    max_age: int = DEFAULT_MAX_AGE
    find_address: Callable[..., str | None] = lambda *_: None

    @property
    def paths(self) -> tuple[str, ...]:
        """Where it is found; an id that no path can hold is a parameter."""
        path = f"/{self.name}"
        return (path, f"{path}/{{id:path}}") if self.read is read_id else (path,)


def list_views(
    documents: Documents, pages: Pages, feeds: Feeds, describe_api: Callable[[], Document]
) -> Iterator[View]:
    """Yield all views."""
    age = SEARCH_MAX_AGE
    archives = Archives(documents.service, documents.publication)
    yield View("search", read_query, pages.find, pages.search, HTML, age, find_other_address)
    yield View("search.json", read_query, documents.search, write_json, JSON, age)
    yield View("search.atom", read_query, feeds.search, feeds.write, ATOM, age)
    yield View("message", read_id, documents.message, pages.message, HTML)
    yield View("message.json", read_id, documents.message, write_json, JSON)
    yield View("thread", read_id, documents.thread, pages.thread, HTML)
    yield View("thread.json", read_id, documents.thread, write_json, JSON)
    yield View("thread.atom", read_id, feeds.thread, feeds.write, ATOM)
    yield View("similar", read_id, documents.similar, pages.similar, HTML, age)
    yield View("similar.json", read_id, documents.similar, write_json, JSON, age)
    yield View("lists", read_nothing, documents.lists, pages.lists, HTML)
    yield View("openapi.json", read_nothing, describe_api, write_json, JSON)
    yield View("lists.json", read_nothing, documents.lists, write_json, JSON)
    yield View("lists/{list}", read_list, archives.months, pages.months, HTML)
    yield View("lists.json/{list}", read_list, archives.months, write_json, JSON)
    yield View("lists/{list}/{month}", read_month, archives.month, pages.month, HTML)
    yield View("lists.json/{list}/{month}", read_month, archives.month, write_json, JSON)


def write_json(document: Document) -> str:
    """Return a document as JSON."""
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"))
