"""Documents for browsing an archive: front page, lists and months; sitemaps and robots.txt.

https://www.sitemaps.org/protocol.html, https://github.com/dewitt/opensearch
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import TypedDict

from mail_assets.mail.message.text_addresses import MASK
from mail_assets.month import ListMonth, utc
from mail_assets.reading.browsing import (
    count_months,
    has_attachments,
    read_month,
    read_month_addresses,
    read_newest_threads,
)
from mail_assets.reading.patch_pages import has_commits, read_addresses
from mail_assets.search.language.fields import write_field
from mail_assets.tables.lists import was_list_published
from mail_assets.web.document_types import (
    ListDocument,
    ListMonthsDocument,
    ListsDocument,
    MonthDocument,
    MonthLinks,
    PatchStateDocument,
)
from mail_assets.web.documents import Documents, read_patch_states
from mail_assets.web.privacy import Publication
from mail_assets.web.requests import (
    commit_url,
    format_url,
    list_url,
    month_url,
    page_url,
    search_url,
    series_url,
    text_url,
)
from mail_assets.web.responses import ServingError
from mail_assets.web.searchers import SearchService

#: Messages on a page of a month.
MESSAGES = 100


@dataclass(frozen=True)
class Archives:
    """Makes the documents of lists and months from what a service reads."""

    service: SearchService
    publication: Publication

    def lists(self) -> ListsDocument:
        """Return the lists with their months, and the number of messages of each."""
        counts = self.service.read(count_months)
        document: ListsDocument = {
            "lists": [
                _describe_list(name, {one.month: counts[one] for one in some})
                for name, some in groupby(sorted(counts), key=lambda one: one.list_name)
            ],
            "indexed_to": max((one.month for one in counts), default=None),
            "url": "/lists",
        }
        return self.publication.publish(document)

    def months(self, name: str) -> ListMonthsDocument:
        """Return the months of a list, and the number of messages of each."""
        months = self.count_months(name)
        links = [_link_month(name, one, months[one]) for one in sorted(months)]
        document: ListMonthsDocument = {**_describe_list(name, months), "archives": links}
        return self.publication.publish(document)

    def month(self, name: str, month: str, first: int) -> MonthDocument:
        """Return messages of a month, thread by thread, from the number `first` on."""
        months = self.count_months(name)
        _require_month(name, month, months)
        earlier, later = _find_nearest(month, months)
        # the count is that of the last load: one more entry shows if more follow
        entries = self.service.read(read_month, ListMonth(name, month), first, MESSAGES + 1)
        end = first + MESSAGES
        shown = entries[:MESSAGES]
        document: MonthDocument = {
            "list": name,
            "month": month,
            "messages": months[month],
            "first": first,
            "posts": [
                {
                    "message_id": one.message_id,
                    "subject": one.subject,
                    "from_name": one.from_name,
                    "from_email": one.from_email,
                    "sent_at": utc(one.sent_at),
                    "contested": one.text is not None,
                    "url": text_url(one.message_id, one.text),
                    "thread_id": one.thread_id,
                    "depth": one.depth,
                    "by_subject": one.by_subject,
                    "namesake": "",
                }
                for one in shown
            ],
            "patch_states": read_patch_states(
                self.service, [one.message_id for one in shown if one.text in (None, 1)]
            ),
            "url": month_url(name, month, first),
            "previous": month_url(name, month, max(0, first - MESSAGES)) if first else None,
            "next": month_url(name, month, end) if len(entries) > MESSAGES else None,
            "earlier": earlier,
            "later": later,
            "earlier_url": month_url(name, earlier) if earlier else None,
            "later_url": month_url(name, later) if later else None,
            "archive_url": list_url(name),
            "mbox_url": format_url(month_url(name, month), "mbox.gz"),
            "atom_url": format_url(month_url(name, month), "atom"),
        }
        self.publication.tell_namesakes(document["posts"])
        return self.publication.publish(document)

    def count_months(self, name: str, month: str = "") -> dict[str, int]:
        """Return the number of messages of each month of a list, or of one of them."""
        counts = self.service.read(count_months)
        months = {one.month: count for one, count in counts.items() if one.list_name == name}
        if not months and self.service.read(was_list_published, name):
            raise ServingError(410, "closed", "this list is no longer published here")
        if not months:
            known = sorted({one.list_name for one in counts})
            empty = name in self.service.options.lists
            message = f"{name} has no mail yet" if empty else f"there is no list {name[:40]!r}"
            raise ServingError(404, "unknown_list", message, allowed=known)
        if month:
            _require_month(name, month, months)
            return {month: months[month]}
        return months


def _find_nearest(month: str, months: Iterable[str]) -> tuple[str | None, str | None]:
    known = sorted(months)
    earlier = max((one for one in known if one < month), default=None)
    return earlier, min((one for one in known if one > month), default=None)


def _require_month(name: str, month: str, months: Collection[str]) -> None:
    if month in months:
        return
    near = [one for one in _find_nearest(month, months) if one]
    message = f"{name} has no message in {month[:40]!r}; nearest: {', '.join(near)}"
    raise ServingError(404, "unknown_month", message, allowed=near)


def _describe_list(name: str, months: dict[str, int]) -> ListDocument:
    url = list_url(name)
    return {
        "name": name,
        "messages": sum(months.values()),
        "months": months,
        "url": url,
        "mbox_url": format_url(url, "mbox.gz"),
        "atom_url": format_url(url, "atom"),
    }


def _link_month(name: str, month: str, messages: int) -> MonthLinks:
    url = month_url(name, month)
    return {
        "month": month,
        "messages": messages,
        "url": url,
        "mbox_url": format_url(url, "mbox.gz"),
        "atom_url": format_url(url, "atom"),
    }


#: Most new threads on the front page and on a list's page; the newest messages that are read for
#: them at first, and if those have too few threads.
NEWEST, RECENT, RECENT_OF_BUSY = 10, 400, 10_000
#: Words of a subject that an example search has.
WORDS = 5
#: URLs of a sitemap. The protocol allows 50,000 and 50 MB; long ids would exceed the latter.
PAGES_OF_SITEMAP = 10_000
#: Most sitemaps that an index may list.
SITEMAPS = 50_000
_WORD = re.compile(r"[^\W\d_]{2,}")
#: Searches and comparisons link to endless others, so robots may read all pages except these.
ROBOTS = (
    "User-agent: *\nDisallow: /search\nDisallow: /similar\nDisallow: /answer\nDisallow: /*?old=\n"
)


@dataclass(frozen=True)
class Site:
    """The operator's description of the archive.

    `base_url` is the public URL, without a slash at its end. `title` is a name, `about` one line,
    and `lists` has one line about each described list.
    """

    base_url: str
    title: str = ""
    about: str = ""
    lists: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name of the archive."""
        return self.title or "Mail archive"


