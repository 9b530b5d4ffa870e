"""Archives on HTTP servers: linked from a page, or at the URLs of a template.

A page is a pipermail index or a web server's listing. Some servers make an archive from their
database for the first and the last day of a month, and answer for every month: an archive without a
message counts as none.
"""

import re
from calendar import monthrange
from collections.abc import Iterator
from datetime import UTC, datetime
from html import unescape
from pathlib import Path
from urllib.parse import urldefrag, urljoin, urlsplit

from mail_assets.month import ListMonth, months_between
from mail_assets.sources.archive_file import is_empty
from mail_assets.sources.http_reader import HttpReader, file_name
from mail_assets.sources.source import ArchiveSource, Fetched, HttpOptions, Unchanged
from mail_assets.sources.urls import fill_template, group_by_month


class PageSource(ArchiveSource):
    """The archives that a page links to: links that end in a month's name.

    Links to hosts where requests may not go are left out (http/reach.py). The page is read once for
    all fetches of an instance. A link has no version.
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
        """Download the target of the month's link. See ArchiveSource."""
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
        found = group_by_month(page_links(html, url), file_name)
        kept = [
            link for links in found.values() for link in links if self._reader.allows(link, url)
        ]
        links = group_by_month(kept, file_name)
        others = [link for month in found.values() for link in month if link not in kept]
        self.remark("links to other servers are not followed; redirect_hosts allows them", others)
        if not links and others:
            raise self.error(
                None,
                f"{self.url} links to archives on other servers only, such as {others[0]}; allow"
                " them by redirect_hosts in lists.toml",
            )
        if not links:  # a login or error page looks the same
            raise self.error(
                None, f"{self.url} has no link to a monthly archive; open it in a browser"
            )
        return links


class UnlistedSource(ArchiveSource):
    """A server without a listing: archives from the month `start` to the running one (UTC)."""

    def __init__(self, list_name: str, url: str, options: HttpOptions, start: str) -> None:
        super().__init__(list_name, url)
        self.reader = HttpReader(self, options)
        self._start = start

    def versions(self) -> dict[ListMonth, str]:
        """Return month -> "" for every month, without a request: some may have no archive."""
        now = f"{datetime.now(UTC):%Y-%m}"
        return self.by_list_month(dict.fromkeys(months_between(self._start, now), ""))


class TemplateSource(UnlistedSource):
    """Archives whose URLs follow from the month."""

    def fetch(self, month: ListMonth, target: Path, known: str = "") -> Fetched | Unchanged | None:
        """Download the month's URL; None if it answers 404 or 410. See ArchiveSource."""
        return self.reader.download(month, fill_template(self.url, month.month), target, known)


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


# Not html.parser: it is quadratic in unclosed elements (256 KB of `<a ` take more than 30 s), and
# raises AssertionError at `<![x`. Here no attempt at an element gets past the next `<`, so each
# byte is read twice at most.
_ELEMENT = re.compile(
    r"""<!--(?:-?>|.*?(?:--!?>|\Z))
    |   <(?P<raw>script|style)\b.*?(?:</(?P=raw)|\Z)
    |   <(?P<tag>a|base)(?=[\s/])(?P<attributes>(?:[^<>"']|"[^"<]*+"|'[^'<]*+')*+)>""",
    re.DOTALL | re.IGNORECASE | re.VERBOSE,
)
_ATTRIBUTE = re.compile(
    r"""([^\s"'=/]++)(?:\s*+=\s*+(?:"([^"]*+)"|'([^']*+)'|([^\s"']++)))?+|"[^"]*+"|'[^']*+'"""
)


def page_links(html: str, url: str) -> Iterator[str]:
    """Yield the absolute http(s) URLs, without fragments, that a page at `url` links to."""
    hrefs = [(tag, href) for tag, href in _hrefs(html) if href]
    base = next((href for tag, href in hrefs if tag == "base"), "")
    for href in (href for tag, href in hrefs if tag == "a"):
        try:
            link = urldefrag(urljoin(urljoin(url, base), href)).url
            parts = urlsplit(link)
        except ValueError:  # such as http://[, which leads nowhere
            continue
        if parts.scheme in ("http", "https") and "@" not in parts.netloc:
            yield link


def _hrefs(html: str) -> Iterator[tuple[str, str]]:
    for element in _ELEMENT.finditer(html):
        for name, *values in _ATTRIBUTE.findall(element["attributes"] or ""):
            if name.lower() == "href":
                yield element["tag"].lower(), unescape("".join(values)).strip()
                break
