"""Requests for archives and pages: with a crawl delay, retries and limits of size.

[links] The links of an HTML page, and the file names that URLs end in.

[content_coding] Undo the content coding in which a server sends a file; its own compression stays.

[crawl_delay] Keep a pause between two requests to one server, for all sources of this process together.

[http_options] Options of requests to archive servers.

[passwords] Which server gets which password: a source's own server only, and postgresql.org its public one.

On a redirect httpx itself drops the password at the first other server.
"""

import math
import re
import ssl
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from html import unescape
from itertools import chain
from pathlib import Path
from typing import NamedTuple, TypeVar
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

import httpx

from mail_assets.http.requests import (
    GivenUpError,
    RetryPolicy,
    TransientError,
    call_with_retries,
    conditional_headers,
    file_version,
    is_loopback,
    is_transient,
    retry_after,
)
from mail_assets.month import ListMonth
from mail_assets.sources.archive_file import CHUNK, save_archive
from mail_assets.sources.source import ArchiveSource, Fetched, SourceError, Unchanged

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


_COMPRESSED = (".gz", ".bz2", ".xz", ".zst")
_MAGICS = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ\x00", b"\x28\xb5\x2f\xfd")


def is_compressed(url: str) -> bool:
    """Say whether the file at `url` is, by its name, compressed itself."""
    return file_name(url).lower().endswith(_COMPRESSED)


def decode_content(chunks: Iterator[bytes], coding: str, compressed: bool) -> Iterator[bytes]:
    """Yield the file as it lies on the server, in its own compression but no further one.

    `chunks` are the body as sent, `coding` its Content-Encoding. For a `compressed` file no coding
    was asked for; one that comes all the same is mostly the server's word for the file's own
    (Apache's `AddEncoding x-gzip .gz`), and undoing it would change the file. Only where another
    compression shows beneath is it a wrapping.

    Raises:
        SourceError: for a coding other than gzip, and for one that is damaged or cut short.
    """
    coding = coding.strip().lower()
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


class CrawlDelay:
    """When each server may next be asked; safe to share between threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._next: dict[bytes, float] = {}

    def wait(self, server: bytes, delay: float, sleep: Callable[[float], None]) -> None:
        """Sleep until it is this request's turn; the next one's is `delay` seconds later."""
        with self._lock:
            now = time.monotonic()
            turn = max(now, self._next.get(server, now))
            self._next[server] = turn + delay
        if turn > now:
            sleep(turn - now)


@dataclass(frozen=True, kw_only=True)
class HttpOptions:
    """Passwords, limits and times of requests to archive servers.

    `auth` is "user:password" (or "") for every host but postgresql.org's, whose public
    anti-crawler pair is `postgresql_auth`. Times are in seconds; `delay` is the crawl delay
    between two requests to one host, None meaning 1 s for remote hosts and 0 for this machine.

    Raises:
        ValueError: for a malformed pair or a number out of range; shows no password.
    """

    auth: str = field(default="", repr=False)
    postgresql_auth: str = field(default="archives:antispam", repr=False)
    max_bytes: int = 4 << 30
    attempts: int = 5
    delay: float | None = None
    connect_timeout: float = 15.0
    read_timeout: float = 60.0  # between two pieces of a body; a big month takes long to render
    sleep: Callable[[float], None] = field(default=time.sleep, repr=False)

    def __post_init__(self) -> None:
        pairs = {"MAIL_HTTP_AUTH": self.auth, "the pair for postgresql.org": self.postgresql_auth}
        for name, pair in pairs.items():
            if pair and pair.find(":") < 1:
                raise ValueError(f"{name} must be written user:password")
        if self.attempts < 1 or self.max_bytes < 1:
            raise ValueError("HTTP attempts and max_bytes must be at least 1")
        pauses = (self.delay or 0.0, self.connect_timeout, self.read_timeout)
        if not all(math.isfinite(pause) and pause >= 0 for pause in pauses):
            raise ValueError("HTTP delays and timeouts must be finite and not negative")


def password_for(url: str, source: str, options: HttpOptions) -> tuple[str, str] | None:
    """Return the user and password to send to `url` on behalf of the source at the URL `source`."""
    pair = options.postgresql_auth if _is_postgresql(url) else options.auth
    if not pair or not _is_own(url, source):
        return None
    user, _, password = pair.partition(":")
    return user, password


def password_remedy(url: str, source: str, options: HttpOptions) -> str:
    """Say what to do where `url` answers that a password is missing or wrong."""
    if _is_postgresql(url):
        return "check that the site still takes its public password"
    if not _is_own(url, source):
        return "no password is sent to another server than the source's; name it as the source"
    refused = " (the pair it holds is refused)" if options.auth else ""
    return f"set MAIL_HTTP_AUTH to user:password{refused}"


def _is_own(url: str, source: str) -> bool:
    """Say whether `url` is on the source's server, and reached no less securely."""
    own, other = urlsplit(source), urlsplit(url)
    return (own.hostname, own.port) == (other.hostname, other.port) and (
        other.scheme in ("https", own.scheme)
    )


