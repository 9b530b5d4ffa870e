"""Refuse requests that pages of other sites send through a reader's browser.

A page of another site can give a name of its own the address of this machine, and then read what a
server here answers to that name (DNS rebinding, https://en.wikipedia.org/wiki/DNS_rebinding). It
cannot choose the field Host: so every request has to name this server. A page can also send a
request whose answer it cannot read, and make the server compute: such requests say where they come
from, in Origin (https://fetch.spec.whatwg.org/#origin-header) or in Sec-Fetch-Site
(https://www.w3.org/TR/fetch-metadata).
"""

import re
from collections.abc import Iterable
from ipaddress import ip_address
from typing import NamedTuple
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from mail_assets.web.limits import Cost, find_cost, plain_address
from mail_assets.web.responses import ServingError

#: A name, an IPv4 address or an IPv6 address in brackets, and a port (RFC 3986, 3.2.2).
_AUTHORITY = re.compile(r"(?:\[([0-9a-f:.]+)\]|([\w.-]+))(?::(\d*))?", re.ASCII)
_SCHEMES = ("http://", "https://")
#: Methods that change and compute nothing, unless find_cost says that they do.
_READING = ("GET", "HEAD", "OPTIONS")


class Authority(NamedTuple):
    """A host in its one spelling, and its port, "" where none is named."""

    host: str
    port: str = ""


class Hosts:
    """Names under which the server answers: those of this machine, of its base URL, and others.

    A name with a port stands for that port alone, because a proxy may have other servers at others.
    A request may also name the address at which it arrived, which no name of a page leads to.
    """

    def __init__(self, base_url: str, others: Iterable[str] = ()) -> None:
        named = [read_authority(name) for name in others]
        self._named = {one for one in named if one}
        if host := urlsplit(base_url).hostname:
            brackets = f"[{host}]" if ":" in host else host
            self._named |= {one for one in (read_authority(brackets),) if one}

    def knows(self, authority: str, arrived_at: str = "") -> bool:
        """Return whether a field Host names this server; `arrived_at` is its address."""
        found = read_authority(authority)
        if found is None:
            return False
        if _is_of_this_machine(found.host) or found.host == plain_address(arrived_at):
            return True
        return found in self._named or Authority(found.host) in self._named

    def knows_origin(self, origin: str) -> bool:
        """Return whether a field Origin names this server, or another one of this machine."""
        scheme = next((one for one in _SCHEMES if origin.lower().startswith(one)), None)
        return scheme is not None and self.knows(origin[len(scheme) :])


class HostCheck:
    """ASGI middleware that refuses requests to other names, and from pages of other sites."""

    def __init__(self, app: ASGIApp, hosts: Hosts) -> None:
        self._app, self._hosts = app, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request.

        Raises:
            ServingError: it names no host or two (400), another host (421), or a page of another
                site sent it (403).
        """
        if scope["type"] == "http":
            headers = Headers(scope=scope)
            self._check_host(headers, (scope.get("server") or ("",))[0])
            if _computes(scope):
                self._check_origin(headers, scope["method"])
        await self._app(scope, receive, send)

    def _check_host(self, headers: Headers, arrived_at: str) -> None:
        given = headers.getlist("host")
        if len(given) != 1:
            raise ServingError(400, "bad_request", "send one field Host")
        if not self._hosts.knows(given[0].strip(" \t"), arrived_at):
            raise ServingError(
                421,
                "wrong_host",
                "the server does not answer to this name; if it should, its operator adds the name "
                "to MAIL_WEB_HOSTS",
            )

    def _check_origin(self, headers: Headers, method: str) -> None:
        origins, site = headers.getlist("origin"), headers.get("sec-fetch-site", "")
        if origins == ["null"]:  # a form of a page that sends no referrer, or a sandboxed frame
            allowed = site == "same-origin"
        elif origins:
            allowed = len(origins) == 1 and self._hosts.knows_origin(origins[0])
        else:  # links of other sites may lead to a search
            follows = method == "GET" and headers.get("sec-fetch-mode") == "navigate"
            allowed = follows or site not in ("cross-site", "same-site")
        if not allowed:
            raise ServingError(403, "cross_site", "only pages of this site may ask for this")


def read_authority(text: str) -> Authority | None:
    """Return a host and port in one spelling, None if the text is neither.

    Names are in small letters, in their ASCII form and without the dot of the root.
    """
    if not text.isascii():
        try:
            text = text.encode("idna").decode()
        except UnicodeError:
            return None
    found = _AUTHORITY.fullmatch(text.lower())
    if found is None:
        return None
    bracketed, name, port = found.groups(default="")
    if bracketed:
        host = plain_address(bracketed) if ":" in bracketed else ""
    else:
        host = plain_address(name) or name.removesuffix(".")
    return Authority(host, port) if host else None


def _is_of_this_machine(host: str) -> bool:
    if host == "localhost":
        return True
    return bool(plain_address(host)) and ip_address(host).is_loopback


def _computes(scope: Scope) -> bool:
    method = scope["method"]
    cost = find_cost(method, scope["path"], b"", scope["query_string"])
    return method not in _READING or cost in (Cost.search, Cost.export)
