"""Archives on HTTP servers: linked from a page, at the URLs of a template, Pony Mail, HyperKitty.

A page is a pipermail index or a web server's listing. Some servers build an archive from their
database on request and answer for every month; there an archive without messages counts as none.

Pony Mail Foal serves the mbox of a month, and statistics that list the months. Without a month it
sends the last 30 days. `date=YYYY-MM` leaves out the first and the last second of a month;
`d=YYYY-MM` does not. (server/endpoints/mbox.py and stats.py, server/plugins/defuzzer.py)

HyperKitty (Mailman 3) exports a month as gzipped mbox. Without `start` and `end` it exports the
whole list, so both are always sent. It rewrites each message: the header has From, To, Subject,
Date, Message-ID and In-Reply-To only, addresses in the body become `jo(a)host`, and every export
has new MIME boundaries. A boundary is replaced by one that depends on the message only, so that a
message is the same in every export. (hyperkitty/views/mlist.py, export_mbox;
hyperkitty/models/email.py, as_message; the setting HYPERKITTY_MBOX_EXPORT, from 1.3.6 on, switches
the export off)
"""

import json
import re
import zlib
from calendar import monthrange
from collections.abc import Iterator
from datetime import UTC, datetime
from hashlib import sha256
from html import unescape
from pathlib import Path
from urllib.parse import urldefrag, urlencode, urljoin, urlsplit

from mail_assets.mail.archive.compression import ArchiveError, unpacked, unpacked_path
from mail_assets.mail.archive.mbox import find_dialect, split_mbox
from mail_assets.month import ListMonth, is_month, months_between, next_month
from mail_assets.sources.archive_file import is_empty, save_archive
from mail_assets.sources.http_reader import HttpReader, file_name
from mail_assets.sources.source import ArchiveSource, Fetched, HttpOptions, Unchanged
from mail_assets.sources.urls import fill_template, group_by_month, hyperkitty_export, ponymail_api


class PageSource(ArchiveSource):
    """Archives that a page links to: links whose file names end in a month.

    Links to hosts that are not permitted are left out (http/reach.py). An instance reads the page
    once for all its fetches. A link has no version.
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
            raise self.error(month, f"{self.url} links to {url}, which does not exist")
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
                " these servers with redirect_hosts in lists.toml",
            )
        if not links:  # a login or error page looks the same
            raise self.error(
                None, f"{self.url} has no link to a monthly archive; open it in a browser"
            )
        return links


class UnlistedSource(ArchiveSource):
    """A server without a listing; its months run from `start` to the current one (UTC)."""

    def __init__(self, list_name: str, url: str, options: HttpOptions, start: str) -> None:
        super().__init__(list_name, url)
        self.reader = HttpReader(self, options)
        self._start = start

    def versions(self) -> dict[ListMonth, str]:
        """Return month -> "" for every month, without a request; some may have no archive."""
        now = f"{datetime.now(UTC):%Y-%m}"
        return self.by_list_month(dict.fromkeys(months_between(self._start, now), ""))


class TemplateSource(UnlistedSource):
    """Archives whose URLs are made from a template and the month."""

    def fetch(self, month: ListMonth, target: Path, known: str = "") -> Fetched | Unchanged | None:
        """Download the month's URL; return None after 404 or 410. See ArchiveSource."""
        return self.reader.download(month, fill_template(self.url, month.month), target, known)


def days_of_month(month: str) -> tuple[str, str]:
    """Return the first and the last day of a month, "YYYY-MM-DD"."""
    year, number = map(int, month.split("-"))
    return f"{month}-01", f"{month}-{monthrange(year, number)[1]}"


def drop_empty(found: Fetched | Unchanged | None) -> Fetched | Unchanged | None:
    """Return None for an empty archive, and delete its file; return others unchanged."""
    if isinstance(found, Fetched) and is_empty(found.path):
        found.path.unlink()
        return None
    return found


# Not html.parser: it is quadratic in unclosed elements (256 KB of `<a ` take more than 30 s), and
# raises AssertionError at `<![x`. Here no match of an element goes past the next `<`, so each byte
# is read twice at most.
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
        except ValueError:  # a malformed URL such as http://[
            continue
        if parts.scheme in ("http", "https") and "@" not in parts.netloc:
            yield link


def _hrefs(html: str) -> Iterator[tuple[str, str]]:
    for element in _ELEMENT.finditer(html):
        for name, *values in _ATTRIBUTE.findall(element["attributes"] or ""):
            if name.lower() == "href":
                yield element["tag"].lower(), unescape("".join(values)).strip()
                break


# RecursionError: nested brackets; OverflowError: a count of 1e999
_NO_STATISTICS = (
    *(ValueError, KeyError, TypeError, AttributeError),
    *(RecursionError, OverflowError),
)


