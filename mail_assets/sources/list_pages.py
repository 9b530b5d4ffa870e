"""The URLs of a list's page in HyperKitty and Pony Mail, and what follows from them."""

import re
from urllib.parse import quote, unquote, urlsplit

_HYPERKITTY = re.compile(
    r"(?P<root>/(?:[^/]{1,200}/){0,20})list/(?P<name>[^/@]{1,200}@[^/@]{1,200})/?"
)
_PONYMAIL = re.compile(r"(?P<list>[^@:&?=#/*]{1,200})@(?P<domain>[^@:&?=#/*]{1,200})")
_HYPERKITTY_EXAMPLE = "https://lists.example.org/archives/list/dev@example.org/"
_PONYMAIL_EXAMPLE = "https://lists.example.org/list.html?dev@project.example.org"


def hyperkitty_export(url: str) -> str:
    """Return the URL of a list's export, without the end of its file name.

    Raises:
        ValueError: `url` is not the page of a list.
    """
    parts = urlsplit(url)
    found = _HYPERKITTY.fullmatch(unquote(parts.path))
    if found is None or parts.query:
        raise ValueError(f"{url!r} is not the page of a list, such as {_HYPERKITTY_EXAMPLE}")
    name = quote(found["name"], safe="@")
    return f"{parts.scheme}://{parts.netloc}{quote(found['root'])}list/{name}/export/{name}"


def ponymail_api(url: str) -> tuple[str, dict[str, str]]:
    """Return the URL of the API, ending in a slash, and the parameters that name the list.

    Raises:
        ValueError: `url` names no list.
    """
    parts = urlsplit(url)
    found = _PONYMAIL.fullmatch(unquote(parts.query).partition(":")[0])
    if found is None:
        raise ValueError(f"{url!r} is not the page of a list, such as {_PONYMAIL_EXAMPLE}")
    folder = parts.path.rpartition("/")[0]
    return f"{parts.scheme}://{parts.netloc}{folder}/api/", found.groupdict()
