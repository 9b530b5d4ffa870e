"""Slow and idle connections are closed, and their number is limited."""

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from http.client import HTTPResponse
from ipaddress import ip_network

import pytest
from anyio import to_thread
from starlette.types import ASGIApp, Receive, Scope, Send

from mail_assets.web import connections
from mail_assets.web.connections import server_config
from mail_assets.web.limits import Clients
from mail_assets_tests.waits import LONG
from mail_assets_tests.web.conftest import ReportingServer

GET = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
#: Bytes that exceed all buffers between a server and a client that does not read.
LARGE = 64 << 20


class App:
    """An application that sends `size` bytes, records header values, and sets `done` at the end."""

    def __init__(self, size: int = 2) -> None:
        self.size = size
        self.done = threading.Event()
        self.asked: list[set[bytes]] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            self.asked.append({value for _, value in scope["headers"]})
            await send({"type": "http.response.start", "status": 200, "headers": []})
            for _ in range(0, self.size, 1 << 20):
                await send(
                    {
                        "type": "http.response.body",
                        "body": b"x" * min(self.size, 1 << 20),
                        "more_body": True,
                    }
                )
            await send({"type": "http.response.body"})
            self.done.set()


@contextmanager
def listening(app: ASGIApp, clients: Clients | None = None) -> Iterator[tuple[str, int]]:
    """Serve an application; yield its address."""
    server = ReportingServer(
        server_config(app, clients or Clients(), port=0, lifespan="off", timeout_keep_alive=600)
    )
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        assert server.ready.wait(LONG)
        yield server.servers[0].sockets[0].getsockname()
    finally:
        server.should_exit = True
        thread.join()


def ask(connection: socket.socket) -> int:
    """Send a request, read the whole answer; return its status."""
    connection.sendall(GET)
    answer = HTTPResponse(connection)
    answer.begin()
    answer.read()
    return answer.status


def wait_for_end(connection: socket.socket) -> None:
    """Read until the server closes the connection."""
    connection.settimeout(LONG)
    try:
        while connection.recv(1 << 16):
            pass
    except ConnectionResetError:
        pass


@pytest.mark.parametrize("head", [b"", b"GET / HTTP/1.1\r\n", b"GET / HTTP/1.1\r\nX-Slow: "])
def test_slow_first_request_is_disconnected(monkeypatch: pytest.MonkeyPatch, head: bytes) -> None:
    monkeypatch.setattr(connections, "HEAD_SECONDS", 0.01)
    with listening(App()) as place, socket.create_connection(place) as connection:
        connection.sendall(head)
        wait_for_end(connection)


def test_slow_second_request_is_disconnected(monkeypatch: pytest.MonkeyPatch) -> None:
    with listening(App()) as place, socket.create_connection(place) as connection:
        assert ask(connection) == 200
        monkeypatch.setattr(connections, "HEAD_SECONDS", 0.01)
        connection.sendall(b"GET / HTTP/1.1\r\n")
        wait_for_end(connection)


def test_endless_head_is_disconnected() -> None:
    with listening(App()) as place, socket.create_connection(place) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nX-Long: ")
        with contextlib.suppress(ConnectionError):
            for _ in range(10_000):
                connection.sendall(b"x" * 1_000)
        wait_for_end(connection)


@pytest.mark.parametrize(("size", "is_taken"), [(65_000, True), (66_000, False)])
@pytest.mark.parametrize(
    ("start", "piece", "end"),
    [
        (b"GET / HTTP/1.1\r\nX-Long: ", b"x", b"\r\n"),
        (b"GET / HTTP/1.1\r\n", b"X-Many: x\r\n", b""),
        (b"GET /", b"x", b" HTTP/1.1\r\n"),
        (b"POST / HTTP/1.1\r\nContent-Length: 0\r\nX-Long: ", b"x", b"\r\n"),
    ],
)
@pytest.mark.parametrize("before", [b"", GET])
def test_head_that_arrives_at_once_has_the_same_limit(
    before: bytes, start: bytes, piece: bytes, end: bytes, size: int, is_taken: bool
) -> None:
    head = start + piece * (size // len(piece)) + end + b"Connection: close\r\n\r\n"
    app = App()
    with listening(app) as place, socket.create_connection(place) as connection:
        connection.sendall(before + head)
        wait_for_end(connection)
    assert any(b"close" in fields for fields in app.asked) is is_taken


def test_client_that_stops_reading_is_disconnected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "STALL_SECONDS", 0.01)
    app = App(LARGE)
    with listening(app) as place, socket.create_connection(place) as connection:
        connection.sendall(GET)
        assert app.done.wait(LONG)
        wait_for_end(connection)


