"""Connect httpx to checked addresses only, with a deadline that grows with the received bytes.

A read timeout alone is not enough: a server that sends a byte a minute never exceeds it. The total
time to wait for a connection grows only with the bytes received, in header and body. The time that
this side takes to store them does not count.
"""

import ssl
import time
from collections.abc import Iterable
from functools import cache
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import httpcore
import httpx

from mail_assets.http.reach import Reach

MIN_RATE = 8 << 10  # bytes/s; lowest average rate of a long body
MAX_WAITING = 6 * 3600.0  # seconds; longest total wait for a body

_SocketOptions = Iterable[
    tuple[int, int, int] | tuple[int, int, bytes | bytearray] | tuple[int, int, None, int]
]


@cache
def tls() -> ssl.SSLContext:
    """Return the trusted authorities; cached, because reading them takes 20 ms."""
    return httpx.create_ssl_context()


class GuardedTransport(httpx.BaseTransport):
    """Sends requests to permitted addresses; `patience` is the longest silence in seconds.

    A proxy named in the environment is used. A proxy resolves names itself, so only URLs and
    literal addresses in them are checked then.
    """

    def __init__(self, reach: Reach, patience: float) -> None:
        self._reach, self._patience = reach, patience
        self._opened: dict[str, _Pooled] = {}

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request to its server or through a proxy."""
        proxy = proxy_for(str(request.url))
        if proxy not in self._opened:
            reach = None if proxy else self._reach
            self._opened[proxy] = _Pooled(_Network(reach, self._patience), proxy)
        return self._opened[proxy].handle_request(request)

    def close(self) -> None:
        """Close the connections."""
        for transport in self._opened.values():
            transport.close()


def proxy_for(url: str) -> str:
    """Return the proxy for a URL from the environment, or ""."""
    parts = urlsplit(url)
    proxies = getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all") or ""
    if not proxy or proxy_bypass(parts.hostname or ""):
        return ""
    return proxy if "://" in proxy else f"http://{proxy}"


class _Pooled(httpx.HTTPTransport):
    def __init__(self, network: "_Network", proxy: str) -> None:
        super().__init__(verify=tls(), proxy=proxy or None)
        # httpx has no argument for the network backend
        self._pool._network_backend = network


class _Network(httpcore.NetworkBackend):
    """Connects to the addresses that `reach` permits; None permits all, for proxies."""

    def __init__(self, reach: Reach | None, patience: float) -> None:
        self._reach, self._patience = reach, patience
        self._plain = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: _SocketOptions | None = None,
    ) -> httpcore.NetworkStream:
        try:
            addresses = self._reach.resolve(host, port) if self._reach else [host]
        except OSError as error:
            raise httpcore.ConnectError(str(error)) from error
        failed: Exception = httpcore.ConnectError(f"{host} has no address")
        for address in addresses:
            try:
                stream = self._plain.connect_tcp(
                    address, port, timeout, local_address, socket_options
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failed = error
            else:
                return _Stream(stream, self._patience)
        raise failed


class _Stream(httpcore.NetworkStream):
    """A connection with a deadline of `patience` seconds, which grows with the received bytes."""

    def __init__(self, stream: httpcore.NetworkStream, patience: float) -> None:
        self._stream, self._patience = stream, patience
        self._size, self._waited = 0, 0.0

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        allowed = min(self._patience + self._size / MIN_RATE, MAX_WAITING) - self._waited
        if allowed <= 0:
            raise httpcore.ReadTimeout(f"{self._size} bytes in {self._waited:.0f} s")
        began = time.monotonic()
        try:
            data = self._stream.read(
                max_bytes, allowed if timeout is None else min(timeout, allowed)
            )
        finally:
            self._waited += time.monotonic() - began
        self._size += len(data)
        return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, timeout)

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        secured = self._stream.start_tls(ssl_context, server_hostname, timeout)
        return _Stream(secured, self._patience)

    def get_extra_info(self, info: str) -> object:
        return self._stream.get_extra_info(info)
