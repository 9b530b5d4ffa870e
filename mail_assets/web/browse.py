"""Lists, their months and titles of messages as documents: how an archive is browsed."""

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from mail_assets.month import ListMonth
from mail_assets.reading.browsing import (
    MonthEntry,
    Title,
    count_months,
    find_unknown_words,
    read_month,
    read_titles,
)
from mail_assets.tables.messages import utc
from mail_assets.web.privacy import Publication
from mail_assets.web.requests import list_url, month_url, page_url
from mail_assets.web.responses import ServingError
from mail_assets.web.searchers import SearchService

Document = dict[str, Any]

#: Messages of a page of a month.
MESSAGES = 100
#: Words of a query that are looked for, and characters of the longest.
MAX_WORDS, MAX_WORD = 20, 50
#: A word by itself, as far as white space, but for signs at its end.
_WORD = re.compile(r"(?<!\S)\w++(?=[?!.,;]?(?:\s|\Z))")


@dataclass(frozen=True)
class Archives:
    """Makes the documents of lists and months from what a service reads."""

    service: SearchService
    publication: Publication

    def months(self, name: str) -> Document:
        """Return the months of a list, and how many messages each has.

        Raises:
            ServingError: there is none of that name.
        """
        months = self._count_months(name)
        document = {"name": name, "messages": sum(months.values()), "months": months}
        return self._publish(document | {"url": list_url(name)})

    def month(self, name: str, month: str, first: int) -> Document:
        """Return messages of a month, thread by thread, from the place `first` on.

        Raises:
            ServingError: the list has no message in it.
        """
        months = self._count_months(name)
        earlier = max((one for one in months if one < month), default=None)
        later = min((one for one in months if one > month), default=None)
        if month not in months:
            near = [one for one in (earlier, later) if one]
            message = f"{name} has no message in {month[:40]!r}; nearest: {', '.join(near)}"
            raise ServingError(404, "unknown_month", message, allowed=near)
        # one more than the page has: the count has each content of an id, a page each id
        entries = self.service.read(read_month, ListMonth(name, month), first, MESSAGES + 1)
        end = first + MESSAGES
        document = {
            "list": name,
            "month": month,
            "messages": months[month],
            "first": first,
            "posts": [_describe(entry) for entry in entries[:MESSAGES]],
            "url": month_url(name, month, first),
            "previous": month_url(name, month, max(0, first - MESSAGES)) if first else None,
            "next": month_url(name, month, end) if len(entries) > MESSAGES else None,
            "earlier": earlier,
            "later": later,
        }
        return self._publish(document)

    def titles(self, ids: Collection[str]) -> Document:
        """Return subject, sender and date of some messages, by id."""
        titles = self.service.read(read_titles, ids) if ids else {}
        return self._publish({id: _describe_title(title) for id, title in titles.items()})

    def find_unknown_words(self, text: str) -> list[str]:
        """Return the words that no message has, of the text of a query."""
        words = [word for word in _WORD.findall(text) if len(word) <= MAX_WORD]
        languages = {*self.service.options.search.languages.values()}
        once = [*dict.fromkeys(words)][:MAX_WORDS]
        return self.service.read(find_unknown_words, once, languages) if once else []

    def _count_months(self, name: str) -> dict[str, int]:
        """Return the months of a list that have a message; raises where it has none."""
        counts = self.service.read(count_months)
        months = {one.month: count for one, count in counts.items() if one.list_name == name}
        if not months:
            known = sorted({one.list_name for one in counts})
            message = f"there is no list {name[:40]!r}"
            raise ServingError(404, "unknown_list", message, allowed=known)
        return months

    def _publish(self, document: Document) -> Document:
        published: Document = self.publication.publish(document)
        return published


def _describe(entry: MonthEntry) -> Document:
    place = {"thread_id": entry.thread_id, "depth": entry.depth}
    return _describe_title(entry.title) | place


def _describe_title(title: Title) -> Document:
    url = page_url("message", title.message_id)
    return title._asdict() | {"sent_at": utc(title.sent_at), "url": url}
