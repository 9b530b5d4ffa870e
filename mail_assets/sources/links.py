"""The links of an HTML page, and the file names that URLs end in."""

from collections.abc import Iterator
from html.parser import HTMLParser
from urllib.parse import unquote, urldefrag, urljoin, urlsplit


def page_links(html: str, url: str) -> Iterator[str]:
    """Yield the absolute http(s) URLs, without fragments, that a page at `url` links to."""
    page = _Links()
    page.feed(html)
    page.close()
    for href in page.hrefs:
        try:
            link = urldefrag(urljoin(urljoin(url, page.base), href)).url
            parts = urlsplit(link)
        except ValueError:  # such as http://[, which leads nowhere
            continue
        if parts.scheme in ("http", "https") and "@" not in parts.netloc:
            yield link


def file_name(url: str) -> str:
    """Return what stands behind the last slash of a URL's path, percent-decoded."""
    return unquote(urlsplit(url).path.rpartition("/")[2])


class _Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.base = ""
        self.hrefs: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        href = dict(attrs).get("href")
        if href and tag == "a":
            self.hrefs.append(href.strip())
        elif href and tag == "base":
            self.base = self.base or href.strip()