def test_client_that_reads_gets_the_whole_body(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "STALL_SECONDS", 600)
    app = App(LARGE)
    with listening(app) as place, socket.create_connection(place, LONG) as connection:
        connection.sendall(GET.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        with connection.makefile("rb") as answer:
            assert sum(map(len, iter(lambda: answer.read(1 << 20), b""))) > LARGE


PROXY = Clients((ip_network("127.0.0.0/8"),))
BOUNDS = [("MAX_CONNECTIONS", PROXY), ("MAX_OF_CLIENT", Clients())]
#: Heads and bodies that never end.
SLOW = [b"", b"GET / HTTP/1.1\r\nX-Slow: ", b"POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\nx"]


class Busy:
    """An application that waits for `go_on`; `begun` counts the waiting requests."""

    def __init__(self) -> None:
        self.go_on = threading.Event()
        self.begun = threading.Semaphore(0)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            while (await receive()).get("more_body"):
                pass
            self.begun.release()
            await to_thread.run_sync(self.go_on.wait, LONG)
            await App()(scope, receive, send)


@pytest.fixture
def two_connections(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """A server with at most two connections, in total or for each client."""

    def bound(limit: str) -> None:
        monkeypatch.setattr(connections, "HEAD_SECONDS", 600)
        monkeypatch.setattr(connections, limit, 2)

    return bound


@pytest.mark.parametrize(("limit", "clients"), BOUNDS)
def test_connection_is_refused_if_all_others_are_busy(
    two_connections: Callable[[str], None], limit: str, clients: Clients
) -> None:
    two_connections(limit)
    app = Busy()
    with listening(app, clients) as place, ExitStack() as stack:
        stack.callback(app.go_on.set)
        for _ in range(2):
            busy = stack.enter_context(socket.create_connection(place))
            busy.sendall(GET)
            assert app.begun.acquire(timeout=LONG)
        third = stack.enter_context(socket.create_connection(place, LONG))
        with third.makefile("rb") as answer:
            assert answer.read() == connections.BUSY


@pytest.mark.parametrize("sent", SLOW)
@pytest.mark.parametrize(("limit", "clients"), BOUNDS)
def test_idle_connections_make_room_for_new_ones(
    two_connections: Callable[[str], None], limit: str, clients: Clients, sent: bytes
) -> None:
    two_connections(limit)
    with listening(App(), clients) as place, ExitStack() as stack:
        idle = [stack.enter_context(socket.create_connection(place)) for _ in range(2)]
        for one in idle:
            one.sendall(sent)
        for _ in range(3):  # each replaces an idle one
            asking = stack.enter_context(socket.create_connection(place, LONG))
            assert ask(asking) == 200
        for one in idle:
            wait_for_end(one)


def test_oldest_idle_connection_is_closed_first(two_connections: Callable[[str], None]) -> None:
    two_connections("MAX_OF_CLIENT")
    with listening(App()) as place, ExitStack() as stack:
        first, second = (stack.enter_context(socket.create_connection(place)) for _ in range(2))
        assert ask(second) == ask(first) == 200
        for oldest in (second, first):
            new = stack.enter_context(socket.create_connection(place))
            assert ask(new) == 200
            wait_for_end(oldest)


def test_clients_behind_a_proxy_do_not_share_a_limit(
    two_connections: Callable[[str], None],
) -> None:
    two_connections("MAX_OF_CLIENT")
    app = Busy()
    with listening(app, PROXY) as place, ExitStack() as stack:
        stack.callback(app.go_on.set)
        for _ in range(3):
            busy = stack.enter_context(socket.create_connection(place))
            busy.sendall(GET)
            assert app.begun.acquire(timeout=LONG)


def test_web_socket_is_not_opened(capfd: pytest.CaptureFixture[str]) -> None:
    asked = b"\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\r\n"
    with listening(App()) as place, socket.create_connection(place, LONG) as connection:
        connection.sendall(GET.replace(b"\r\n\r\n", asked))
        with connection.makefile("rb") as answer:
            assert answer.readline() == b"HTTP/1.1 200 OK\r\n"
    assert capfd.readouterr().err == ""  # the request writes nothing to the log
