"""Readers of responses: decoded as by a harvester, as mailboxes, as feeds, and of tools."""

import base64
import binascii
import gzip
import html
import re
import subprocess
import unicodedata
from collections.abc import Callable, Iterator
from email import message_from_bytes
from email.message import Message
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote
from xml.etree import ElementTree

import httpx

from mail_assets_tests.web.conftest import BASE_URL

ATOM = "{http://www.w3.org/2005/Atom}"

_TAGS = re.compile(r"<[^<>]*>")
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u2060\ufeff]")
_ESCAPED = re.compile(r"\\u([0-9a-fA-F]{4})")
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{12,}={0,2}")


class Page(HTMLParser):
    """The tags, names of attributes, links and texts of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.links: list[str] = []
        self.texts: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}
        self.links += [value or "" for name, value in attrs if name in ("href", "src", "action")]

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def ask_tool(client: httpx.Client, name: str, **arguments: object) -> httpx.Response:
    """Call a tool of the Model Context Protocol."""
    headers = {"accept": "application/json, text/event-stream"}
    params = {"name": name, "arguments": arguments}
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    return client.post("/mcp", json=request, headers=headers)


def find_hits(text: str) -> list[str]:
    """Return the ids of the hits in a tool's text, in conversations or single."""
    return re.findall(r"^(?:\[\d+\] )?message ([^\s,]+)", text, re.MULTILINE)


def read_response(response: httpx.Response) -> str:
    """Return the body and the header fields of a response as text."""
    body = response.content
    if response.headers.get("content-type", "").startswith("application/gzip"):
        body = gzip.decompress(body)
    fields = "\n".join(f"{name}: {value}" for name, value in response.headers.items())
    return f"{fields}\n\n{body.decode('utf-8', 'replace')}"


def readings(text: str) -> Iterator[str]:
    """Yield a text in lower case: as it is, and decoded in all common ways."""
    plain = html.unescape(text)
    unescaped = _ESCAPED.sub(lambda match: chr(int(match[1], 16)), plain)
    bare = (_TAGS.sub("", one) for one in (text, plain))
    forms = {text, plain, unquote(plain), unescaped, *bare}
    forms |= {unicodedata.normalize("NFKC", _INVISIBLE.sub("", one)) for one in forms}
    yield from (one.lower() for one in forms)
    for token in {*_BASE64.findall(text)}:
        padded = token.rstrip("=") + "=" * (-len(token.rstrip("=")) % 4)
        try:
            yield base64.urlsafe_b64decode(padded.replace("+", "-").replace("/", "_")).decode()
        except (binascii.Error, UnicodeDecodeError):
            continue


def find_links(text: str, prefix: str = "") -> Iterator[str]:
    """Yield the paths within the site that a page, a feed or JSON links."""
    for value in re.findall(r'(?:href|src|action|url|next|previous)"?[=:]\s*"([^"]*)"', text):
        path = html.unescape(value).removeprefix(prefix)
        if path.startswith("/") and not path.startswith("//"):
            yield path.partition("#")[0]


def split_mailbox(packed: bytes, folder: Path) -> list[Message]:
    """Return the messages of a compressed mailbox, split by `git mailsplit`."""
    (folder / "mbox").write_bytes(gzip.decompress(packed))
    split = folder / "split"
    split.mkdir()
    command = ["git", "mailsplit", "--mboxrd", f"-o{split}", str(folder / "mbox")]
    subprocess.run(command, check=True, capture_output=True)
    return [message_from_bytes(path.read_bytes()) for path in sorted(split.iterdir())]


def follow_feed(get: Callable[[str], httpx.Response], url: str) -> Iterator[str]:
    """Yield the ids of the entries of a feed, from page to page."""
    following = url
    while following:
        feed = ElementTree.fromstring(get(following).content)
        yield from (one.findtext(f"{ATOM}id") or "" for one in feed.iter(f"{ATOM}entry"))
        links = {one.get("rel"): one.get("href") or "" for one in feed.findall(f"{ATOM}link")}
        assert links["self"] == f"{BASE_URL}{following}"
        following = links.get("next", "").removeprefix(BASE_URL)
