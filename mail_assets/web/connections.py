"""Limits on connections: closes those of slow requests, and of clients that stop reading.

uvicorn waits for both without limit, so a few hundred such connections would block it
(https://en.wikipedia.org/wiki/Slowloris_(cyber_attack)). If all connections are in use, a new one
replaces the idle connection with the oldest request, as in nginx. Many people may share an address,
so idle connections must not keep others out.
"""

import asyncio
import itertools
from collections.abc import Collection
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from mail_assets.web.limits import Clients

#: Most connections at once, below the 1,024 files that a process may open; and most per client,
#: unless it is a proxy.
MAX_CONNECTIONS, MAX_OF_CLIENT = 500, 64
#: Most seconds until the head of a request has arrived, and most bytes of a head.
HEAD_SECONDS, MAX_HEAD = 10, 64 * 1024
#: Most seconds that a client may leave all buffers full.
STALL_SECONDS = 20
#: Orders connections by their last request; the loop's clock may be equal for two.
_turns = itertools.count()
BUSY = (
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\n"
    b"Content-Length: 0\r\n\r\n"
)


def server_config(app: ASGIApp, clients: Clients, **given: Any) -> uvicorn.Config:
    """Return the configuration of uvicorn: guarded connections, and no log of requests."""
    return uvicorn.Config(
        app,
        http=type("Guarded", (GuardedProtocol,), {"clients": clients}),
        # a web socket would not be guarded
        ws="none",
        # it would contain queries
        access_log=False,
        log_level="warning",
        server_header=False,
        # uvicorn would trust any process of this machine
        proxy_headers=False,
        **given,
    )


class GuardedProtocol(HttpToolsProtocol):
    """HTTP with limits on the number of connections, and on the time that each may wait."""

    clients = Clients()

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self._head_size = self._read = 0
        self.turn = next(_turns)
        self._head_timer: asyncio.TimerHandle | None = None
        self._stall_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the timer of the first request, or refuse the connection."""
        super().connection_made(transport)
        if self._has_room():
            self._head_timer = self.loop.call_later(HEAD_SECONDS, self.give_up)
        else:
            transport.write(BUSY)
            transport.close()

    def data_received(self, data: bytes) -> None:
        """Read more bytes; the head of a request must be complete in time."""
        before = self.cycle
        if before is None or before.response_complete or not before.more_body:
            self._head_size += len(data)
            self._head_timer = self._head_timer or self.loop.call_later(HEAD_SECONDS, self.give_up)
        super().data_received(data)
        if self.cycle is not before:
            self._head_size = 0
            self.turn = next(_turns)
            self._head_timer = _stop(self._head_timer)
        elif self._head_size > MAX_HEAD:
            self.give_up()

    def _unsupported_upgrade_warning(self) -> None:
        """Log nothing: web sockets are off on purpose, and anybody can ask for one."""

    def on_message_begin(self) -> None:
        """Begin a request."""
        super().on_message_begin()
        self._read = 0

    def on_url(self, url: bytes) -> None:
        """Add a piece of the URL."""
        self._bound_head(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Add a header field."""
        self._bound_head(len(name) + len(value) + len(": \r\n"))
        super().on_header(name, value)

    def _bound_head(self, size: int) -> None:
        """Count the bytes of a head; `data_received` sees no head that arrives all at once.

        Raises:
            ValueError: the head is too large; uvicorn answers 400.
        """
        self._read += size
        if self._read > MAX_HEAD:
            raise ValueError(f"a head has at most {MAX_HEAD} bytes")

    def pause_writing(self) -> None:
        """Start the timer of a client that does not read."""
        super().pause_writing()
        self._stall_timer = self.loop.call_later(STALL_SECONDS, self.give_up)

    def resume_writing(self) -> None:
        """Stop the timer: the client reads again."""
        super().resume_writing()
        self._stall_timer = _stop(self._stall_timer)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timers of a closed connection."""
        super().connection_lost(exc)
        self._head_timer, self._stall_timer = _stop(self._head_timer), _stop(self._stall_timer)

    def _has_room(self) -> bool:
        """Return whether this connection has room; close another one if that makes room."""
        address = self.client[0] if self.client else ""
        is_client = address and not self.clients.is_proxy(address)
        if is_client and not _make_room(self._others(address), MAX_OF_CLIENT):
            return False
        return _make_room(self._others(), MAX_CONNECTIONS)

    def _others(self, address: str = "") -> list["GuardedProtocol"]:
        return [
            one
            for one in self.connections
            if isinstance(one, GuardedProtocol)
            and one is not self
            and (not address or (one.client and one.client[0] == address))
        ]

    @property
    def waits(self) -> bool:
        """True if the connection has no complete request to answer."""
        return self.cycle is None or self.cycle.response_complete or self.cycle.more_body

    def give_up(self) -> None:
        """Close the connection at once."""
        self.connections.discard(self)
        self.transport.abort()


def _make_room(others: Collection[GuardedProtocol], most: int) -> bool:
    """Return whether there is room below `most`; if there is none, close an idle connection."""
    if len(others) < most:
        return True
    waiting = [one for one in others if one.waits]
    if waiting:
        min(waiting, key=lambda one: one.turn).give_up()
    return bool(waiting)


def _stop(timer: asyncio.TimerHandle | None) -> asyncio.TimerHandle | None:
    if timer:
        timer.cancel()
    return None
