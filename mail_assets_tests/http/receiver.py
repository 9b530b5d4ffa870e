"""A webhook on the loopback that is as strict as Slack's: a POST of JSON with a text."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler

from mail_assets_tests.http.loopback import QuietHandler, listen

#: What makes the URL a secret.
PATH = "/services/T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX"


@dataclass
class Receiver:
    """`texts` are the messages accepted; `refusals` are answered before, (status, body) each."""

    url: str = ""
    texts: list[str] = field(default_factory=list)
    refusals: list[tuple[int, str]] = field(default_factory=list)

    def answer(self, path: str, kind: str, body: bytes) -> tuple[int, str]:
        if self.refusals:
            return self.refusals.pop(0)
        if path != PATH:
            return 404, "no_service"
        try:
            text = json.loads(body)["text"]
        except (ValueError, KeyError, TypeError):
            return 400, "invalid_payload"
        if kind != "application/json" or not isinstance(text, str) or len(text) > 40_000:
            return 400, "invalid_payload"
        if not text:
            return 400, "no_text"
        self.texts.append(text)
        return 200, "ok"


@contextmanager
def receiving() -> Iterator[Receiver]:
    receiver = Receiver()

    class Handler(QuietHandler, BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            kind = str(self.headers["Content-Type"])
            status, answer = receiver.answer(self.path, kind, body)
            self.send_response(status)
            if status in (301, 302, 307, 308):
                self.send_header("Location", PATH)
            self.end_headers()
            self.wfile.write(answer.encode())

        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()

    with listen(Handler) as port:
        receiver.url = f"http://127.0.0.1:{port}{PATH}"
        yield receiver
