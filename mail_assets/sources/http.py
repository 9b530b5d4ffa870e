"""Archives on HTTP servers: those that a page links to, and those of a URL template.

A page is a pipermail index or a web server's listing.
"""

from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

from mail_assets.month import ListMonth, months_between
from mail_assets.sources.archive_names import fill_template, group_by_month
from mail_assets.sources.http_options import HttpOptions
from mail_assets.sources.http_reader import HttpReader
from mail_assets.sources.links import file_name, page_links
from mail_assets.sources.source import ArchiveSource, Fetched, Unchanged


class PageSource(ArchiveSource):
    """The archives that a page links to: links to its own host that end in a month's name.

    The page is read once for all fetches of an instance; a link tells no version.
    """

    def __init__(self, list_name: str, url: str, options: HttpOptions) -> None:
        super().__init__(list_name, url)
        self._reader = HttpReader(self, options)
        self._links: dict[str, list[str]] | None = None

    def versions(self) -> dict[ListMonth, str]:
        """Read the page again; return month -> "" for every month it links to."""
        self._links = self._read()
        return self.by_list_month(dict.fromkeys(self._links, ""))

    def fetch(self, month: ListMonth, target: Path, known: str = "") -> Fetched | Unchanged | None:
        """Download what the month's link leads to. See ArchiveSource."""
        if self._links is None:
            self._links = self._read()
        url = self.only_place(month, self._links)
        if url is None:
            return None
        found = self._reader.download(month, url, target, known)
        if found is None:
            raise self.error(month, f"{self.url} links to {url}, which the server does not have")
        return found

    def _read(self) -> dict[str, list[str]]:
        html, url = self._reader.read_page()
        hosts = {urlsplit(self.url).hostname, urlsplit(url).hostname}
        links = group_by_month(
            (x for x in page_links(html, url) if urlsplit(x).hostname in hosts), file_name
        )
        if not links:  # the page of a login or an error reads just like this
            raise self.error(
                None,
                f"{self.url} has no link to a monthly archive on its host; open it in a browser",
            )
        return links


class TemplateSource(ArchiveSource):
    """Archives whose URLs follow from the month, from `start` to the running month (UTC)."""

    def __init__(self, list_name: str, url: str, options: HttpOptions, start: str) -> None:
        super().__init__(list_name, url)
        self._reader = HttpReader(self, options)
        self._start = start

    def versions(self) -> dict[ListMonth, str]:
        """Return month -> "" for every month; asks nobody, so some may have no archive."""
        now = f"{datetime.now(UTC):%Y-%m}"
        return self.by_list_month(dict.fromkeys(months_between(self._start, now), ""))

    def fetch(self, month: ListMonth, target: Path, known: str = "") -> Fetched | Unchanged | None:
        """Download the month's URL; None where it answers 404 or 410. See ArchiveSource."""
        return self._reader.download(month, fill_template(self.url, month.month), target, known)
