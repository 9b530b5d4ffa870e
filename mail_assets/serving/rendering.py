"""Templates: filled with documents only, everything in them escaped."""

import functools
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from mail_assets import __version__
from mail_assets.search.language.fields import write_field
from mail_assets.serving.urls import anchor, list_url, month_url, page_url, place_url, search_url

TEMPLATES = Path(__file__).with_name("templates")


def render(template: str, **values: Any) -> str:
    """Return a page of HTML."""
    return _environment().get_template(template).render(**values)


@functools.cache
def find_version() -> str:
    """Return what tells the pages of this version of the program from those of others."""
    digest = hashlib.sha256(__version__.encode())
    for path in sorted(TEMPLATES.iterdir()):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


@functools.cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
    )
    environment.globals |= {
        "anchor": anchor,
        "place_url": place_url,
        "sender": _sender,
        "message_url": functools.partial(page_url, "message"),
        "thread_url": functools.partial(page_url, "thread"),
        "similar_url": functools.partial(page_url, "similar"),
        "filter_url": _filter_url,
        "mid": _mid,
        "list_url": list_url,
        "month_url": month_url,
    }
    environment.filters["number"] = "{:,}".format
    return environment


def _sender(message: Mapping[str, str]) -> str:
    return message["from_name"] or message.get("from_email") or "unknown sender"


def _filter_url(**fields: str) -> str:
    """Return the address of a search for all that has some fields, in their order."""
    return search_url(" ".join(write_field(name, value) for name, value in fields.items()))


def _mid(message_id: str) -> str:
    """Return the URL that names a message wherever it is (RFC 2392)."""
    return f"mid:{quote(message_id, safe='@')}"
