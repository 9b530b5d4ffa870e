"""The links of an HTML page, and the file names that URLs end in."""

import re
from collections.abc import Iterator
from html import unescape
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

# Not html.parser: its time grows with the square of what is left open (256 KB of `<a ` take more
# than 30 s), and it raises AssertionError at `<![x`. Here each byte is looked at twice at most, for
# no attempt at an element gets past the next `<`.
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


def file_name(url: str) -> str:
    """Return what stands behind the last slash of a URL's path, percent-decoded."""
    return unquote(urlsplit(url).path.rpartition("/")[2])


def _hrefs(html: str) -> Iterator[tuple[str, str]]:
    """Yield the tag and the address of each link and base element, outside of comments."""
    for element in _ELEMENT.finditer(html):
        for name, *values in _ATTRIBUTE.findall(element["attributes"] or ""):
            if name.lower() == "href":
                yield element["tag"].lower(), unescape("".join(values)).strip()
                break
