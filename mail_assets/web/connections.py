"""Connections that are kept waiting are closed: slow requests, and readers that stop to read.

uvicorn waits for both without end: a few hundred such connections would be all that it has
(https://en.wikipedia.org/wiki/Slowloris_(cyber_attack)). Where there are as many as may be, a new
one takes the place of the one that has gone longest without a whole request, as in nginx: an
address may be that of many people, and who of them asks nothing keeps nobody out.
"""

import asyncio
import itertools
from collections.abc import Collection
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from mail_assets.web.limits import Clients

#: Connections at once, fewer than the 1,024 files that a process may have open; and of one client,
#: if it is no proxy.
MAX_CONNECTIONS, MAX_OF_CLIENT = 500, 64
#: Seconds until a request's line and header fields are there, and bytes that they may have.
HEAD_SECONDS, MAX_HEAD = 10, 64 * 1024
#: Seconds that a reader may leave all buffers full.
STALL_SECONDS = 20
#: Numbers connections by their last requests; the clock of a loop may stand still between two.
_turns = itertools.count()
BUSY = (
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\n"
    b"Content-Length: 0\r\n\r\n"
)


def server_config(app: ASGIApp, clients: Clients, **given: Any) -> uvicorn.Config:
    """Return what uvicorn serves an application with: guarded, and silent about who asks what."""
    return uvicorn.Config(
        app,
        http=type("Guarded", (GuardedProtocol,), {"clients": clients}),
        # a web socket would leave the guards behind
        ws="none",
        # it would hold what people search for
        access_log=False,
        log_level="warning",
        server_header=False,
        # uvicorn would believe every process of this machine
        proxy_headers=False,
        **given,
    )


class GuardedProtocol(HttpToolsProtocol):
    """HTTP with a bound on connections, and on how long each may be waited for."""

    clients = Clients()

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self._head_size = self._read = 0
        self.turn = next(_turns)
        self._head_timer: asyncio.TimerHandle | None = None
        self._stall_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first request, or refuse the connection."""
        super().connection_made(transport)
        if self._has_room():
            self._head_timer = self.loop.call_later(HEAD_SECONDS, self.give_up)
        else:
            transport.write(BUSY)
            transport.close()

    def data_received(self, data: bytes) -> None:
        """Read on; the head of a request has to be whole in time."""
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
        """Say nothing: anybody can ask for a web socket, and there is none on purpose."""

    def on_message_begin(self) -> None:
        """Begin with a request."""
        super().on_message_begin()
        self._read = 0

    def on_url(self, url: bytes) -> None:
        """Take over a piece of the URL."""
        self._bound_head(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take over a header field."""
        self._bound_head(len(name) + len(value) + len(": \r\n"))
        super().on_header(name, value)

    def _bound_head(self, size: int) -> None:
        """Count what the parser has read of a head: one that arrives at once is never incomplete.

        Raises:
            ValueError: it is too large, which is answered with 400.
        """
        self._read += size
        if self._read > MAX_HEAD:
            raise ValueError(f"a head has at most {MAX_HEAD} bytes")

    def pause_writing(self) -> None:
        """Wait for the reader, for a while."""
        super().pause_writing()
        self._stall_timer = self.loop.call_later(STALL_SECONDS, self.give_up)

    def resume_writing(self) -> None:
        """Go on."""
        super().resume_writing()
        self._stall_timer = _stop(self._stall_timer)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        super().connection_lost(exc)
        self._head_timer, self._stall_timer = _stop(self._head_timer), _stop(self._stall_timer)

    def _has_room(self) -> bool:
        """Say whether there is room for this connection, made where there was none."""
        address = self.client[0] if self.client else ""
        is_client = address and not self.clients.is_proxy(address)
        if is_client and not _make_room(self._others(address), MAX_OF_CLIENT):
            return False
        return _make_room(self._others(), MAX_CONNECTIONS)

    def _others(self, address: str = "") -> list["GuardedProtocol"]:
        """Return the other connections: all, or those of an address."""
        return [
            one
            for one in self.connections
            if isinstance(one, GuardedProtocol)
            and one is not self
            and (not address or (one.client and one.client[0] == address))
        ]

    @property
    def waits(self) -> bool:
        """Whether no whole request is there that would have to be answered."""
        return self.cycle is None or self.cycle.response_complete or self.cycle.more_body

    def give_up(self) -> None:
        """Close the connection at once."""
        self.connections.discard(self)
        self.transport.abort()


def _make_room(others: Collection[GuardedProtocol], most: int) -> bool:
    """Say whether there are fewer than `most`; else close one that waits, if there is any."""
    if len(others) < most:
        return True
    waiting = [one for one in others if one.waits]
    if waiting:
        min(waiting, key=lambda one: one.turn).give_up()
    return bool(waiting)


def _stop(timer: asyncio.TimerHandle | None) -> asyncio.TimerHandle | None:
    """Cancel a timer; return the one that is left, which is none."""
    if timer:
        timer.cancel()
    return None
