"""A web server on the loopback with answers set by a test, and sources of it."""

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any, NamedTuple

from mail_assets.sources.source import Fetched, HttpOptions, Unchanged
from mail_assets.sources.web_pages import TemplateSource
from mail_assets_tests.http.loopback import QuietHandler, listen

MBOX = b"From ann@example.org Mon Jan 05 15:18:12 2026\nFrom: ann@example.org\n\nHello\n\n" * 400
GZ = gzip.compress(MBOX)


class Reply(NamedTuple):
    """An answer of a server; `cut` bytes of the body are announced and never sent."""

    body: bytes = b""
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    cut: int = 0
    chunked: bool = False


@dataclass
class Server:
    """A server that answers each path from its list of replies, the last one repeatedly."""

    base: str
    replies: dict[str, list[Reply]] = field(default_factory=dict)
    seen: list[tuple[str, dict[str, str]]] = field(default_factory=list)

    def on(self, path: str, *replies: Reply) -> str:
        self.replies[path] = list(replies)
        return self.base + path

    def answer(self, path: str, headers: dict[str, str]) -> Reply:
        self.seen.append((path, headers))
        replies = self.replies.get(path, [Reply(b"no such page", 404)])
        return replies.pop(0) if len(replies) > 1 else replies[0]


def handler_of(server: Server) -> type[QuietHandler]:
    class Handler(QuietHandler, BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            reply = server.answer(self.path, {k.lower(): v for k, v in self.headers.items()})
            self.send_response(reply.status)
            for name, value in reply.headers:
                self.send_header(name, value)
            self.send_header("Connection", "close")
            if reply.chunked:
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                self.wfile.write(b"%x\r\n%s\r\n" % (len(reply.body), reply.body))
                self.wfile.write(b"" if reply.cut else b"0\r\n\r\n")
            else:
                if reply.status != 304:
                    self.send_header("Content-Length", str(len(reply.body)))
                self.end_headers()
                self.wfile.write(reply.body[: len(reply.body) - reply.cut])

    return Handler


@contextmanager
def trickle(sent: bytes) -> Iterator[Server]:
    """Run a server that answers with some bytes at once, and one more every 0.05 s."""
    stopped = threading.Event()

    class Trickle(QuietHandler):
        def handle(self) -> None:
            self.wfile.write(sent)
            while not stopped.wait(0.05):
                self.wfile.write(b"x")

    with listen(Trickle) as port:
        try:
            yield Server(f"http://127.0.0.1:{port}")
        finally:
            stopped.set()


@contextmanager
def serve(host: str = "127.0.0.1") -> Iterator[Server]:
    """Run a server of this process while the block runs; its URLs have the name `host`."""
    server = Server("")
    with listen(handler_of(server)) as port:
        server.base = f"http://{host}:{port}"
        yield server


def options(slept: list[float], **others: Any) -> HttpOptions:
    return HttpOptions(sleep=slept.append, **others)


def template(server: Server, path: str = "/x.{yyyymm}", **others: Any) -> TemplateSource:
    others.setdefault("sleep", lambda seconds: None)
    return TemplateSource("hackers", server.base + path, HttpOptions(**others), "2020-01")


def fetched(found: Fetched | Unchanged | None) -> Fetched:
    assert isinstance(found, Fetched)
    return found


def page(*hrefs: str, head: str = "") -> bytes:
    links = "".join(f'<li><a href="{href}">x</a>' for href in hrefs)
    return f"<html><head>{head}</head><body>{links}".encode()
