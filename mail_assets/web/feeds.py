"""Atom feeds of searches and threads (RFC 4287).

Entries have the ids of the mail and URLs of the configured host, never of the Host header.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from mail_assets.reading.exports import TextOf, list_newest
from mail_assets.search.language.request import Sort
from mail_assets.search.language.syntax import parse_request
from mail_assets.web.document_types import Document
from mail_assets.web.documents import Documents
from mail_assets.web.exports import Exports
from mail_assets.web.pages import render
from mail_assets.web.requests import (
    ASKS,
    SEARCH_PARAMETERS,
    address_parameters,
    format_url,
    make_request,
    page_url,
    read_parameters,
    search_url,
)

#: Default number of entries, and most characters of each.
ENTRIES, MAX_TEXT = 25, 20_000
#: The time of a feed without entries.
NEVER = "1970-01-01T00:00:00Z"

#: Characters that XML 1.0 forbids (2.2), even escaped.
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True)
class Feeds:
    """Makes feeds as documents, and writes them as XML."""

    documents: Documents
    exports: Exports

    def search(self, given: Mapping[str, str]) -> Document:
        """Return the feed of a search: its newest messages, or the best. A feed has no oldest.

        Raises:
            RequestError, ServingError: a parameter is wrong, or too many searches run.
        """
        asked = {"sort": Sort.date.value, "limit": str(ENTRIES), **given}
        parsed = parse_request(make_request(read_parameters(asked)))
        if parsed.request.sort == Sort.oldest:
            asked = address_parameters(parsed, sort=Sort.date.value)
        found = self.documents.search(asked, facets=False)
        parameters = {name: value for name, value in sorted(given.items()) if name != "q"}
        url = search_url(given.get("q", ""), **parameters)
        names = [name for name in SEARCH_PARAMETERS if name in ASKS]
        asks = [given[name] for name in names if given.get(name, "").strip()]
        title = f"Search: {', '.join(asks)}" if asks else "The newest messages of the archive"
        return self._feed(
            title, url, [TextOf(hit["message_id"], hit["text"]) for hit in found["hits"]]
        )

    def thread(self, id: str) -> Document:
        """Return the feed of a thread: its newest messages.

        Raises:
            ServingError: no thread has the id.
        """
        thread_id = self.documents.find_place(id).thread_id
        ids = self.documents.service.read(list_newest, thread_id, ENTRIES)
        feed = self._feed("", page_url("thread", thread_id), [*map(TextOf, ids)])
        subject = feed["entries"][-1]["subject"] if feed["entries"] else ""
        return feed | {"title": f"Thread: {subject or '(no subject)'}"}

    def write(self, document: Document) -> str:
        """Return a feed as XML."""
        return _NOT_XML.sub("", render("feed.xml", document=document, base=self.exports.base_url))

    def _feed(self, title: str, page: str, wanted: list[TextOf]) -> Document:
        entries = [
            {
                **message,
                "text_number": message["text"],
                "text": message.pop("body_text")[:MAX_TEXT],
            }
            for message in self.exports.read(wanted)
        ]
        return {
            "title": title,
            "page": page,
            "url": format_url(page, "atom"),
            "updated": max((entry["sent_at"] for entry in entries), default=NEVER),
            "entries": entries,
        }
