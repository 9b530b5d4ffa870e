"""A Hugging Face Hub on loopback: its resolve URLs, and the content of large files.

huggingface_hub has tests of its own; this one has what it must answer for ours.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler

from mail_assets_tests.http.loopback import QuietHandler, listen

#: Files from here on are kept by git-lfs: they are redirected to /content/SHA256.
LARGE = 4096


@dataclass
class Hub:
    """One repository at one commit. The next GET of a content is `altered` if a test says so."""

    repository: str
    commit: str
    files: Mapping[str, bytes]
    altered: bool = False
    requests: list[str] = field(default_factory=list)
    url: str = ""


@contextmanager
def running(hub: Hub) -> Iterator[Hub]:
    handler = type("Handler", (_Answers,), {"hub": hub})
    with listen(handler) as port:
        hub.url = f"http://127.0.0.1:{port}"
        yield hub


class _Answers(QuietHandler, BaseHTTPRequestHandler):
    hub: Hub
    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def _answer(self) -> None:
        hub = self.hub
        hub.requests.append(f"{self.command} {self.path}")
        if self.path.startswith("/content/"):
            bodies = {hashlib.sha256(body).hexdigest(): body for body in hub.files.values()}
            return self._send(200, bodies[self.path.removeprefix("/content/")])
        found = re.fullmatch(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", self.path)
        if found is None or found[1] != hub.repository:
            return self._send(401, b"", {"X-Error-Code": "RepoNotFound"})
        if found[2] != hub.commit:
            return self._send(404, b"", {"X-Error-Code": "RevisionNotFound"})
        body = hub.files[found[3]]
        digest = hashlib.sha256(body).hexdigest()
        headers = {"X-Repo-Commit": hub.commit, "ETag": f'"{digest}"'}
        if len(body) < LARGE:
            return self._send(200, body, headers)
        linked = {"X-Linked-Etag": f'"{digest}"', "X-Linked-Size": str(len(body))}
        # another host, as that of the real one: a redirect within a host is followed for a HEAD
        content = hub.url.replace("127.0.0.1", "localhost")
        place = {"Location": f"{content}/content/{digest}"}
        return self._send(302, b"", {**headers, **linked, **place})

    def _send(self, status: int, body: bytes, headers: Mapping[str, str] | None = None) -> None:
        if self.command == "GET" and body and self.hub.altered:
            self.hub.altered, body = False, bytes(byte ^ 1 for byte in body)
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)
