"""Connections that wait for nothing are closed, however many there are."""

import contextlib
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import ip_network

import pytest
from starlette.types import ASGIApp, Receive, Scope, Send

from mail_assets.serving import connections
from mail_assets.serving.clients import Clients
from mail_assets.serving.connections import server_config
from mail_assets_tests.serving.conftest import ReportingServer
from mail_assets_tests.waits import LONG

GET = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
#: More than all buffers between a server and a reader who reads nothing.
LARGE = 64 << 20


class App:
    """Sends a body of some bytes; `done` when the server is through with a response."""

    def __init__(self, size: int = 2) -> None:
        self.size = size
        self.done = threading.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await send({"type": "http.response.start", "status": 200, "headers": []})
            for _ in range(0, self.size, 1 << 20):
                await send(
                    {"type": "http.response.body", "body": b"x" * (1 << 20), "more_body": True}
                )
            await send({"type": "http.response.body"})
            self.done.set()


@contextmanager
def listening(app: ASGIApp, clients: Clients | None = None) -> Iterator[tuple[str, int]]:
    """Serve an application; yield where."""
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


def ask(connection: socket.socket) -> bytes:
    """Send a request; return the first line of the answer."""
    connection.sendall(GET)
    with connection.makefile("rb") as answer:
        return answer.readline()


def wait_for_end(connection: socket.socket) -> None:
    """Read until the server closes the connection."""
    connection.settimeout(LONG)
    try:
        while connection.recv(1 << 16):
            pass
    except ConnectionResetError:
        pass


@pytest.mark.parametrize("head", [b"", b"GET / HTTP/1.1\r\n", b"GET / HTTP/1.1\r\nX-Slow: "])
def test_a_request_that_does_not_come_ends_the_connection(
    monkeypatch: pytest.MonkeyPatch, head: bytes
) -> None:
    monkeypatch.setattr(connections, "HEAD_SECONDS", 0.01)
    with listening(App()) as place, socket.create_connection(place) as connection:
        connection.sendall(head)
        wait_for_end(connection)


def test_the_second_request_of_a_connection_is_not_waited_for_either(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with listening(App()) as place, socket.create_connection(place) as connection:
        assert ask(connection) == b"HTTP/1.1 200 OK\r\n"
        monkeypatch.setattr(connections, "HEAD_SECONDS", 0.01)
        connection.sendall(b"GET / HTTP/1.1\r\n")
        wait_for_end(connection)


def test_a_head_without_end_is_not_read() -> None:
    with listening(App()) as place, socket.create_connection(place) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nX-Long: ")
        with contextlib.suppress(ConnectionError):
            for _ in range(10_000):
                connection.sendall(b"x" * 1_000)
        wait_for_end(connection)


def test_a_reader_who_stalls_ends_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "STALL_SECONDS", 0.01)
    app = App(LARGE)
    with listening(app) as place, socket.create_connection(place) as connection:
        connection.sendall(GET)
        assert app.done.wait(LONG)
        wait_for_end(connection)


def test_a_reader_who_reads_gets_all_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "STALL_SECONDS", 600)
    app = App(LARGE)
    with listening(app) as place, socket.create_connection(place, LONG) as connection:
        connection.sendall(GET.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        with connection.makefile("rb") as answer:
            assert sum(map(len, iter(lambda: answer.read(1 << 20), b""))) > LARGE


@pytest.mark.parametrize(
    ("limit", "clients", "refused"),
    [
        ("MAX_CONNECTIONS", Clients((ip_network("127.0.0.0/8"),)), True),
        ("MAX_OF_CLIENT", Clients(), True),
        ("MAX_OF_CLIENT", Clients((ip_network("127.0.0.0/8"),)), False),
    ],
)
def test_connections_are_counted(
    monkeypatch: pytest.MonkeyPatch, limit: str, clients: Clients, refused: bool
) -> None:
    monkeypatch.setattr(connections, "HEAD_SECONDS", 600)
    monkeypatch.setattr(connections, limit, 2)
    with listening(App(), clients) as place:
        first, second = socket.create_connection(place), socket.create_connection(place)
        with first, second, socket.create_connection(place) as third:
            assert ask(first) == ask(second) == b"HTTP/1.1 200 OK\r\n"
            with third.makefile("rb") as answer:
                if refused:
                    assert answer.read() == connections.BUSY
                else:
                    assert ask(third) == b"HTTP/1.1 200 OK\r\n"
