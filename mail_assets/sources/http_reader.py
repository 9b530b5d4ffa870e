"""Requests for archives and pages: with passwords, a crawl delay, retries and limits of size.

A password goes to the source's own server only, and postgresql.org gets its public one. On a
redirect httpx drops the password at the first other server.
"""

import ssl
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from itertools import chain
from pathlib import Path
from typing import NamedTuple, TypeVar
from urllib.parse import unquote, urlsplit

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
from mail_assets.sources.source import ArchiveSource, Fetched, HttpOptions, SourceError, Unchanged

USER_AGENT = "mail-assets (mailing-list archive reader)"
MAX_PAGE = 8 << 20  # bytes of HTML; thirty years of months take 100 KB
MAX_REDIRECTS = 5
SLOW_SECONDS, SLOW_RATE = 300.0, 100.0  # seconds, and bytes/s that a longer body needs
MAX_WAIT = 300.0  # seconds; if a server asks for a longer wait, another run tries again

# Requests to one server are paced already, so the wait is exactly as long as it asks.
_RETRIES = RetryPolicy(
    first_wait=2.0,
    longest_wait=60.0,
    jitter=0.5,
    longest_retry_after=MAX_WAIT,
    exact_retry_after=True,
)
# UnicodeError: a redirect to an impossible host name, such as `a..b` or `xn--`
_NOWHERE = (httpx.UnsupportedProtocol, httpx.TooManyRedirects, httpx.InvalidURL, UnicodeError)
_CERTIFICATE_REMEDY = (
    "check the host's name and its certificate; SSL_CERT_FILE names a file of authorities to trust"
)


class _CrawlDelay:
    """When each server may next be asked; safe to share between threads."""

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


_CRAWL_DELAY = _CrawlDelay()  # of all sources of this process

T = TypeVar("T")


class _Page(NamedTuple):
    """Content of a URL, and the URL where redirects ended."""

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
        """Return a small file, None if the server has none (404, 410)."""
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
        """Download the archive at `url`; None if the server has none (404, 410).

        The version is the ETag or Last-Modified as sent, or "sha256:" and that of the file.
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
    """Close the body of a redirect, which httpx would read whole; watch the pace of any other."""
    stream = response.stream
    assert isinstance(stream, httpx.SyncByteStream)
    if response.has_redirect_location:
        stream.close()
        response.stream = httpx.ByteStream(b"")
    else:
        response.stream = _PacedStream(stream)


class _PacedStream(httpx.SyncByteStream):
    """A body that times out if it trickles: a byte a minute is within every read time-out."""

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
    # reading the certificates takes 20 ms, as long as many a request
    return httpx.create_ssl_context()


def password_for(url: str, source: str, options: HttpOptions) -> tuple[str, str] | None:
    """Return the user and password to send to `url` on behalf of the source at the URL `source`."""
    pair = options.postgresql_auth if _is_postgresql(url) else options.auth
    if not pair or not _is_own(url, source):
        return None
    user, _, password = pair.partition(":")
    return user, password


def password_remedy(url: str, source: str, options: HttpOptions) -> str:
    """Return the remedy if `url` answers that a password is missing or wrong."""
    if _is_postgresql(url):
        return "check that the site still takes its public password"
    if not _is_own(url, source):
        return "no password is sent to another server than the source's; name it as the source"
    refused = " (the pair it holds is refused)" if options.auth else ""
    return f"set MAIL_HTTP_AUTH to user:password{refused}"


def _is_own(url: str, source: str) -> bool:
    own, other = urlsplit(source), urlsplit(url)
    return (own.hostname, own.port) == (other.hostname, other.port) and (
        other.scheme in ("https", own.scheme)
    )


def _is_postgresql(url: str) -> bool:
    return f".{urlsplit(url).hostname}".endswith(".postgresql.org")


def file_name(url: str) -> str:
    """Return the part after the last slash of a URL's path, percent-decoded."""
    return unquote(urlsplit(url).path.rpartition("/")[2])


_COMPRESSED = (".gz", ".bz2", ".xz", ".zst")
_MAGICS = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ\x00", b"\x28\xb5\x2f\xfd")


def is_compressed(url: str) -> bool:
    """Return whether the name of the file at `url` says that it is compressed."""
    return file_name(url).lower().endswith(_COMPRESSED)


def decode_content(chunks: Iterator[bytes], coding: str, compressed: bool) -> Iterator[bytes]:
    """Yield the file as it is on the server: its own compression stays, another one is undone.

    `chunks` are the body as sent, `coding` its Content-Encoding. No coding was requested for a
    `compressed` file. One that comes anyway mostly names the file's own compression (Apache's
    `AddEncoding x-gzip .gz`), and undoing it would change the file. It is a second compression only
    if another one shows inside.

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
    """Undo the content coding gzip, member by member, at most CHUNK bytes at a time."""
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