def _is_postgresql(url: str) -> bool:
    return f".{urlsplit(url).hostname}".endswith(".postgresql.org")


USER_AGENT = "mail-assets (mailing-list archive reader)"
MAX_PAGE = 8 << 20  # bytes of HTML; thirty years of months are 100 KB
MAX_REDIRECTS = 5
SLOW_SECONDS, SLOW_RATE = 300.0, 100.0  # a body may take so long, and longer at so many bytes/s
MAX_WAIT = 300.0  # seconds; a server that asks for longer is left for another run

# Requests to one server are paced already, so what it asks for is waited and no more.
_RETRIES = RetryPolicy(
    first_wait=2.0,
    longest_wait=60.0,
    jitter=0.5,
    longest_retry_after=MAX_WAIT,
    exact_retry_after=True,
)
_CRAWL_DELAY = CrawlDelay()
# UnicodeError: a redirect to a host name that no name can be, such as `a..b` or `xn--`.
_NOWHERE = (httpx.UnsupportedProtocol, httpx.TooManyRedirects, httpx.InvalidURL, UnicodeError)
_CERTIFICATE_REMEDY = (
    "check the host's name and its certificate; SSL_CERT_FILE names a file of authorities to trust"
)

T = TypeVar("T")


class _Page(NamedTuple):
    """What is at a URL, and the URL where redirects ended."""

    data: bytes
    url: str
    found: bool = True


