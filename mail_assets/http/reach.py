"""Decide which hosts and addresses a request may reach.

A server can redirect or link to other hosts, and the address of a host name can change at any time.
So each URL is checked, and each name is resolved once: the request connects to the address that was
checked. A public server cannot lead requests to a private network, to this machine or to its link,
such as the metadata service of a cloud at 169.254.169.254.
"""

import socket
from collections.abc import Collection, Iterator
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import NamedTuple
from urllib.parse import urlsplit

from mail_assets.errors import MailAssetsError

_PORTS = {"http": 80, "https": 443}
_NAT64 = ip_network("64:ff9b::/96")
#: Suffixes of names that are not in the public DNS (RFC 6761, 6762, 8375, and ICANN's .internal).
_LOCAL_NAMES = (".localhost", ".local", ".internal", ".test", ".lan", ".home.arpa")


class ReachError(MailAssetsError):
    """A request must not reach this URL or address.

    The message has no query string, which may contain secrets. `host` is the value that lists.toml
    would have to allow, "" if it cannot be allowed.
    """

    def __init__(self, message: str, host: str = "") -> None:
        super().__init__(message)
        self.host = host


class Place(NamedTuple):
    """Scheme, host and port of a URL; the host is in lower case, without a trailing dot."""

    scheme: str
    host: str
    port: int

    @property
    def shown(self) -> str:
        """The host, with the port if it is not the default, as in redirect_hosts."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"


def place_of(url: str) -> Place:
    """Parse an http(s) URL.

    Raises:
        ReachError: the URL is not http(s), is malformed, or has a user name.
    """
    try:
        parts = urlsplit(url)
        host, port = (parts.hostname or "").rstrip("."), parts.port
    except ValueError:
        raise ReachError("a redirect to a URL that cannot be read") from None
    if parts.scheme not in _PORTS or not host:
        raise ReachError(f"a redirect to {parts.scheme}://{host}, which is no web server")
    if "@" in parts.netloc or "\\" in url:
        raise ReachError(f"a redirect to {host} with a user name in it")
    return Place(parts.scheme, host, _PORTS[parts.scheme] if port is None else port)


class Reach:
    """Limits of the requests of one source.

    Requests may go to the source's host and to `hosts` ("host" or "host:port"). A host without a
    port is allowed on the default ports; the source's host also on the source's port.
    """

    def __init__(self, source: str, hosts: Collection[str] = ()) -> None:
        self._own = place_of(source)
        self._hosts = {host.lower().rstrip(".") for host in hosts}
        #: Whether the source has a public address; None before its first request.
        self._is_public: bool | None = None

    def allows(self, url: str, before: str) -> bool:
        """Return whether a link on the page `before` may be followed."""
        try:
            self.check(url, before)
        except ReachError:
            return False
        return True

    def check(self, url: str, before: str) -> None:
        """Check a URL to which the URL `before` redirects or links.

        Raises:
            ReachError: it is on a host or port that is not permitted, or not encrypted any more.
        """
        place, former = place_of(url), place_of(before)
        if place.scheme == "http" and "https" in (former.scheme, self._own.scheme):
            raise ReachError(f"a redirect from https to http://{place.shown}")
        usual = place.port in (*_PORTS.values(), self._own.port)
        if place.host == self._own.host and usual:
            return
        allowed = {place.shown, f"{place.shown}:{place.port}"}
        if place.host in self._hosts and place.port in _PORTS.values():
            return
        if not self._hosts & allowed:
            raise ReachError(f"a redirect to another server, {place.shown}", place.shown)

    def resolve(self, host: str, port: int) -> list[str]:
        """Return the permitted addresses of a host; if any is public, only the public ones.

        Raises:
            OSError: the name has no address.
            ReachError: none of its addresses is permitted.
        """
        host = host.lower().rstrip(".")
        found = dict.fromkeys(_addresses(host, port))
        public = [address for address in found if is_public(address)]
        is_own = host == self._own.host
        if public:
            self._is_public = True if is_own else self._is_public
            return public
        reason = ""
        if self._is_public or (not is_own and self._is_public is None):
            reason = "a public server must not lead to it"
        elif not is_own and any(is_link_local(address) for address in found):
            reason = "no redirect leads to it"
        elif is_own and not _is_named_so(host, found):
            reason = "write the address itself in the source's URL if that server is meant"
        if reason:
            shown = ", ".join(found)
            raise ReachError(f"{host} has the address {shown}, which is not public: {reason}")
        if is_own:
            self._is_public = False
        return [*found]


def _addresses(host: str, port: int) -> Iterator[str]:
    for *_, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        yield str(address[0])


def is_public(address: str) -> bool:
    """Return whether an address is public; an IPv4 address inside IPv6 is checked too."""
    found = _unwrapped(address)
    return found.is_global and not found.is_multicast


def is_link_local(address: str) -> bool:
    """Return whether an address is link-local, unspecified or multicast."""
    found = _unwrapped(address)
    return found.is_link_local or found.is_unspecified or found.is_multicast


def _unwrapped(address: str) -> IPv4Address | IPv6Address:
    """Return the IPv4 address inside an IPv6 address, else the address."""
    found = ip_address(address.partition("%")[0])
    if isinstance(found, IPv4Address):
        return found
    inner = found.ipv4_mapped or found.sixtofour or (found.teredo[1] if found.teredo else None)
    if inner is None and found in _NAT64:
        inner = IPv4Address(int(found) & 0xFFFFFFFF)
    if inner is None and int(found) >> 32 == 0 and int(found) > 1:  # ::10.0.0.1
        inner = IPv4Address(int(found))
    return found if inner is None else inner


def _is_named_so(host: str, addresses: Collection[str]) -> bool:
    """Return whether a host name may have addresses that are not public.

    Literal addresses and local names may. A name in the public DNS may have an address in a private
    network, but not one of this machine or its link.
    """
    try:
        ip_address(host.strip("[]").partition("%")[0])
    except ValueError:
        pass
    else:
        return True
    if any(is_link_local(address) for address in addresses):
        return False
    is_local = "." not in host or host.endswith(_LOCAL_NAMES)
    return is_local or not any(_unwrapped(address).is_loopback for address in addresses)
