"""Web servers of this process, and a record of the pauses that a source would have slept."""

import threading
from collections.abc import Callable, Iterator
from http.server import ThreadingHTTPServer

import pytest

from mail_assets_tests.sources.web import QuietServer, Server, handler_of


@pytest.fixture
def start() -> Iterator[Callable[[str], Server]]:
    running: list[tuple[ThreadingHTTPServer, threading.Thread]] = []

    def start(host: str) -> Server:
        server = Server("")
        listener = QuietServer(("127.0.0.1", 0), handler_of(server))
        server.base = f"http://{host}:{listener.server_port}"
        thread = threading.Thread(target=listener.serve_forever, args=(0.002,))
        thread.start()
        running.append((listener, thread))
        return server

    yield start
    for listener, thread in running:
        listener.shutdown()
        thread.join()
        listener.server_close()


@pytest.fixture
def server(start: Callable[[str], Server]) -> Server:
    return start("127.0.0.1")


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture
def slept() -> list[float]:
    return []
