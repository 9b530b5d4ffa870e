"""Limits on requests: refuses them by host, origin, size, client, and number at once.

Each client has a token bucket for each cost (https://en.wikipedia.org/wiki/Token_bucket). A bucket
holds the requests of one minute and fills evenly. Only the event loop's thread uses the buckets.

DNS rebinding (https://en.wikipedia.org/wiki/DNS_rebinding): another site can point its host name to
this machine, and its page can then read responses of a server here. The page cannot choose the
header Host, so every request must name this server in Host.

A page of another site can also make the server work by requests whose responses it cannot read.
Such requests name their site in Origin (https://fetch.spec.whatwg.org/#origin-header) or
Sec-Fetch-Site (https://www.w3.org/TR/fetch-metadata).
"""

import math
import re
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from enum import StrEnum
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import NamedTuple, TypeAlias
from urllib.parse import urlsplit

import anyio
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mail_assets.web.responses import ServingError

#: Most clients with buckets. The least recent client is dropped; it restarts with a full bucket.
MAX_CLIENTS = 10_000
#: Identities of clients on this machine: IPv4, the /64 of ::1, a Unix socket.
HERE = frozenset({"127.0.0.1", "::/64", ""})


class Cost(StrEnum):
    """The cost of a request: it reads rows, searches or compares, exports, or answers."""

    read = "read"
    search = "search"
    export = "export"
    answer = "answer"


class Asked(NamedTuple):
    """The parts of a request that decide its cost, besides its path."""

    method: str
    query: bytes = b""
    body: bytes = b""


#: The cost of the requests of a path, None if they are free, or a function that decides.
PathCost: TypeAlias = Cost | Callable[[Asked], Cost] | None
#: Costs by the first part of a path; other paths cost a read.
Costs: TypeAlias = Mapping[str, PathCost]


def find_cost(costs: Costs, path: str, asked: Asked) -> Cost | None:
    """Return the cost of a request, None if it is free."""
    cost = costs.get(path.removeprefix("/").partition("/")[0], Cost.read)
    return cost(asked) if callable(cost) else cost


class Allowance(NamedTuple):
    """Most requests per minute of one client (0: no limit), and most requests at once of all.

    `per_minute_here` is for clients on this machine: the operator, or a proxy without a setting,
    whose clients all look like one.
    """

    per_minute: int
    at_once: int
    per_minute_here: int = 0


#: A reader opens one page a second for a while, a program ten.
DEFAULT_ALLOWANCES: Mapping[Cost, Allowance] = {
    Cost.read: Allowance(600, 64),
    Cost.search: Allowance(60, 32),
    Cost.export: Allowance(10, 4),
    Cost.answer: Allowance(6, 4),
}


@dataclass
class Limits:
    """Admits requests, or refuses them with the time to wait."""

    allowances: Mapping[Cost, Allowance] = field(default_factory=lambda: DEFAULT_ALLOWANCES)
    clock: Callable[[], float] = time.monotonic
    #: Client and cost -> tokens in the bucket, and the time of that count.
    _buckets: OrderedDict[tuple[str, Cost], tuple[float, float]] = field(
        default_factory=OrderedDict
    )
    _running: Counter[Cost] = field(default_factory=Counter)

    @contextmanager
    def admit(self, client: str, cost: Cost) -> Iterator[None]:
        """Let a request run.

        Raises:
            ServingError: the client sent too many requests (429), or too many run (503).
        """
        if self._running[cost] >= self.allowances[cost].at_once:
            message = f"too many requests of this kind ({cost}) at the moment"
            raise ServingError(503, "overloaded", message, retry_after=1)
        if wait := self._take(client, cost):
            per_minute = self._capacity(client, cost)
            message = f"at most {per_minute} requests a minute of this kind ({cost})"
            raise ServingError(429, "too_many_requests", message, retry_after=wait)
        self._running[cost] += 1
        try:
            yield
        finally:
            self._running[cost] -= 1

    def _take(self, client: str, cost: Cost) -> int:
        """Take a token from a client's bucket; return 0, or the seconds until it has one."""
        capacity = self._capacity(client, cost)
        if not capacity:
            return 0
        key, now, rate = (client, cost), self.clock(), capacity / 60
        tokens, at = self._buckets.pop(key, (capacity, now))
        tokens = min(capacity, tokens + (now - at) * rate)
        taken = tokens >= 1
        self._buckets[key] = tokens - taken, now
        if len(self._buckets) > MAX_CLIENTS * len(Cost):
            self._buckets.popitem(last=False)
        return 0 if taken else math.ceil((1 - tokens) / rate)

    def _capacity(self, client: str, cost: Cost) -> int:
        allowance = self.allowances[cost]
        return allowance.per_minute_here if client in HERE else allowance.per_minute


