"""A public-inbox on a server without a mirror: its search for a month's messages, as mbox.gz.

The search is `dt:` over the Date fields, in UTC, and needs the server's search index (Xapian).
`x=m` is answered to POST only. (PublicInbox/WWW.pm, SearchView.pm and Mbox.pm)
"""

from pathlib import Path

from mail_assets.month import ListMonth
from mail_assets.sources.http_options import HttpOptions
from mail_assets.sources.http_query import days_of_month, drop_empty, months_since
from mail_assets.sources.http_reader import HttpReader
from mail_assets.sources.source import ArchiveSource, Fetched, Unchanged


class PublicInboxMboxSource(ArchiveSource):
    """The messages of a public-inbox at an http(s) URL, asked for month by month."""

    def __init__(self, list_name: str, url: str, options: HttpOptions, start: str) -> None:
        super().__init__(list_name, url)
        self._reader = HttpReader(self, options)
        self._start = start

    def versions(self) -> dict[ListMonth, str]:
        """Return month -> "" for every month; asks nobody, so some may have no archive."""
        return self.by_list_month(months_since(self._start))

    def fetch(self, month: ListMonth, target: Path, known: str = "") -> Fetched | Unchanged | None:
        """Download the month's messages; None where it has none. See ArchiveSource."""
        first, last = (day.replace("-", "") for day in days_of_month(month.month))
        url = f"{self.url.rstrip('/')}/?q=dt:{first}000000..{last}235959&x=m"
        return drop_empty(self._reader.download(month, url, target, known, "POST"))