class NewThread(TypedDict):
    """A thread among the newest, its first sender, and the state of its patches."""

    subject: str
    url: str
    messages: int
    people: int
    lists: list[str]
    from_name: str
    from_email: str
    last_sent_at: str
    patch: PatchStateDocument | None


class Example(TypedDict):
    """A search that finds something in this archive."""

    query: str
    about: str
    url: str


class HomeDocument(TypedDict):
    """The front page: lists, counts, the newest threads, and searches that find something here."""

    lists: ListsDocument
    messages: int
    first_month: str | None
    last_month: str | None
    newest: list[NewThread]
    examples: list[Example]


@dataclass(frozen=True)
class Front:
    """Makes the front page and the lists of addresses."""

    documents: Documents
    site: Site

    @property
    def archives(self) -> Archives:
        """The lists and months that are published."""
        return Archives(self.documents.service, self.documents.publication)

    def home(self) -> HomeDocument:
        """Return the front page."""
        lists = self.archives.lists()
        names = [one["name"] for one in lists["lists"]]
        newest = self.newest(names)
        months = [month for one in lists["lists"] for month in one["months"]]
        examples: list[Example] = [
            {"query": query, "about": about, "url": search_url(query)}
            for query, about in self._find_examples(lists, newest)
        ]
        return {
            "lists": lists,
            "messages": sum(one["messages"] for one in lists["lists"]),
            "first_month": min(months, default=None),
            "last_month": max(months, default=None),
            "newest": newest,
            "examples": examples,
        }

    def newest(self, lists: list[str]) -> list[NewThread]:
        """Return the newest threads of some lists."""
        service = self.documents.service
        found = service.read(read_newest_threads, lists, NEWEST, RECENT)
        if len(found) < NEWEST:  # one busy thread may have all the newest messages
            found = service.read(read_newest_threads, lists, NEWEST, RECENT_OF_BUSY)
        states = read_patch_states(service, [one.first_id for one in found])
        patches = {one["message_id"]: one for one in states}
        return self.documents.publication.publish(
            [
                {
                    "subject": one.subject,
                    "url": page_url("thread", one.first_id),
                    "messages": one.messages,
                    "people": one.people,
                    "lists": one.lists,
                    "from_name": one.from_name,
                    "from_email": one.from_email,
                    "last_sent_at": utc(one.last_sent_at),
                    "patch": patches.get(one.first_id),
                }
                for one in found
            ]
        )

    def _find_examples(
        self, lists: ListsDocument, newest: list[NewThread]
    ) -> Iterator[tuple[str, str]]:
        """Yield example searches that find something, each with its explanation."""
        if not newest:
            return
        busy = max(newest, key=lambda one: one["messages"])
        found = _WORD.findall(busy["subject"].replace(MASK, " ").lower())
        words = [*dict.fromkeys(found)]
        if words:
            yield (" ".join(words[:WORDS]), "words, or a question: best first")
            longest = max(words, key=len)
            yield (write_field("subject", longest), "a part of the subject")
        names = [one["from_name"] for one in newest if _WORD.search(one["from_name"])]
        if name := next((one for one in names if not {MASK, "@", '"'} & {*one}), ""):
            yield (write_field("from", name), "a part of the sender's name")
        largest = max(lists["lists"], key=lambda one: one["messages"])
        month = max(largest["months"])
        fields = [write_field("list", largest["name"]), write_field("month", month)]
        yield (" ".join(fields), "a list, and a month of it")
        day = newest[0]["last_sent_at"][:7]
        yield (f"after:{day} sort:newest", "since a day or month, the newest first")
        if self.documents.service.read(has_commits, largest["name"]):
            yield ("is:open", "patches that nobody has decided on")
        names = [one["name"] for one in lists["lists"]]
        if self.documents.service.read(has_attachments, names):
            yield ("has:attachment", "messages with an attached file")

    def list_sitemaps(self, first: int = 0) -> str:
        """Return the index of sitemaps; each month of a list has one, large months several."""
        rows = "".join(
            f"<sitemap><loc>{self._escape(path)}</loc></sitemap>\n"
            for path in [*self._sitemap_paths()][first : first + SITEMAPS]
        )
        return _write_xml("sitemapindex", rows)

    def _sitemap_paths(self) -> Iterator[str]:
        for one in self.archives.lists()["lists"]:
            for month, count in sorted(one["months"].items()):
                path = month_url(one["name"], month).replace("/lists/", "/sitemap/", 1)
                for first in range(0, count, PAGES_OF_SITEMAP):
                    yield f"{path}{f'?first={first}' if first else ''}"

    def map_month(self, name: str, month: str, first: int) -> str:
        """Return the sitemap of a month: its page, threads, messages, commits and series."""
        months = self.archives.months(name)["months"]
        if month not in months:
            raise ServingError(404, "unknown_month", f"{name} has no message in {month}")
        place = ListMonth(name, month)
        found = self.documents.service.read(read_month_addresses, place, first, PAGES_OF_SITEMAP)
        rows = []
        if first == 0:
            rows += [self._map(list_url(name)), self._map(month_url(name, month))]
            for page, id, at in self.documents.service.read(read_addresses, place):
                url = commit_url(id) if page == "commit" else series_url(id)
                rows.append(self._map(url, at.date().isoformat() if at else ""))
        for one in found:
            if one.thread:
                rows.append(self._map(page_url("thread", one.thread)))
            day = one.sent_at.date().isoformat()
            rows.append(self._map(page_url("message", one.message_id), day))
        return _write_xml("urlset", "".join(rows))

    def _map(self, path: str, day: str = "") -> str:
        changed = f"<lastmod>{day}</lastmod>" if day else ""
        return f"<url><loc>{self._escape(path)}</loc>{changed}</url>\n"

    def _escape(self, path: str) -> str:
        return f"{self.site.base_url}{path}".replace("&", "&amp;").replace("'", "&apos;")

    def write_robots(self) -> str:
        """Return robots.txt, which names the sitemaps."""
        count = sum(1 for _ in self._sitemap_paths())
        indexes = range(0, max(1, count), SITEMAPS)
        maps = (f"{self.site.base_url}/sitemap.xml{f'?first={at}' if at else ''}" for at in indexes)
        return ROBOTS + "".join(f"\nSitemap: {url}\n" for url in maps)


def _write_xml(tag: str, rows: str) -> str:
    space = "http://www.sitemaps.org/schemas/sitemap/0.9"
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<{tag} xmlns="{space}">\n{rows}</{tag}>\n'
