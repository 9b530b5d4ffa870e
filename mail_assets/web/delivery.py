"""Responses on their way: compressed bodies, pages that are kept until they change, fixed files.

A page is kept as it was sent, compressed, with the state that it was made from. Each request reads
the state again, which costs a few milliseconds; only a page whose state has changed is made again.

Compression may tell a secret of a page to who can add text to it and sees the length of what
travels (BREACH, https://breachattack.com). Pages here hold no secret: all that they show, everybody
may read.
"""

import gzip
import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import NamedTuple

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mail_assets.web.responses import DEFAULT_MAX_AGE, ServingError, allow_keeping, is_known

STATIC = Path(__file__).with_name("static")
#: Types of fixed files, by the end of their names.
STATIC_TYPES = {
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
    ".ico": "image/x-icon",
}
#: Seconds that a file may be kept whose address names its content: a year.
FOREVER = 365 * 24 * 3600
#: Bytes of a body that is worth compressing.
MIN_COMPRESSED = 800
#: zlib's level: the next ones take twice as long for a tenth less.
LEVEL = 4
#: Types of bodies that are compressed; mailboxes, pictures and events are not.
_TEXTS = ("text/html", "text/css", "text/plain", "text/javascript", "image/svg+xml")
_ENDS = ("json", "xml")
#: Bytes of all pages that are kept.
MAX_KEPT_BYTES = 32 << 20


def accepts_gzip(headers: Headers) -> bool:
    """Return whether the client takes gzip (RFC 9110, 12.5.3)."""
    weights: dict[str, float] = {}
    for one in ",".join(headers.getlist("accept-encoding")).split(","):
        name, _, parameter = one.partition(";")
        weight = parameter.strip().removeprefix("q=") or "1"
        try:
            weights[name.strip().lower()] = float(weight)
        except ValueError:
            weights[name.strip().lower()] = 0.0
    return weights.get("gzip", weights.get("*", 0.0)) > 0


def _is_text(media_type: str) -> bool:
    plain = media_type.partition(";")[0]
    return plain in _TEXTS or plain.endswith(_ENDS)


def compress(body: bytes) -> bytes:
    """Return a body in gzip, the same for the same body."""
    return gzip.compress(body, LEVEL, mtime=0)


class Compression:
    """ASGI middleware that compresses whole bodies of text, for clients that take gzip.

    What is sent in pieces passes unchanged: an answer comes word by word.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, its body compressed if that is worth it."""
        takes_gzip = scope["type"] == "http" and accepts_gzip(Headers(scope=scope))
        start: Message | None = None

        async def send_compressed(message: Message) -> None:
            nonlocal start
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                if not _is_text(headers.get("content-type", "")):
                    await send(message)
                    return
                headers.add_vary_header("Accept-Encoding")
                if "content-encoding" in headers or not takes_gzip:
                    await send(message)
                    return
                start = message
                return
            if start is not None:
                head, start = start, None
                body = message.get("body", b"")
                if len(body) >= MIN_COMPRESSED and not message.get("more_body"):
                    message = {**message, "body": compress(body)}
                    headers = MutableHeaders(scope=head)
                    headers["Content-Encoding"] = "gzip"
                    headers["Content-Length"] = str(len(message["body"]))
                await send(head)
            await send(message)

        await self.app(scope, receive, send_compressed)


def respond_packed(
    request: Request, packed: bytes, headers: dict[str, str], media_type: str
) -> Response:
    """Return a response with a compressed body, unpacked if the client does not take it."""
    if accepts_gzip(request.headers):
        return Response(
            packed, headers=headers | {"Content-Encoding": "gzip"}, media_type=media_type
        )
    return Response(gzip.decompress(packed), headers=headers, media_type=media_type)


class KeptPage(NamedTuple):
    """A page as it is sent: its entity tag, its compressed body, and the state it was made from."""

    tag: str
    packed: bytes
    state: object = None


@dataclass
class KeptPages:
    """The pages that were sent last, up to some bytes; the least recent one is dropped."""

    most: int = MAX_KEPT_BYTES
    _pages: OrderedDict[str, KeptPage] = field(default_factory=OrderedDict)
    _bytes: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _making: dict[str, tuple[threading.Lock, int]] = field(default_factory=dict)

    def find(self, key: str) -> KeptPage | None:
        """Return the page of a key."""
        with self._lock:
            if page := self._pages.get(key):
                self._pages.move_to_end(key)
            return page

    def keep(self, key: str, page: KeptPage) -> None:
        """Keep a page instead of the one that its key had."""
        with self._lock:
            if old := self._pages.pop(key, None):
                self._bytes -= _measure(key, old)
            self._pages[key] = page
            self._bytes += _measure(key, page)
            while self._bytes > self.most:
                self._bytes -= _measure(*self._pages.popitem(last=False))

    @contextmanager
    def making(self, key: str) -> Iterator[None]:
        """Wait until no other thread makes the page of a key: it then is kept."""
        with self._lock:
            lock, waiting = self._making.get(key, (threading.Lock(), 0))
            self._making[key] = lock, waiting + 1
        try:
            with lock:
                yield
        finally:
            with self._lock:
                lock, waiting = self._making.pop(key)
                if waiting > 1:
                    self._making[key] = lock, waiting - 1


def _measure(key: str, page: KeptPage) -> int:
    return len(page.packed) + len(key) + 1000  # an estimate of the rest


class StaticFile(NamedTuple):
    """A file of the program: its type, content, and a digest that its address names."""

    media_type: str
    data: bytes
    packed: bytes
    digest: str


@cache
def read_static() -> dict[str, StaticFile]:
    """Return the fixed files by name."""
    files = {}
    for path in sorted(STATIC.iterdir()):
        if media_type := STATIC_TYPES.get(path.suffix):
            data = path.read_bytes()
            digest = hashlib.sha256(data).hexdigest()[:16]
            files[path.name] = StaticFile(media_type, data, compress(data), digest)
    return files


def static_url(name: str) -> str:
    """Return the address of a fixed file; it changes with the file."""
    return f"/static/{read_static()[name].digest}/{name}"


def make_static_endpoint(path: str = "") -> Callable[[Request], Response]:
    """Return the endpoint of fixed files, or of the one of a path."""

    def answer(request: Request) -> Response:
        digest, _, name = (path or request.path_params["path"]).rpartition("/")
        found = read_static().get(name)
        if found is None or "/" in digest:
            raise ServingError(404, "not_found", "there is no such page")
        tag = f'W/"{found.digest}"'
        max_age = FOREVER if digest == found.digest else DEFAULT_MAX_AGE
        headers = allow_keeping(max_age, tag)
        if digest == found.digest:
            headers["Cache-Control"] += ", immutable"
        if is_known(request, tag):
            return Response(status_code=304, headers=headers)
        if not _is_text(found.media_type):
            return Response(found.data, headers=headers, media_type=found.media_type)
        return respond_packed(request, found.packed, headers, found.media_type)

    return answer
