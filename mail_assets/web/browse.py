"""Make the documents by which readers browse an archive: its lists and their months."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from itertools import groupby

from mail_assets.month import ListMonth, utc
from mail_assets.reading.browsing import (
    Title,
    count_months,
    read_month,
)
from mail_assets.tables.lists import was_list_published
from mail_assets.web.document_types import (
    ListDocument,
    ListMonthsDocument,
    ListsDocument,
    MonthDocument,
    MonthLinks,
    TitleDocument,
)
from mail_assets.web.documents import read_patch_states
from mail_assets.web.privacy import Publication
from mail_assets.web.requests import format_url, list_url, month_url, text_url
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
        # the count has each content of an id, a page only each id: one more tells whether more come
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
                    **_describe_title(one.title),
                    "thread_id": one.thread_id,
                    "depth": one.depth,
                    "by_subject": one.by_subject,
                }
                for one in shown
            ],
            "patch_states": read_patch_states(
                self.service, [one.title.message_id for one in shown if one.title.text in (None, 1)]
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


def _describe_title(title: Title) -> TitleDocument:
    return {
        "message_id": title.message_id,
        "subject": title.subject,
        "from_name": title.from_name,
        "from_email": title.from_email,
        "sent_at": utc(title.sent_at),
        "contested": title.text is not None,
        "url": text_url(title.message_id, title.text),
    }
