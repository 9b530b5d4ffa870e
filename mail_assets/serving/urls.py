"""The URLs of pages and of their data; each page has the same under `.json`."""

import hashlib
import re
from urllib.parse import quote, urlencode

#: What stands in a path as it is; browsers take "." and ".." for folders even where encoded.
SAFE = "@+-_~!$*,;=:"
#: How an id ends whose path would be that of another message's attachment.
_LIKE_ATTACHMENT = re.compile(r"(?:^|/)attachment/[^/]*\Z")


def page_url(page: str, id: str) -> str:
    """Return the URL of a message, thread or other page of an id."""
    if {"", ".", ".."} & {*id.split("/")} or _LIKE_ATTACHMENT.search(id):
        return f"/{page}?{urlencode({'id': id})}"
    return f"/{page}/{quote(id, safe=SAFE)}"


def anchor(message_id: str) -> str:
    """Return the name of a post within the page of its thread: short, and of plain letters."""
    return f"m{hashlib.sha256(message_id.encode()).hexdigest()[:16]}"


def place_url(message_id: str) -> str:
    """Return the URL of a message's place in its thread, which may have many pages."""
    return f"{page_url('thread', message_id)}#{anchor(message_id)}"


def attachment_url(message_id: str, number: int) -> str:
    """Return the URL of an attachment by its number, from 1."""
    path, mark, query = page_url("message", message_id).partition("?")
    return f"{path}/attachment/{number}{mark}{query}"


def list_url(name: str) -> str:
    """Return the URL of a list: its months."""
    return page_url("lists", name)


def month_url(name: str, month: str, first: int = 0) -> str:
    """Return the URL of the messages of a month, from a place on."""
    return f"/lists/{quote(name, safe=SAFE)}/{month}{f'?first={first}' if first else ''}"


def search_url(query: str, **parameters: object) -> str:
    """Return the URL of a search; parameters that are empty are left out."""
    given = {name: str(value) for name, value in parameters.items() if value}
    return f"/search?{urlencode({'q': query, **given})}"


def format_url(url: str, format: str) -> str:
    """Return the URL of a page in another format: "json", "atom", "mbox.gz"."""
    path, mark, query = url.partition("?")
    page, slash, rest = path.removeprefix("/").partition("/")
    return f"/{page}.{format}{slash}{rest}{mark}{query}"
