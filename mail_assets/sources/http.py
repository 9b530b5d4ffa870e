"""Archives on HTTP servers.

What lives here: `PageSource`, for a page whose links name archives (a pipermail index, a web
server's listing); `TemplateSource`, for archives whose URLs follow from the month; and the
`Reader` both read through, which is where politeness, retries, passwords and content codings
are. What does not: judging what arrived (`sources.checks`).
"""

import random
import re
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from html.parser import HTMLParser
from ipaddress import ip_address
from itertools import chain
from pathlib import Path
from typing import TypeVar
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

import httpx

from mail_assets.sources.base import ArchiveSource, Fetched, HttpOptions, SourceError, Unchanged
from mail_assets.sources.checks import CHUNK, receive
from mail_assets.sources.months import by_month, fill, months_between

USER_AGENT = "mail-assets (mailing-list archive reader)"
MAX_PAGE = 8 << 20  # bytes of HTML; thirty years of months are 100 KB
MAX_REDIRECTS = 5
MAX_WAIT = 300.0  # seconds; a server that asks for longer is left for another run

_ETAG = re.compile(r'(?:W/)?"[\x21\x23-\x7e]*"')  # RFC 9110, 8.8.3, without its obsolete bytes
_COMPRESSED = (".gz", ".bz2", ".xz", ".zst")
_MAGICS = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ\x00", b"\x28\xb5\x2f\xfd")

T = TypeVar("T")


class PageSource(ArchiveSource):
    """The archives that a page links to: links to its own host that end in a month's name.

    The page is read once for all fetches of an instance; a link tells no version.
    """

    def __init__(self, name: str, url: str, options: HttpOptions) -> None:
        super().__init__(name, url)
        self._reader = Reader(self, options)
        self._links: dict[str, list[str]] | None = None

    def versions(self) -> dict[str, str]:
        """Read the page anew; return month -> "" for every month it links to."""
        self._links = self._read()
        return dict.fromkeys(self._links, "")

    def fetch(self, month: str, target: Path, known: str = "") -> Fetched | Unchanged | None:
        """Download what the month's link leads to. See ArchiveSource."""
        if self._links is None:
            self._links = self._read()
        url = self.only(month, self._links)
        if url is None:
            return None
        found = self._reader.download(month, url, target, known)
        if found is None:
            raise self.error(month, f"{self.url} links to {url}, which the server does not have")
        return found

    def _read(self) -> dict[str, list[str]]:
        html, url = self._reader.page()
        hosts = {urlsplit(self.url).hostname, urlsplit(url).hostname}
        links = by_month((x for x in links_of(html, url) if urlsplit(x).hostname in hosts), _name)
        if not links:  # the page of a login or an error reads just like this
            raise self.error(
                "", f"{self.url} has no link to a monthly archive on its host; open it in a browser"
            )
        return links


class TemplateSource(ArchiveSource):
    """Archives whose URLs follow from the month, from `start` to the running month (UTC)."""

    def __init__(self, name: str, url: str, options: HttpOptions, start: str) -> None:
        super().__init__(name, url)
        self._reader = Reader(self, options)
        self._start = start

    def versions(self) -> dict[str, str]:
        """Return month -> "" for every month; asks nobody, so some may have no archive."""
        return dict.fromkeys(months_between(self._start, f"{datetime.now(UTC):%Y-%m}"), "")

    def fetch(self, month: str, target: Path, known: str = "") -> Fetched | Unchanged | None:
        """Download the month's URL; None where it answers 404 or 410. See ArchiveSource."""
        return self._reader.download(month, fill(self.url, month), target, known)


