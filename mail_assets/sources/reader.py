"""GET requests for archives and pages: paced, tried again, capped.

What lives here: `Reader`, through which `sources.http` reads. What does not: who gets which
password (`sources.passwords`), what header fields (`sources.headers`) and the content coding
(`sources.content_coding`) mean.
"""

import random
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from ipaddress import ip_address
from pathlib import Path
from typing import TypeVar

import httpx

from mail_assets.http.headers import conditions, retry_after, version_of
from mail_assets.month import ListMonth
from mail_assets.sources.content_coding import decoded, is_compressed
from mail_assets.sources.passwords import password_for, password_remedy
from mail_assets.sources.source import ArchiveSource, Fetched, HttpOptions, SourceError, Unchanged
from mail_assets.sources.verification import CHUNK, receive

USER_AGENT = "mail-assets (mailing-list archive reader)"
MAX_PAGE = 8 << 20  # bytes of HTML; thirty years of months are 100 KB
MAX_REDIRECTS = 5
MAX_WAIT = 300.0  # seconds; a server that asks for longer is left for another run

T = TypeVar("T")


class Reader:
    """GET requests on behalf of one source."""

    def __init__(self, source: ArchiveSource, options: HttpOptions) -> None:
        self._source = source
        self._options = options

    def page(self) -> tuple[str, str]:
        """Return the HTML of the source's URL, and the URL where redirects ended."""

        def attempt() -> tuple[str, str]:
            with self._get(None, self._source.url, {"Accept-Encoding": "gzip"}) as response:
                self._require_ok(None, response)
                html = bytearray()
                for chunk in response.iter_bytes():
                    html += chunk
                    if len(html) > MAX_PAGE:
                        raise self._source.error(
                            None, f"{self._source.url} is larger than {MAX_PAGE} bytes: not a page"
                        )
                return html.decode("utf-8", "replace"), str(response.url)  # links are ASCII

        return self._persist(attempt)

    def download(
        self, month: ListMonth, url: str, target: Path, known: str
    ) -> Fetched | Unchanged | None:
        """Download the archive at `url`; None where the server has none (404, 410).

        The version is the ETag or Last-Modified as sent, or "sha256:" and the file's own.
        """
        compressed = is_compressed(url)
        asked = conditions(known)
        headers = {"Accept-Encoding": "identity" if compressed else "gzip"} | asked

        def attempt() -> Fetched | Unchanged | None:
            with self._get(month, url, headers) as response:
                if response.status_code in (404, 410):
                    return None
                if response.status_code == 304 and asked:
                    return Unchanged(known, url)
                self._require_ok(month, response)
                version = version_of(response.headers)
                if version and version == known:  # the server ignores conditions
                    return Unchanged(known, url)
                coding = response.headers.get("Content-Encoding", "")
                body = decoded(response.iter_raw(CHUNK), coding, compressed)
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
    def _get(
        self, month: ListMonth | None, url: str, headers: dict[str, str]
    ) -> Iterator[httpx.Response]:
        """One request; what fails on the network, even in the body, is a _PassingError."""
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
                    event_hooks={"request": [self._pace]},
                ) as client,
                client.stream("GET", url, headers=headers, auth=auth) as response,
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

    def _require_ok(self, month: ListMonth | None, response: httpx.Response) -> None:
        status = response.status_code
        if status == 200:
            return
        url = str(response.url.copy_with(query=None, userinfo=b""))  # may hold a redirect's secrets
        fault = f"{url} answers HTTP {status}"
        if status in (401, 403):
            remedy = password_remedy(url, self._source.url, self._options)
            raise self._source.error(month, f"{fault}; {remedy}")
        if status not in (408, 429) and status < 500:
            raise self._source.error(month, f"{fault}; check the list's source in lists.toml")
        wait = retry_after(response.headers)
        if wait is not None and wait > MAX_WAIT:
            raise self._source.error(
                month, f"{fault} and asks to wait {wait:.0f} s; run again then", retryable=True
            )
        raise _PassingError(str(self._source.error(month, fault)), wait)


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


@cache
def _tls() -> ssl.SSLContext:
    """Read the certificates of authorities once: it takes 20 ms, as long as many a request."""
    return httpx.create_ssl_context()


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