class HttpReader:
    """Requests on behalf of one source."""

    def __init__(self, source: ArchiveSource, options: HttpOptions) -> None:
        self._source = source
        self._options = options

    def read_page(self) -> tuple[str, str]:
        """Return the HTML of the source's URL, and the URL where redirects ended."""
        page = self._read(self._source.url, MAX_PAGE)
        return page.data.decode("utf-8", "replace"), page.url  # links are ASCII

    def read_file(self, url: str, max_bytes: int = MAX_PAGE) -> bytes | None:
        """Return a small file; None where the server has none (404, 410)."""
        page = self._read(url, max_bytes, may_lack=True)
        return page.data if page.found else None

    def _read(self, url: str, max_bytes: int, may_lack: bool = False) -> _Page:
        def attempt() -> _Page:
            with self._request(None, "GET", url, {"Accept-Encoding": "gzip"}) as response:
                if may_lack and response.status_code in (404, 410):
                    return _Page(b"", url, found=False)
                self._require_ok(None, response)
                coding = response.headers.get("Content-Encoding", "")
                data = bytearray()
                with self._source.refusing(None, url):  # httpx would read a gzip that is cut short
                    for chunk in decode_content(response.iter_raw(CHUNK), coding, False):
                        data += chunk
                        if len(data) > max_bytes:
                            raise SourceError(f"it is larger than {max_bytes} bytes: not a page")
                return _Page(bytes(data), str(response.url))

        return self._retry(attempt)

    def download(
        self, month: ListMonth, url: str, target: Path, known: str, method: str = "GET"
    ) -> Fetched | Unchanged | None:
        """Download the archive at `url`; None where the server has none (404, 410).

        The version is the ETag or Last-Modified as sent, or "sha256:" and the file's own.
        """
        compressed = is_compressed(url)
        conditions = conditional_headers(known)
        headers = {"Accept-Encoding": "identity" if compressed else "gzip"} | conditions

        def attempt() -> Fetched | Unchanged | None:
            with self._request(month, method, url, headers) as response:
                if response.status_code in (404, 410):
                    return None
                if response.status_code == 304 and conditions:
                    return Unchanged(known, url)
                self._require_ok(month, response)
                version = file_version(response.headers)
                if version and version == known:  # the server ignores conditions
                    return Unchanged(known, url)
                coding = response.headers.get("Content-Encoding", "")
                body = decode_content(response.iter_raw(CHUNK), coding, compressed)
                with self._source.refusing(month, url):
                    limit = self._options.max_bytes
                    size, sha256 = save_archive(body, target, max_bytes=limit, downloaded=True)
            version = version or f"sha256:{sha256}"
            if version == known:
                target.unlink()
                return Unchanged(known, url)
            return Fetched(target, version, size, sha256, url)

        return self._retry(attempt)

    @contextmanager
    def _request(
        self, month: ListMonth | None, method: str, url: str, headers: dict[str, str]
    ) -> Iterator[httpx.Response]:
        """Send one request; a network error, even in the body, is a TransientError."""
        options = self._options
        auth = password_for(url, self._source.url, options)
        try:
            with (
                httpx.Client(
                    headers={"User-Agent": USER_AGENT},
                    verify=_tls(),
                    timeout=httpx.Timeout(options.read_timeout, connect=options.connect_timeout),
                    follow_redirects=True,
                    max_redirects=MAX_REDIRECTS,
                    event_hooks={"request": [self._wait_turn], "response": [_guard_body]},
                ) as client,
                client.stream(method, url, headers=headers, auth=auth) as response,
            ):
                yield response
        except _NOWHERE as error:
            raise self._source.error(month, f"{url} leads nowhere: {error}") from error
        except httpx.HTTPError as error:
            if "CERTIFICATE_VERIFY_FAILED" in str(error):  # httpx keeps no type of it
                raise self._source.error(month, f"{url}: {error}; {_CERTIFICATE_REMEDY}") from error
            fault = f"{type(error).__name__}: {error}".removesuffix(": ")
            raise TransientError(str(self._source.error(month, f"{url}: {fault}"))) from error

    def _retry(self, attempt: Callable[[], T]) -> T:
        policy = replace(_RETRIES, attempts=self._options.attempts)
        try:
            return call_with_retries(attempt, policy, self._options.sleep)
        except GivenUpError as error:
            if (error.retry_after or 0.0) > MAX_WAIT:
                what = f"{error} and asks to wait {error.retry_after:.0f} s; run again then"
            else:
                what = f"{error}, {error.attempts} times; try later"
            raise SourceError(what, retryable=True) from error

    def _wait_turn(self, request: httpx.Request) -> None:
        delay = self._options.delay
        if delay is None:
            delay = 0.0 if is_loopback(request.url.host) else 1.0
        _CRAWL_DELAY.wait(request.url.netloc, delay, self._options.sleep)

    def _require_ok(self, month: ListMonth | None, response: httpx.Response) -> None:
        status = response.status_code
        if status == 200:
            return
        url = str(response.url.copy_with(query=None, userinfo=b""))  # may hold a redirect's secrets
        fault = f"{url} answers HTTP {status}"
        if status in (401, 403):
            remedy = password_remedy(url, self._source.url, self._options)
            raise self._source.error(month, f"{fault}; {remedy}")
        if not is_transient(status):
            raise self._source.error(month, f"{fault}; check the list's source in lists.toml")
        raise TransientError(str(self._source.error(month, fault)), retry_after(response.headers))


def _guard_body(response: httpx.Response) -> None:
    """Close what comes with a redirect, which httpx would read whole; keep an eye on the rest."""
    stream = response.stream
    assert isinstance(stream, httpx.SyncByteStream)
    if response.has_redirect_location:
        stream.close()
        response.stream = httpx.ByteStream(b"")
    else:
        response.stream = _PacedStream(stream)


class _PacedStream(httpx.SyncByteStream):
    """A body that times out where it trickles: a byte a minute is within every read time-out."""

    def __init__(self, stream: httpx.SyncByteStream) -> None:
        self._stream = stream

    def __iter__(self) -> Iterator[bytes]:
        began, size = time.monotonic(), 0
        for piece in self._stream:
            size += len(piece)
            seconds = time.monotonic() - began
            if seconds > SLOW_SECONDS and size < SLOW_RATE * seconds:
                raise httpx.ReadTimeout(f"{size} bytes of the body in {seconds:.0f} s")
            yield piece

    def close(self) -> None:
        self._stream.close()


@cache
def _tls() -> ssl.SSLContext:
    """Read the certificates of authorities once: it takes 20 ms, as long as many a request."""
    return httpx.create_ssl_context()