class Reader:
    """GET requests on behalf of one source: paced, tried again, capped.

    The password goes to the source's own server only, redirects included.
    """

    def __init__(self, source: ArchiveSource, options: HttpOptions) -> None:
        self._source = source
        self._options = options

    def page(self) -> tuple[str, str]:
        """Return the HTML of the source's URL, and the URL where redirects ended."""

        def attempt() -> tuple[str, str]:
            with self._get("", self._source.url, {"Accept-Encoding": "gzip"}) as response:
                self._require_ok("", response)
                html = bytearray()
                for chunk in response.iter_bytes():
                    html += chunk
                    if len(html) > MAX_PAGE:
                        raise self._source.error(
                            "", f"{self._source.url} is larger than {MAX_PAGE} bytes: not a page"
                        )
                return html.decode("utf-8", "replace"), str(response.url)  # links are ASCII

        return self._persist(attempt)

    def download(
        self, month: str, url: str, target: Path, known: str
    ) -> Fetched | Unchanged | None:
        """Download the archive at `url`; None where the server has none (404, 410).

        The version is the ETag or Last-Modified as sent, or "sha256:" and the file's own.
        """
        compressed = _is_compressed(url)
        conditions = _conditions(known)
        headers = {"Accept-Encoding": "identity" if compressed else "gzip"} | conditions

        def attempt() -> Fetched | Unchanged | None:
            with self._get(month, url, headers) as response:
                if response.status_code in (404, 410):
                    return None
                if response.status_code == 304 and conditions:
                    return Unchanged(known, url)
                self._require_ok(month, response)
                version = _version(response)
                if version and version == known:  # the server ignores conditions
                    return Unchanged(known, url)
                body = _entity(response, compressed)
                size, sha256 = receive(
                    self._source, month, url, body, target, max_bytes=self._options.max_bytes
                )
            version = version or f"sha256:{sha256}"
            if version == known:
                target.unlink()
                return Unchanged(known, url)
            return Fetched(target, version, size, sha256, url)

        return self._persist(attempt)

    @contextmanager
    def _get(self, month: str, url: str, headers: dict[str, str]) -> Iterator[httpx.Response]:
        """One request; what fails on the network, even in the body, is a _PassingError."""
        options = self._options
        try:
            with (
                httpx.Client(
                    headers={"User-Agent": USER_AGENT},
                    timeout=httpx.Timeout(options.read_timeout, connect=options.connect_timeout),
                    follow_redirects=True,
                    max_redirects=MAX_REDIRECTS,
                    event_hooks={"request": [self._pace]},
                ) as client,
                client.stream("GET", url, headers=headers, auth=self._auth(url)) as response,
            ):
                yield response
        except (httpx.UnsupportedProtocol, httpx.TooManyRedirects, httpx.InvalidURL) as error:
            raise self._source.error(month, f"{url} leads nowhere: {error}") from error
        except httpx.HTTPError as error:
            fault = f"{type(error).__name__}: {error}".removesuffix(": ")
            raise _PassingError(str(self._source.error(month, f"{url}: {fault}"))) from error

    def _persist(self, attempt: Callable[[], T]) -> T:
        """Repeat what fails in passing, with growing pauses or the one the server asks for."""
        tries = 1
        while True:
            try:
                return attempt()
            except _PassingError as error:
                if tries == self._options.attempts:
                    raise SourceError(
                        f"{error}, {tries} times; try later", retryable=True
                    ) from error
                backoff = min(2.0**tries, 60.0) * random.uniform(0.5, 1.0)
                self._options.sleep(backoff if error.wait is None else error.wait)
            tries += 1

    def _pace(self, request: httpx.Request) -> None:
        delay = self._options.delay
        if delay is None:
            delay = 0.0 if _is_loopback(request.url.host) else 1.0
        _PACE.wait(request.url.netloc, delay, self._options.sleep)

    def _auth(self, url: str) -> tuple[str, str] | None:
        pair = self._options.postgresql_auth if _is_postgresql(url) else self._options.auth
        if not pair or not self._is_own(url):
            return None
        user, _, password = pair.partition(":")
        return user, password

    def _is_own(self, url: str) -> bool:
        """Whether a password for the source may go to `url`: same server, not less secure."""
        own, other = urlsplit(self._source.url), urlsplit(url)
        return (own.hostname, own.port) == (other.hostname, other.port) and (
            other.scheme in ("https", own.scheme)
        )

    def _require_ok(self, month: str, response: httpx.Response) -> None:
        status = response.status_code
        if status == 200:
            return
        url = str(response.url.copy_with(query=None, userinfo=b""))  # may hold a redirect's secrets
        fault = f"{url} answers HTTP {status}"
        if status in (401, 403):
            raise self._source.error(month, f"{fault}; {self._password_remedy(url)}")
        if status not in (408, 429) and status < 500:
            raise self._source.error(month, f"{fault}; check the list's source in lists.toml")
        wait = _retry_after(response)
        if wait is not None and wait > MAX_WAIT:
            raise self._source.error(
                month, f"{fault} and asks to wait {wait:.0f} s; run again then", retryable=True
            )
        raise _PassingError(str(self._source.error(month, fault)), wait)

    def _password_remedy(self, url: str) -> str:
        if _is_postgresql(url):
            return "check that the site still takes its public password"
        if not self._is_own(url):
            return "no password is sent to another server than the source's; name it as the source"
        refused = " (the pair it holds is refused)" if self._options.auth else ""
        return f"set MAIL_HTTP_AUTH to user:password{refused}"