Network: TypeAlias = IPv4Network | IPv6Network

#: Most proxies in a chain; addresses further left in the header may be forged.
MAX_PROXIES = 10
#: Prefix length of the network of one subscriber, who can use any address in it (RFC 6177).
IPV6_PREFIX = 64


@dataclass(frozen=True)
class Clients:
    """Identifies clients; trusts X-Forwarded-For only from `proxies`."""

    proxies: Collection[Network] = ()

    def identify(self, scope: Scope) -> str:
        """Return the IPv4 address or the IPv6 /64 of a request's client, "" for a Unix socket.

        Through proxies it is the last address in X-Forwarded-For that is not a proxy's.
        https://developer.mozilla.org/docs/Web/HTTP/Reference/Headers/X-Forwarded-For
        """
        peer = scope["client"][0] if scope.get("client") else ""
        client = _plain(peer)
        forwarded = ",".join(Headers(scope=scope).getlist("x-forwarded-for"))
        for address in reversed(forwarded.rsplit(",", MAX_PROXIES)):
            if not self.is_proxy(client) or not _plain(address):
                break
            client = _plain(address)
        return _group(client) or peer

    def is_proxy(self, address: str) -> bool:
        """Return whether an address is that of a known proxy."""
        plain = _plain(address)
        return bool(plain) and any(ip_address(plain) in network for network in self.proxies)


def _plain(address: str) -> str:
    """Return an address without port, brackets, zone and IPv4 mapping; "" if it is no address."""
    host, colon, port = address.strip().rpartition(":")
    has_port = port.isdigit() and (host.endswith("]") or ":" not in host)
    bracketed = host if has_port else f"{host}{colon}{port}"
    return plain_address(bracketed.strip("[]"))


def plain_address(text: str) -> str:
    """Return an address in its shortest spelling, without its zone; "" if the text is none."""
    try:
        found = ip_address(text.partition("%")[0])
    except ValueError:
        return ""
    mapped = found.ipv4_mapped if isinstance(found, IPv6Address) else None
    return str(mapped or found)


def _group(address: str) -> str:
    if ":" not in address:
        return address
    return str(ip_network((address, IPV6_PREFIX), strict=False))


#: Most bytes of a request body: a question, or the call of a tool.
MAX_BODY = 256 * 1024
#: Most seconds until a body has arrived.
BODY_SECONDS = 10


class Admission:
    """ASGI middleware that admits requests within limits."""

    def __init__(self, app: ASGIApp, limits: Limits, clients: Clients, costs: Costs) -> None:
        self._app, self._limits, self._clients, self._costs = app, limits, clients, costs

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request.

        Raises:
            ServingError: the request is too large or too slow, or beyond a limit.
        """
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        body = await _read_body(scope, receive)
        asked = Asked(scope["method"], scope["query_string"], body)
        cost = find_cost(self._costs, scope["path"], asked)
        client = self._clients.identify(scope)
        with self._limits.admit(client, cost) if cost else nullcontext():
            await self._app(scope, _replay(body, receive), send)


async def _read_body(scope: Scope, receive: Receive) -> bytes:
    if scope["method"] in ("GET", "HEAD", "OPTIONS"):
        return b""
    body = bytearray()
    _check_size(int(Headers(scope=scope).get("content-length", "0")))
    try:
        with anyio.fail_after(BODY_SECONDS):
            more = True
            while more:
                message = await receive()
                body += message.get("body", b"")
                _check_size(len(body))
                more = message.get("more_body", False)
    except TimeoutError:
        raise ServingError(408, "timeout", "the request did not arrive in time") from None
    return bytes(body)


def _check_size(size: int) -> None:
    if size > MAX_BODY:
        raise ServingError(413, "too_large", f"the request is too large; at most {MAX_BODY} bytes")


def _replay(body: bytes, receive: Receive) -> Receive:
    """Return a channel that delivers the body once, then the messages of `receive`."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_again() -> Message:
        return messages.pop() if messages else await receive()

    return receive_again


