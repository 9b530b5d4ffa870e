"""Tell this machine's own host names and addresses from others."""

from ipaddress import ip_address


def is_loopback(host: str) -> bool:
    """Say whether a host name or address is this machine's own: what it gets leaves no machine."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
