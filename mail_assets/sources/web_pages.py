"""Archives on HTTP servers: those that a page links to, and those of a URL template.

A page is a pipermail index or a web server's listing.

[http_query] Archives that a server makes from its database for the first and the last day of a month.

An archive without a message is taken for none: such a server has an answer for every month.

[list_pages] The URLs of a list's page in HyperKitty and Pony Mail, and what follows from them.
"""

import re
from calendar import monthrange
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

from mail_assets.month import ListMonth, months_between
from mail_assets.sources.archive_file import fill_template, group_by_month, is_empty
from mail_assets.sources.http_reader import HttpOptions, HttpReader, file_name, page_links
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


def months_since(start: str) -> dict[str, str]:
    """Return month -> "" from `start` to the running month (UTC): no listing names them."""
    return dict.fromkeys(months_between(start, f"{datetime.now(UTC):%Y-%m}"), "")


def days_of_month(month: str) -> tuple[str, str]:
    """Return the first and the last day of a month, "YYYY-MM-DD"."""
    year, number = map(int, month.split("-"))
    return f"{month}-01", f"{month}-{monthrange(year, number)[1]}"


def drop_empty(found: Fetched | Unchanged | None) -> Fetched | Unchanged | None:
    """Return None for an archive without a byte, and delete its file."""
    if isinstance(found, Fetched) and is_empty(found.path):
        found.path.unlink()
        return None
    return found


_HYPERKITTY = re.compile(
    r"(?P<root>/(?:[^/]{1,200}/){0,20})list/(?P<name>[^/@]{1,200}@[^/@]{1,200})/?"
)
_PONYMAIL = re.compile(r"(?P<list>[^@:&?=#/*]{1,200})@(?P<domain>[^@:&?=#/*]{1,200})")
_HYPERKITTY_EXAMPLE = "https://lists.example.org/archives/list/dev@example.org/"
_PONYMAIL_EXAMPLE = "https://lists.example.org/list.html?dev@project.example.org"


def hyperkitty_export(url: str) -> str:
    """Return the URL of a list's export, without the end of its file name.

    Raises:
        ValueError: `url` is not the page of a list.
    """
    parts = urlsplit(url)
    found = _HYPERKITTY.fullmatch(unquote(parts.path))
    if found is None or parts.query:
        raise ValueError(f"{url!r} is not the page of a list, such as {_HYPERKITTY_EXAMPLE}")
    name = quote(found["name"], safe="@")
    return f"{parts.scheme}://{parts.netloc}{quote(found['root'])}list/{name}/export/{name}"


def ponymail_api(url: str) -> tuple[str, dict[str, str]]:
    """Return the URL of the API, ending in a slash, and the parameters that name the list.

    Raises:
        ValueError: `url` names no list.
    """
    parts = urlsplit(url)
    found = _PONYMAIL.fullmatch(unquote(parts.query).partition(":")[0])
    if found is None:
        raise ValueError(f"{url!r} is not the page of a list, such as {_PONYMAIL_EXAMPLE}")
    folder = parts.path.rpartition("/")[0]
    return f"{parts.scheme}://{parts.netloc}{folder}/api/", found.groupdict()