#: A name, an IPv4 address or an IPv6 address in brackets, and a port (RFC 3986, 3.2.2).
_AUTHORITY = re.compile(r"(?:\[([0-9a-f:.]+)\]|([\w.-]+))(?::(\d*))?", re.ASCII)
_SCHEMES = ("http://", "https://")
#: Methods that change nothing and cost nothing, unless find_cost returns a cost.
_READING = ("GET", "HEAD", "OPTIONS")


class Authority(NamedTuple):
    """A host in normal form, and its port, or "" without one."""

    host: str
    port: str = ""


class Hosts:
    """Host names that the server accepts: those of this machine, of its base URL, and others.

    A name with a port is accepted with that port only, because a proxy may have other servers at
    other ports. The IP address at which a request arrived is accepted too: rebinding needs a name.
    """

    def __init__(self, base_url: str, others: Iterable[str] = ()) -> None:
        named = [read_authority(name) for name in others]
        self._named = {one for one in named if one}
        if host := urlsplit(base_url).hostname:
            brackets = f"[{host}]" if ":" in host else host
            self._named |= {one for one in (read_authority(brackets),) if one}

    def knows(self, authority: str, arrived_at: str = "") -> bool:
        """Return whether a Host header names this server; `arrived_at` is the server's address."""
        found = read_authority(authority)
        if found is None:
            return False
        address = plain_address(found.host)
        is_local = found.host == "localhost" or (address and ip_address(address).is_loopback)
        if is_local or found.host == plain_address(arrived_at):
            return True
        return found in self._named or Authority(found.host) in self._named

    def knows_origin(self, origin: str) -> bool:
        """Return whether an Origin header names this server, or another server on this machine."""
        scheme = next((one for one in _SCHEMES if origin.lower().startswith(one)), None)
        return scheme is not None and self.knows(origin[len(scheme) :])


class HostCheck:
    """ASGI middleware that refuses requests for other hosts, and from pages of other sites."""

    def __init__(self, app: ASGIApp, hosts: Hosts, costs: Costs) -> None:
        self._app, self._hosts, self._costs = app, hosts, costs

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request.

        Raises:
            ServingError: it names no host or two (400), another host (421), or a page of another
                site sent it (403).
        """
        if scope["type"] == "http":
            headers = Headers(scope=scope)
            arrived_at = (scope.get("server") or ("",))[0]
            self._check_host(headers, arrived_at, scope["http_version"])
            method = scope["method"]
            cost = find_cost(self._costs, scope["path"], Asked(method, scope["query_string"]))
            if method not in _READING or cost in (Cost.search, Cost.export):
                self._check_origin(headers, method)
        await self._app(scope, receive, send)

    def _check_host(self, headers: Headers, arrived_at: str, version: str) -> None:
        given = headers.getlist("host")
        if not given and version == "1.0":  # health probes of proxies; browsers always send Host
            return
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
        if origins == ["null"]:  # a form on a page without referrer, or a sandboxed frame
            allowed = site == "same-origin"
        elif origins:
            allowed = len(origins) == 1 and self._hosts.knows_origin(origins[0])
        else:  # links of other sites may lead to a search
            follows = method == "GET" and headers.get("sec-fetch-mode") == "navigate"
            allowed = follows or site not in ("cross-site", "same-site")
        if not allowed:
            raise ServingError(403, "cross_site", "only pages of this site may ask for this")


def read_authority(text: str) -> Authority | None:
    """Return a host and port in normal form, or None if the text is neither.

    Names are in lower case, in ASCII (IDNA) and without the dot of the root.
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
