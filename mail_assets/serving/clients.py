"""Who asks: the address that a request comes from, as limits count it."""

from collections.abc import Collection
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TypeAlias

from starlette.datastructures import Headers
from starlette.types import Scope

Network: TypeAlias = IPv4Network | IPv6Network

#: Proxies in a row that are followed; what stands further left is anybody's word.
MAX_PROXIES = 10
#: One subscriber has a whole network of that size, and can use any address of it (RFC 6177).
IPV6_PREFIX = 64


@dataclass(frozen=True)
class Clients:
    """Names the clients; what `proxies` say in X-Forwarded-For is believed, of others nothing."""

    proxies: Collection[Network] = ()

    def identify(self, scope: Scope) -> str:
        """Return the IPv4 address or the /64 of a request's client, "" for a socket of a file.

        With proxies it is the last address in X-Forwarded-For that none of them has.
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
        """Say whether an address is that of a proxy which is believed."""
        plain = _plain(address)
        return bool(plain) and any(ip_address(plain) in network for network in self.proxies)


def _plain(address: str) -> str:
    """Return an address without port, brackets, zone and IPv6 around IPv4; "" where it is none."""
    host, colon, port = address.strip().rpartition(":")
    has_port = port.isdigit() and (host.endswith("]") or ":" not in host)
    bracketed = host if has_port else f"{host}{colon}{port}"
    try:
        found = ip_address(bracketed.strip("[]").partition("%")[0])
    except ValueError:
        return ""
    mapped = found.ipv4_mapped if isinstance(found, IPv6Address) else None
    return str(mapped or found)


def _group(address: str) -> str:
    if ":" not in address:
        return address
    return str(ip_network((address, IPV6_PREFIX), strict=False))
