"""A strict Hugging Face Hub on loopback: resolve URLs, and a content server for large files.

It gives the answers of the real one, and faults on demand. It refuses a method, path, header or
range that the real one would refuse.
"""

import hashlib
import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TOKEN = "hf_of_tests"
#: Files from here on are kept by git-lfs, on the content server.
LARGE = 4096


@dataclass
class Hub:
    """One repository at one commit. What the tests change between requests stands here."""

    repository: str
    commit: str
    files: Mapping[str, bytes]
    #: What the next GETs of a file's content do instead: "503", "429", "cut", "altered".
    faults: list[str] = field(default_factory=list)
    #: What the next HEADs of a resolve URL answer instead.
    head_faults: list[int] = field(default_factory=list)
    #: Who may read: "all", "token" (private), "none" (gated).
    readers: str = "all"
    requests: list[str] = field(default_factory=list)
    url: str = ""
    content_url: str = ""


@contextmanager
def running(hub: Hub) -> Iterator[Hub]:
    """Serve until the block ends: the Hub itself, and the content server on another port."""
    servers = [ThreadingHTTPServer(("127.0.0.1", 0), _handler(hub, role)) for role in ROLES]
    hub.url, hub.content_url = (f"http://127.0.0.1:{server.server_port}" for server in servers)
    threads = [threading.Thread(target=server.serve_forever, args=(0.01,)) for server in servers]
    for thread in threads:
        thread.start()
    try:
        yield hub
    finally:
        for server, thread in zip(servers, threads, strict=True):
            server.shutdown()
            thread.join()
            server.server_close()


class _Answers(BaseHTTPRequestHandler, ABC):
    hub: Hub
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self.hub.requests.append(f"HEAD {self.path}")
        self.answer()

    def do_GET(self) -> None:
        self.hub.requests.append(f"GET {self.path} {self.headers.get('Range', '')}".strip())
        self.answer()

    @abstractmethod
    def answer(self) -> None: ...

    def refuse(self, status: int, code: str = "", **headers: str) -> None:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.send(status, b"", {"X-Error-Code": code, "X-Error-Message": code, **named})

    def send(self, status: int, body: bytes, headers: Mapping[str, str], length: int = -1) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body) if length < 0 else length)}.items():
            self.send_header(name, value)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def content(self, body: bytes, headers: Mapping[str, str]) -> None:
        """The bytes asked for, or what the next fault makes of them."""
        start = 0
        if found := self.headers.get("Range"):
            wanted = re.fullmatch(r"bytes=(\d+)-", found)
            if wanted is None or int(wanted[1]) >= len(body):
                return self.refuse(416, Content_Range=f"bytes */{len(body)}")
            start = int(wanted[1])
        fault = self.hub.faults.pop(0) if self.command == "GET" and self.hub.faults else ""
        if fault.isdigit():
            return self.refuse(int(fault), Retry_After="0")
        if start:
            headers = {**headers, "Content-Range": f"bytes {start}-{len(body) - 1}/{len(body)}"}
        rest = body[start:]
        if fault == "altered":
            rest = bytes(byte ^ 1 for byte in rest)
        status = 206 if start else 200
        if fault == "cut":
            self.send(status, rest[: len(rest) // 2], headers, length=len(rest))
            self.close_connection = True
            return None
        return self.send(status, rest, headers)


class _Resolve(_Answers):
    """GET and HEAD /REPOSITORY/resolve/COMMIT/PATH."""

    def answer(self) -> None:
        hub = self.hub
        found = re.fullmatch(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", self.path)
        if self.command == "HEAD" and hub.head_faults:
            return self.refuse(hub.head_faults.pop(0))
        if hub.readers == "none":
            return self.refuse(403, "GatedRepo")
        if found is None or found[1] != hub.repository:
            return self.refuse(401, "RepoNotFound")  # the Hub does not say what is private
        if hub.readers == "token" and self.headers.get("Authorization") != f"Bearer {TOKEN}":
            return self.refuse(401, "RepoNotFound")
        if found[2] != hub.commit:
            return self.refuse(404, "RevisionNotFound")
        if found[3] not in hub.files:
            return self.refuse(404, "EntryNotFound")
        body = hub.files[found[3]]
        headers = {"X-Repo-Commit": hub.commit, "Accept-Ranges": "bytes"}
        if len(body) < LARGE:
            blob = hashlib.sha1(b"blob %d\0" % len(body) + body).hexdigest()
            return self.content(body, {**headers, "ETag": f'"{blob}"'})
        digest = hashlib.sha256(body).hexdigest()
        linked = {"X-Linked-Etag": f'"{digest}"', "X-Linked-Size": str(len(body))}
        place = {"Location": f"{hub.content_url}/{digest}"}
        return self.send(302, b"", {**headers, **linked, **place})


class _Content(_Answers):
    """GET and HEAD /SHA256. A token that is sent here is one that is given away."""

    def answer(self) -> None:
        bodies = {hashlib.sha256(body).hexdigest(): body for body in self.hub.files.values()}
        body = bodies.get(self.path[1:])
        if body is None or "Authorization" in self.headers:
            return self.refuse(400)
        return self.content(body, {"ETag": f'"{hashlib.md5(body).hexdigest()}"'})


ROLES = (_Resolve, _Content)


def _handler(hub: Hub, role: type[_Answers]) -> type[_Answers]:
    return type(role.__name__, (role,), {"hub": hub})
