"""Links of documents as programs follow them: `url` leads to JSON, `html_url` to the page.

Documents are made with the URLs of pages. On their way out as JSON each link to a page becomes one
to the same as JSON. The page's own URL stands beside `url` as `html_url`. Attachments, mailboxes
and feeds have one URL each, that of the file.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from mail_assets.web.requests import format_url

#: Pages with JSON beside them.
PAGES = frozenset(
    {"search", "message", "thread", "similar", "lists", "commits", "series", "patches"}
)
#: Keys of links besides `url`: single ones, and lists of them.
LINKS = frozenset(
    {
        *("next", "previous", "earlier_url", "later_url", "thread_url", "parent_url"),
        *("archive_url", "series_url", "list_url"),
    }
)
LISTS_OF_LINKS = frozenset({"pages"})
#: Keys whose values hold no links but may have the same names: what the client sent, and counts.
_NO_DOCUMENTS = frozenset({"parameters", "facets", "months", "explain"})

_PAGE = re.compile(r"/(\w+)(?![\w.])")
_FILE = re.compile(r"/message(?:/.+)?/attachment/[^/]+")


def is_page(url: str) -> bool:
    """Return whether a URL is that of a page that has JSON beside it."""
    found = _PAGE.match(url)
    return bool(found and found[1] in PAGES and not _FILE.fullmatch(url.partition("?")[0]))


def data_url(url: str) -> str:
    """Return the URL of a page's JSON; other URLs stay as they are."""
    return format_url(url, "json") if is_page(url) else url


def link_data(value: Any) -> Any:
    """Return a document with its links leading to JSON, and the pages beside them."""
    if isinstance(value, list | tuple):
        return [link_data(one) for one in value]
    if not isinstance(value, Mapping):
        return value
    linked: dict[str, Any] = {}
    for key, inner in value.items():
        if key in LINKS or key == "url":
            linked[key] = data_url(inner) if isinstance(inner, str) else inner
        elif key in LISTS_OF_LINKS:
            linked[key] = [data_url(one) for one in inner]
        else:
            linked[key] = inner if key in _NO_DOCUMENTS else link_data(inner)
        if key == "url" and (inner is None or is_page(inner)):
            linked["html_url"] = inner
    return linked


def write_json(document: Mapping[str, Any]) -> str:
    """Return a document as JSON, as short as it is."""
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"))