class _PassingError(SourceError):
    """A failure worth another attempt, after `wait` seconds if the server names a time."""

    def __init__(self, message: str, wait: float | None = None) -> None:
        super().__init__(message, retryable=True)
        self.wait = wait


class _Pace:
    """When each server may next be asked, for all sources of this process together."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._next: dict[bytes, float] = {}

    def wait(self, server: bytes, delay: float, sleep: Callable[[float], None]) -> None:
        with self._lock:
            now = time.monotonic()
            turn = max(now, self._next.get(server, now))
            self._next[server] = turn + delay
        if turn > now:
            sleep(turn - now)


_PACE = _Pace()


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


def links_of(html: str, url: str) -> Iterator[str]:
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


def _name(url: str) -> str:
    return unquote(urlsplit(url).path.rpartition("/")[2])


def _is_compressed(url: str) -> bool:
    return _name(url).lower().endswith(_COMPRESSED)


def _is_postgresql(url: str) -> bool:
    return f".{urlsplit(url).hostname}".endswith(".postgresql.org")


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _version(response: httpx.Response) -> str:
    etag: str = response.headers.get("ETag", "").strip()
    return etag if _ETAG.fullmatch(etag) else response.headers.get("Last-Modified", "").strip()


def _conditions(known: str) -> dict[str, str]:
    """Headers that spare the download where the archive is still the `known` one."""
    if _ETAG.fullmatch(known):
        return {"If-None-Match": known}
    return {} if _date(known) is None else {"If-Modified-Since": known}


def _retry_after(response: httpx.Response) -> float | None:
    """Seconds that the server asks to wait: RFC 9110, 10.2.3, a number or a date."""
    value = response.headers.get("Retry-After", "").strip()
    if value.isascii() and value.isdigit():
        return float(value)
    date = _date(value)
    return None if date is None else max(0.0, (date - datetime.now(UTC)).total_seconds())


def _date(text: str) -> datetime | None:
    try:
        date = parsedate_to_datetime(text)
    except (ValueError, OverflowError):  # a year may be any number
        return None
    return date if date.tzinfo else date.replace(tzinfo=UTC)


def _entity(response: httpx.Response, compressed: bool) -> Iterator[bytes]:
    """Yield the file as it lies on the server, in its own compression but no further one.

    For a file that is compressed itself no coding was asked for; one that comes all the same is
    mostly the server's word for the file's own (Apache's `AddEncoding x-gzip .gz`), and undoing
    it would change the file. Only where another compression shows beneath is it a wrapping.
    """
    coding = response.headers.get("Content-Encoding", "").strip().lower()
    chunks = response.iter_raw(CHUNK)
    if coding in ("", "identity"):
        yield from chunks
        return
    first = next(chunks, b"")
    gzipped = coding in ("gzip", "x-gzip")
    if compressed and not (gzipped and _inflated_head(first).startswith(_MAGICS)):
        yield from chain([first], chunks)
    elif gzipped:
        yield from _gunzip(chain([first], chunks))
    else:
        raise SourceError(f"it comes in the content coding {coding!r}, which was not asked for")


def _gunzip(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Undo the content coding gzip, member after member, CHUNK bytes at most at a time."""
    member = zlib.decompressobj(zlib.MAX_WBITS | 16)
    try:
        for chunk in chunks:
            while chunk:
                if member.eof:
                    member = zlib.decompressobj(zlib.MAX_WBITS | 16)
                yield member.decompress(chunk, CHUNK)
                chunk = member.unused_data or member.unconsumed_tail
    except zlib.error as error:
        raise SourceError(f"its content coding is damaged: {error}", retryable=True) from error
    if not member.eof:
        raise SourceError("it ends inside its content coding gzip", retryable=True)


def _inflated_head(data: bytes) -> bytes:
    try:
        return zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(data[:4096], 16)
    except zlib.error:
        return b""
