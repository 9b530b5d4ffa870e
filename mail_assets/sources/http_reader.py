"""Requests for archives and pages, with passwords, a crawl delay, retries and size limits.

A password is sent to the source's own server only; postgresql.org gets its public password.
Redirects may lead to the source's host and to hosts that lists.toml allows (http/reach.py). httpx
drops the password at the first other server.
"""

import threading
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import NamedTuple, TypeVar
from urllib.parse import unquote, urlsplit

import httpx

from mail_assets.http.reach import Reach, ReachError
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
from mail_assets.http.transport import GuardedTransport, proxy_for
from mail_assets.month import ListMonth
from mail_assets.sources.archive_file import CHUNK, save_archive
from mail_assets.sources.source import ArchiveSource, Fetched, HttpOptions, SourceError, Unchanged

USER_AGENT = "mail-assets (mailing-list archive reader)"
MAX_PAGE = 8 << 20  # bytes of HTML; thirty years of months take 100 KB
MAX_REDIRECTS = 5
MAX_WAIT = 300.0  # seconds; if a server asks for a longer wait, the run fails

# Requests to one server are paced already, so the wait needs no jitter after a Retry-After.
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
    """Times at which each server may be asked next; thread-safe."""

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


_CRAWL_DELAY = _CrawlDelay()  # shared by all sources of this process

T = TypeVar("T")


class _Page(NamedTuple):
    """Content of a URL, and the URL where redirects ended."""

    data: bytes
    url: str
    found: bool = True


class HttpReader:
    """Sends the requests of one source."""

    def __init__(self, source: ArchiveSource, options: HttpOptions) -> None:
        self._source = source
        self._options = options
        self._reach = Reach(source.url, options.redirect_hosts)

    def allows(self, url: str, page: str) -> bool:
        """Return whether a link on a page may be followed."""
        return self._reach.allows(url, page)

    def pin_address(self, url: str) -> str:
        """Return "host:port:address" for a program that opens its own connection, "" with a proxy.

        Raises:
            SourceError: the host has no permitted address.
        """
        try:
            return pin_address(url, self._reach)
        except SourceError as error:
            raise self._source.error(None, str(error), retryable=error.retryable) from error

    def read_page(self) -> tuple[str, str]:
        """Return the HTML of the source's URL, and the URL where redirects ended."""
        page = self._read(self._source.url, MAX_PAGE)
        return page.data.decode("utf-8", "replace"), page.url  # links are ASCII

    def read_file(self, url: str, max_bytes: int = MAX_PAGE) -> tuple[bytes | None, str]:
        """Return a small file (None: 404 or 410), and the URL where redirects ended."""
        page = self._read(url, max_bytes, may_lack=True)
        return page.data if page.found else None, page.url

    def _read(self, url: str, max_bytes: int, may_lack: bool = False) -> _Page:
        def attempt() -> _Page:
            with self._request(None, "GET", url, {"Accept-Encoding": "gzip"}) as response:
                final = str(response.url)
                if may_lack and response.status_code in (404, 410):
                    return _Page(b"", final, found=False)
                self._require_ok(None, response)
                coding = response.headers.get("Content-Encoding", "")
                data = bytearray()
                with self._source.refusing(None, url):  # httpx would accept a truncated gzip
                    for chunk in _decode_content(response.iter_raw(CHUNK), coding, False):
                        data += chunk
                        if len(data) > max_bytes:
                            raise SourceError(f"it is larger than the limit of {max_bytes} bytes")
                return _Page(bytes(data), final)

        return self._retry(attempt)

    def download(
        self, month: ListMonth, url: str, target: Path, known: str, method: str = "GET"
    ) -> Fetched | Unchanged | None:
        """Download the archive at `url`; return None if the server answers 404 or 410.

        The version is the ETag or Last-Modified as sent, else "sha256:" and the file's digest. The
        recorded URL is the one where redirects ended.
        """
        compressed = _is_compressed(url)
        conditions = conditional_headers(known)
        headers = {"Accept-Encoding": "identity" if compressed else "gzip"} | conditions

        def attempt() -> Fetched | Unchanged | None:
            with self._request(month, method, url, headers) as response:
                if response.status_code in (404, 410):
                    return None
                final = _final_url(url, response)
                if response.status_code == 304 and conditions:
                    return Unchanged(known, final)
                self._require_ok(month, response)
                version = file_version(response.headers)
                if version and version == known:  # the server ignores conditions
                    return Unchanged(known, final)
                coding = response.headers.get("Content-Encoding", "")
                body = _decode_content(response.iter_raw(CHUNK), coding, compressed)
                with self._source.refusing(month, url):
                    limit = self._options.max_bytes
                    size, sha256 = save_archive(body, target, max_bytes=limit, downloaded=True)
            version = version or f"sha256:{sha256}"
            if version == known:
                target.unlink()
                return Unchanged(known, final)
            return Fetched(target, version, size, sha256, final)

        return self._retry(attempt)

    @contextmanager
    def _request(
        self, month: ListMonth | None, method: str, url: str, headers: dict[str, str]
    ) -> Iterator[httpx.Response]:
        """Send one request; a network error, even in the body, is a TransientError."""
        options = self._options
        try:
            if url != self._source.url:
                self._reach.check(url, self._source.url)
            with (
                httpx.Client(
                    headers={"User-Agent": USER_AGENT},
                    transport=GuardedTransport(self._reach, options.read_timeout),
                    timeout=httpx.Timeout(options.read_timeout, connect=options.connect_timeout),
                    event_hooks={"request": [self._wait_turn]},
                ) as client,
                closing(
                    self._send(client, client.build_request(method, url, headers=headers))
                ) as response,
            ):
                yield response
        except ReachError as error:
            allow = f'; to allow it, set redirect_hosts = ["{error.host}"] in lists.toml'
            what = f"{url} is refused: {error}{allow if error.host else ''}"
            raise self._source.error(month, what) from error
        except _NOWHERE as error:
            raise self._source.error(month, f"{url} cannot be reached: {error}") from error
        except httpx.HTTPError as error:
            if "CERTIFICATE_VERIFY_FAILED" in str(error):  # httpx has no class for it
                raise self._source.error(month, f"{url}: {error}; {_CERTIFICATE_REMEDY}") from error
            fault = f"{type(error).__name__}: {error}".removesuffix(": ")
            raise TransientError(str(self._source.error(month, f"{url}: {fault}"))) from error

    def _send(self, client: httpx.Client, request: httpx.Request) -> httpx.Response:
        auth = password_for(str(request.url), self._source.url, self._options)
        response = client.send(request, auth=auth, stream=True)
        for _ in range(MAX_REDIRECTS):
            following = response.next_request
            if following is None:
                return response
            response.close()
            self._reach.check(str(following.url), str(response.url))
            response = client.send(following, stream=True)
        if response.next_request is None:
            return response
        response.close()
        raise httpx.TooManyRedirects(f"more than {MAX_REDIRECTS} redirects")

    def _retry(self, attempt: Callable[[], T]) -> T:
        policy = replace(_RETRIES, attempts=self._options.attempts)
        try:
            return call_with_retries(attempt, policy, self._options.sleep)
        except GivenUpError as error:
            if (error.retry_after or 0.0) > MAX_WAIT:
                what = f"{error} and asks to wait {error.retry_after:.0f} s; run again after that"
            else:
                what = f"{error}, {error.attempts} times; try again later"
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
        url = str(response.url.copy_with(query=None, userinfo=b""))  # a redirect may add secrets
        fault = f"{url} answers HTTP {status}"
        if status in (401, 403):
            remedy = _password_remedy(url, self._source.url, self._options)
            raise self._source.error(month, f"{fault}; {remedy}")
        if not is_transient(status):
            raise self._source.error(month, f"{fault}; check the list's source in lists.toml")
        raise TransientError(str(self._source.error(month, fault)), retry_after(response.headers))


