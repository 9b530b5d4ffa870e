"""A server on the loopback that speaks OpenAI's API and is as strict as the real one.

It refuses a wrong key, a wrong path, an unknown model, unknown fields, too many inputs, too many
tokens and an empty or too long input, as OpenAI does. A script of replies may go before: each is
served to one request, in order.
"""

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any, NamedTuple

from mail_assets_tests.http.loopback import QuietHandler, listen

KEY = "sk-loopback-0123456789"

Json = dict[str, Any]


class Reply(NamedTuple):
    """An answer; `cut` bytes of the body are announced and never sent.

    `pieces` replace the body and are sent one by one, without a length.
    """

    body: Any = ""
    status: int = 200
    headers: Sequence[tuple[str, str]] = ()
    cut: int = 0
    pieces: Sequence[bytes] = ()


class Refusal(Exception):  # noqa: N818 - an answer, not a fault of the server
    def __init__(self, status: int, message: str, code: str | None = None) -> None:
        super().__init__(message)
        error = {"message": message, "type": "invalid_request_error", "param": None, "code": code}
        self.reply = Reply({"error": error}, status)


@dataclass
class Seen:
    path: str
    headers: dict[str, str]
    body: Json


@dataclass
class FakeServer:
    """`routes` answer a path's body; `script` goes before them; `seen` is all that was asked."""

    routes: dict[str, Callable[[Json], Reply]]
    key: str = KEY
    url: str = ""
    script: list[Reply | None] = field(default_factory=list)
    seen: list[Seen] = field(default_factory=list)
    at_once: int = 0
    most_at_once: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, path: str, headers: dict[str, str], raw: bytes) -> Reply:
        with self.lock:
            body = json.loads(raw)
            self.seen.append(Seen(path, headers, body))
            scripted = self.script.pop(0) if self.script else None
        if scripted is not None:
            return scripted
        try:
            wanted = f"Bearer {self.key}" if self.key else None
            if headers.get("authorization") != wanted:
                raise Refusal(401, "Incorrect API key provided", "invalid_api_key")
            if headers.get("content-type") != "application/json":
                raise Refusal(415, "send JSON")
            if path not in self.routes:
                raise Refusal(404, f"Invalid URL (POST {path})")
            return self.routes[path](body)
        except Refusal as refusal:
            return refusal.reply


def handler_of(server: FakeServer) -> type[QuietHandler]:
    class Handler(QuietHandler, BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers["Content-Length"]))
            with server.lock:
                server.at_once += 1
                server.most_at_once = max(server.at_once, server.most_at_once)
            try:
                reply = server.answer(
                    self.path, {k.lower(): v for k, v in self.headers.items()}, raw
                )
                self.reply(reply)
            finally:
                with server.lock:
                    server.at_once -= 1

        def reply(self, reply: Reply) -> None:
            body = reply.body if isinstance(reply.body, str) else json.dumps(reply.body)
            data = body.encode()
            self.send_response(reply.status)
            for name, value in reply.headers:
                self.send_header(name, value)
            if reply.pieces:
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                for piece in reply.pieces:
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                self.wfile.write(b"" if reply.cut else b"0\r\n\r\n")
            else:
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data[: len(data) - reply.cut])
            self.close_connection = bool(reply.cut)

    return Handler


@contextmanager
def serving(server: FakeServer, port: int = 0) -> Iterator[FakeServer]:
    with listen(handler_of(server), port=port) as bound:
        server.url = f"http://127.0.0.1:{bound}/v1"
        yield server
