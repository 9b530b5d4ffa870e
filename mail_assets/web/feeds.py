"""Atom feeds of lists, months, searches and threads (RFC 4287), page after page (RFC 5005, 3).

Entries have the ids of the mail and URLs of the configured host, never of the Host header.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile

from mail_assets.reading.conversations import measure_thread
from mail_assets.reading.exports import NEWEST, Dated, TextOf, list_newest, list_newest_of
from mail_assets.search.language.request import After, Group, Sort
from mail_assets.search.language.syntax import parse_request
from mail_assets.web.browse import Archives
from mail_assets.web.document_types import Document
from mail_assets.web.documents import Documents
from mail_assets.web.exports import Exports
from mail_assets.web.pages import write_feed
from mail_assets.web.parameters import SEARCH_PARAMETERS
from mail_assets.web.requests import (
    ASKS,
    NEVER,
    add_cursor,
    address_parameters,
    drop_empty,
    format_url,
    list_url,
    make_request,
    month_url,
    page_url,
    read_cursor,
    search_url,
    write_cursor,
)

#: Default number of entries, those of a list or month, and most characters of each.
ENTRIES, ARCHIVE_ENTRIES, MAX_TEXT = 25, 50, 20_000


@dataclass(frozen=True)
class Feeds:
    """Makes feeds as documents, and writes them as XML."""

    documents: Documents
    exports: Exports

    def search(self, given: Mapping[str, str]) -> Document:
        """Return the feed of a search: its newest messages, or the best; never the oldest first.

        Entries are messages: feed readers show new entries, and conversations only grow.
        """
        newest = {"sort": Sort.date.value, "group": Group.message.value}
        asked = {**newest, "limit": str(ENTRIES), **given}
        parsed = parse_request(make_request(drop_empty(asked)))
        if parsed.request.sort == Sort.oldest:
            asked = address_parameters(parsed, sort=Sort.date.value)
        found = self.documents.search(asked, facets=False)
        own = {name: value for name, value in sorted(given.items()) if name not in ("q", "cursor")}
        url = search_url(given.get("q", ""), **own)
        names = [name for name in SEARCH_PARAMETERS if name in ASKS]
        asks = [given[name] for name in names if given.get(name, "").strip()]
        title = f"Search: {', '.join(asks)}" if asks else "The newest messages of the archive"
        wanted = [TextOf(hit["message_id"], hit["text"]) for hit in found["hits"]]
        following = format_url(found["next"], "atom") if found["next"] else None
        return self._feed(title, url, wanted, given.get("cursor", ""), following)

    def thread(self, id: str, cursor: str = "") -> Document:
        """Return the feed of a thread: its newest messages, or those after a cursor."""
        thread_id = self.documents.find_place(id).thread_id
        read = self.documents.service.read
        found = read(list_newest, thread_id, _read_place(cursor), ENTRIES + 1)
        subject = self.documents.publication.publish(read(measure_thread, thread_id).subject)
        title = f"Thread: {subject or '(no subject)'}"
        return self._dated(title, page_url("thread", thread_id), found, ENTRIES, cursor)

    def of_list(self, name: str, cursor: str = "") -> Document:
        """Return the feed of a list: its newest messages, or those after a cursor."""
        return self.of_month(name, "", cursor)

    def of_month(self, name: str, month: str, cursor: str = "") -> Document:
        """Return the feed of a month, of all months if it is empty, as `of_list`."""
        service, publication = self.documents.service, self.documents.publication
        Archives(service, publication).count_months(name, month)
        place = _read_place(cursor)
        found = service.read(list_newest_of, name, month or None, place, ARCHIVE_ENTRIES + 1)
        title, page = (
            (f"{name}, {month}", month_url(name, month)) if month else (name, list_url(name))
        )
        return self._dated(title, page, found, ARCHIVE_ENTRIES, cursor)

    def write(self, document: Document) -> str:
        """Return a feed as XML."""
        return write_feed("feed.xml", document, self.exports.base_url)

    def _dated(
        self, title: str, page: str, found: Sequence[Dated], most: int, cursor: str
    ) -> Document:
        following = None
        if len(found) > most:
            place = found[most - 1]
            # texts with the same id and time stay on one page
            same = (place.message_id, place.sent_at)
            others = takewhile(lambda one: (one.message_id, one.sent_at) == same, found[most:])
            shown = [*found[:most], *others]
            if len(shown) < len(found):
                after = After(0, place.message_id, place.sent_at)
                following = add_cursor(format_url(page, "atom"), write_cursor(after))
            found = shown
        wanted = [TextOf(one.message_id, one.text) for one in found]
        return self._feed(title, page, wanted, cursor, following)

    def _feed(
        self, title: str, page: str, wanted: list[TextOf], cursor: str, following: str | None
    ) -> Document:
        entries = [
            {
                **message,
                "text_number": message["text"],
                "text": message.pop("body_text")[:MAX_TEXT],
            }
            for message in self.exports.read(wanted)
        ]
        url = format_url(page, "atom")
        return {
            "title": title,
            "page": page,
            "url": url,
            "self": add_cursor(url, cursor),
            "next": following,
            "updated": max((entry["sent_at"] for entry in entries), default=NEVER),
            "entries": entries,
        }


def _read_place(cursor: str) -> Dated:
    if not cursor:
        return NEWEST
    after = read_cursor(cursor)
    return Dated(after.message_id, 1, after.sent_at) if after.sent_at else NEWEST