def _final_url(url: str, response: httpx.Response) -> str:
    """Return the URL that answered, without a redirect's query, which may contain a secret."""
    if response.url == httpx.URL(url):
        return url
    return str(response.url.copy_with(query=None))


def pin_address(url: str, reach: Reach) -> str:
    """Return "host:port:address" for a program that opens its own connection, "" with a proxy.

    Raises:
        SourceError: the host has no permitted address; the message does not name the list.
    """
    if proxy_for(url):
        return ""
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
    try:
        address = reach.resolve(host, port)[0]
    except (OSError, UnicodeError) as error:
        raise SourceError(f"{url}: {error}", retryable=True) from error
    except ReachError as error:
        raise SourceError(f"{url} is not asked: {error}") from error
    return f"{host}:{port}:{address}"


def password_for(url: str, source: str, options: HttpOptions) -> tuple[str, str] | None:
    """Return the user and password to send to `url`, which the source at URL `source` requests."""
    pair = options.postgresql_auth if _is_postgresql(url) else options.auth
    if not pair or not _is_own(url, source):
        return None
    user, _, password = pair.partition(":")
    return user, password


def _password_remedy(url: str, source: str, options: HttpOptions) -> str:
    """Return the remedy for a missing or wrong password at `url`."""
    if _is_postgresql(url):
        return "check that the site still accepts its public password"
    if not _is_own(url, source):
        return "a password is sent to the source's own server only; name this server as the source"
    refused = " (the current pair is refused)" if options.auth else ""
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


def _is_compressed(url: str) -> bool:
    return file_name(url).lower().endswith(_COMPRESSED)


def _decode_content(chunks: Iterator[bytes], coding: str, compressed: bool) -> Iterator[bytes]:
    """Yield the file as it is on the server: undo the transfer's compression, keep the file's own.

    `chunks` are the body as sent; `coding` is its Content-Encoding. For a `compressed` file no
    coding was requested. If there is one, it usually names the file's own compression (Apache's
    `AddEncoding x-gzip .gz`) and must stay. It is undone only if compressed data is found inside.

    Raises:
        SourceError: the coding is not gzip, or the data is damaged or truncated.
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
        raise SourceError(f"its content coding is {coding!r}, which was not requested")


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