class PonymailSource(ArchiveSource):
    """A list of Pony Mail, by the URL of its page: https://HOST/list.html?NAME@DOMAIN.

    A version is the number of a month's messages. An equal number does not prove that nothing has
    changed, so a fetch always downloads.
    """

    listing_proves = False

    def __init__(self, list_name: str, url: str, options: HttpOptions) -> None:
        super().__init__(list_name, url)
        self._reader = HttpReader(self, options)
        self._api, self._names = ponymail_api(url)
        self._months: dict[str, str] | None = None

    def versions(self) -> dict[ListMonth, str]:
        """Request the list's statistics; return month -> number of messages."""
        self._months = self._read_months()
        return self.by_list_month(self._months)

    def fetch(self, month: ListMonth, target: Path, known: str = "") -> Fetched | Unchanged | None:
        """Download the month's mbox. See ArchiveSource."""
        if self._months is None:
            self._months = self._read_months()
        version = self._months.get(month.month)
        if version is None:
            return None
        url = f"{self._api}mbox.lua?{urlencode({**self._names, 'd': month.month})}"
        found = drop_empty(self._reader.download(month, url, target, ""))
        if not isinstance(found, Fetched):
            raise self.error(
                month, f"{url} has no message, but the statistics report {version}; try later"
            )
        return found._replace(version=version)

    def _read_months(self) -> dict[str, str]:
        url = f"{self._api}stats.lua?{urlencode({**self._names, 'quick': '1'})}"
        data, _ = self._reader.read_file(url)
        try:
            months = json.loads(data or b"{}")["active_months"].items()
            found = {month: f"{int(count)} messages" for month, count in months if is_month(month)}
        except _NO_STATISTICS as error:
            raise self.error(
                None, f"{url} is not Pony Mail Foal's statistics; check the list's source"
            ) from error
        if not found:  # the answer for an unknown list is the same
            raise self.error(None, f"{url} reports no public message; check the list's name")
        return dict(sorted(found.items()))


# A boundary made by Python's email package (email/generator.py, _make_boundary), in the header that
# HyperKitty writes. A quoted boundary in a body stays.
_BOUNDARY = re.compile(rb'^Content-Type: multipart/mixed;\s{1,3}boundary="(={15}\d{19}==)"', re.M)
_DIGITS = 19
_DIALECT = "plain"  # if none is detected; older versions write `jo at host`


class HyperKittySource(UnlistedSource):
    """A list of HyperKitty, by the URL of its page: https://host/archives/list/NAME@DOMAIN/."""

    def fetch(self, month: ListMonth, target: Path, known: str = "") -> Fetched | Unchanged | None:
        """Download the month's export; return None if it has no message. See ArchiveSource."""
        days = f"start={month.month}-01&end={next_month(month.month)}-01"  # the end is excluded
        url = f"{hyperkitty_export(self.url)}-{month.month}.mbox.gz?{days}"
        export = target.with_name(f"{target.name}.export")
        try:
            found = self.reader.download(month, url, export, "")
            if found is None:
                raise self.error(
                    month,
                    f"{url} does not exist: the server has no such list, or its administrator has"
                    " switched the export off",
                )
            if is_empty(export):
                return None
            size, digest = save_archive(_settle_boundaries(export, url), target)
        except ArchiveError as error:
            raise self.error(month, str(error)) from error
        finally:
            export.unlink(missing_ok=True)
            unpacked_path(export).unlink(missing_ok=True)
        version = f"sha256:{digest}"
        if version == known:
            target.unlink()
            return Unchanged(known, found.url)
        return Fetched(target, version, size, digest, found.url)


def settle_boundary(raw: bytes) -> bytes:
    """Replace a message's boundary by one that is the same in every export."""
    header_end = raw.find(b"\n\n")
    found = _BOUNDARY.search(raw, 0, max(header_end, 0))
    if found is None:
        return raw
    number = int(sha256(raw.replace(found[1], b"")).hexdigest(), 16) % 10**_DIGITS
    return raw.replace(found[1], b"===============%0*d==" % (_DIGITS, number))


def _settle_boundaries(path: Path, url: str) -> Iterator[bytes]:
    """Yield an export of `url`, gzipped without a timestamp, with settled boundaries."""
    compressor = zlib.compressobj(wbits=zlib.MAX_WBITS | 16)
    with unpacked(path) as data:
        for message in split_mbox(data, find_dialect(data) or _DIALECT, name=url):
            entry = data[message.offset : message.offset + message.length]
            line, end, raw = entry.partition(b"\n")
            yield compressor.compress(line + end + settle_boundary(raw) + b"\n")
    yield compressor.flush()
