"""Requests for archives and pages: with a crawl delay, retries and limits of size."""

import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import NamedTuple, TypeVar

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
from mail_assets.sources.content_coding import decode_content, is_compressed
from mail_assets.sources.crawl_delay import CrawlDelay
from mail_assets.sources.http_options import HttpOptions
from mail_assets.sources.passwords import password_for, password_remedy
from mail_assets.sources.source import ArchiveSource, Fetched, SourceError, Unchanged

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
