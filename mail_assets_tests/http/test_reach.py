"""Hosts and addresses that requests may reach: table by table, with names of a test's own."""

import socket
from typing import Any

import pytest

from mail_assets.http.reach import Reach, ReachError, is_public

HTTPS = "https://lists.example.org/dev/"
HTTP = "http://lists.example.org/dev/"


@pytest.mark.parametrize(("source", "url"), [
    (HTTPS, "https://lists.example.org/else/x.gz"),
    (HTTPS, "https://LISTS.example.org./x"),
    (HTTPS, "https://lists.example.org:443/x"),
    (HTTP, "https://lists.example.org/x"),
    (HTTP, "http://lists.example.org/x"),
    ("http://lists.example.org:8080/", "https://lists.example.org/x"),
    ("http://lists.example.org:8080/", "http://lists.example.org:8080/x"),
    ("http://10.0.0.5/", "http://10.0.0.5/x"),
    ("http://[::1]:8080/", "http://[::1]:8080/x"),
    (HTTPS, "https://files.example.org/x"),
    (HTTPS, "https://files.example.org:443/x"),
    (HTTPS, "https://odd.example.org:8443/x"),
])  # fmt: skip
def test_own_and_allowed_hosts_are_reached(source: str, url: str) -> None:
    Reach(source, ["Files.example.org", "odd.example.org:8443"]).check(url, source)


@pytest.mark.parametrize(("url", "reason"), [
    ("https://evil.example.net/x", "another server, evil.example.net"),
    ("https://example.org/x", "another server"),
    ("https://www.lists.example.org/x", "another server"),
    ("https://lists.example.org.evil.example/x", "another server"),
    ("https://evil.example/?lists.example.org", "another server, evil.example$"),
    ("https://lists.example.org@evil.example/x", "user name"),
    ("https://ann:secret@lists.example.org/x", "user name"),
    ("https://evil.example\\@lists.example.org/x", "user name|cannot be read"),
    ("https://lists.example.org:22/x", "another server, lists.example.org:22"),
    ("https://files.example.org:6379/x", "another server, files.example.org:6379"),
    ("https://odd.example.org/x", "another server, odd.example.org"),
    ("http://lists.example.org/x", "from https"),
    ("http://files.example.org/x", "from https"),
    ("https://127.0.0.1/", "another server, 127.0.0.1"),
    ("https://2130706433/", "another server, 2130706433"),
    ("https://0x7f000001/", "another server"),
    ("https://[::ffff:169.254.169.254]/", "another server"),
    ("https://localhost/", "another server, localhost"),
    ("ftp://lists.example.org/x", "no web server"),
    ("file:///etc/passwd", "no web server"),
    ("gopher://lists.example.org/", "no web server"),
    ("https://lists.example.org:port/", "cannot be read"),
    ("https:///x", "no web server"),
])  # fmt: skip
def test_other_places_are_refused_by_name(url: str, reason: str) -> None:
    reach = Reach(HTTPS, ["files.example.org", "odd.example.org:8443"])
    with pytest.raises(ReachError, match=reason) as refused:
        reach.check(url, HTTPS)
    assert "secret" not in str(refused.value)
    assert not reach.allows(url, HTTPS)


def test_chain_never_leaves_https() -> None:
    with pytest.raises(ReachError, match="from https to http://lists"):
        Reach(HTTP).check(f"{HTTP}x", HTTPS)


PRIVATE = {
    "0.0.0.0": "of no host",
    "10.0.0.5": "private",
    "100.64.0.1": "of a carrier",
    "127.0.0.1": "this machine",
    "127.1.2.3": "this machine",
    "169.254.169.254": "metadata of a cloud",
    "172.16.0.1": "private",
    "192.168.1.1": "private",
    "224.0.0.1": "multicast",
    "255.255.255.255": "broadcast",
    "::": "of no host",
    "::1": "this machine",
    "::ffff:10.0.0.5": "IPv4 in IPv6",
    "::ffff:169.254.169.254": "IPv4 in IPv6",
    "::10.0.0.5": "IPv4 in IPv6, as of old",
    "2002:a00:5::1": "6to4",
    "64:ff9b::a9fe:a9fe": "NAT64",
    "fc00::1": "private",
    "fe80::1%eth0": "of this link",
    "ff02::1": "multicast",
}


@pytest.mark.parametrize("address", PRIVATE)
def test_address_that_is_not_public_is_known(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize(
    "address", ["9.9.9.9", "2620:fe::fe", "::ffff:9.9.9.9", "64:ff9b::909:909"]
)
def test_address_that_is_public_is_known(address: str) -> None:
    assert is_public(address)


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """The names of a test and their addresses; numbers are left to the machine."""
    known: dict[str, list[str]] = {}
    resolve = socket.getaddrinfo

    def getaddrinfo(host: str, port: int, **others: Any) -> list[Any]:
        if host not in known:
            return list(resolve(host, port, flags=socket.AI_NUMERICHOST, **others))
        return [(0, 0, 0, "", (address, port)) for address in known[host]]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return known


@pytest.mark.parametrize("address", PRIVATE)
def test_public_server_leads_to_no_private_address(
    address: str, names: dict[str, list[str]]
) -> None:
    names |= {"lists.example.org": ["9.9.9.9"], "files.example.org": [address]}
    reach = Reach(HTTPS, ["files.example.org"])
    assert reach.resolve("lists.example.org", 443) == ["9.9.9.9"]
    with pytest.raises(ReachError, match=r"files\.example\.org has the address .*not public"):
        reach.resolve("files.example.org", 443)


@pytest.mark.parametrize("address", PRIVATE)
def test_name_that_turns_private_is_refused(address: str, names: dict[str, list[str]]) -> None:
    names["lists.example.org"] = ["9.9.9.9"]
    reach = Reach(HTTPS)
    reach.resolve("lists.example.org", 443)
    names["lists.example.org"] = [address]
    with pytest.raises(ReachError, match="a public server must not lead to it"):
        reach.resolve("lists.example.org", 443)


def test_private_addresses_beside_public_ones_are_not_used(names: dict[str, list[str]]) -> None:
    names["lists.example.org"] = ["127.0.0.1", "9.9.9.9", "::1"]
    assert Reach(HTTPS).resolve("lists.example.org", 443) == ["9.9.9.9"]


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("lists.example.org", "10.0.0.5"),  # a name of the public DNS for a private network
        ("lists.example.org", "fc00::5"),
        ("archive.internal", "127.0.0.1"),
        ("localhost", "127.0.0.1"),
        ("127.0.0.1", "127.0.0.1"),
        ("2130706433", "127.0.0.1"),
        ("::1", "::1"),
        ("169.254.10.10", "169.254.10.10"),
    ],
)
def test_private_source_is_reached(host: str, address: str, names: dict[str, list[str]]) -> None:
    names[host] = [address]
    shown = f"[{host}]" if ":" in host else host
    reach = Reach(f"http://{shown}/")
    assert reach.resolve(host, 80) == [address]
    assert reach.resolve(host, 80) == [address]


@pytest.mark.parametrize(("host", "address"), [
    ("lists.example.org", "127.0.0.1"),
    ("lists.example.org", "::1"),
    ("lists.example.org", "::ffff:127.0.0.1"),
    ("lists.example.org", "169.254.169.254"),
    ("lists.example.org", "0.0.0.0"),
    ("archive", "169.254.169.254"),
])  # fmt: skip
def test_name_of_this_machine_or_link_is_refused(
    host: str, address: str, names: dict[str, list[str]]
) -> None:
    names[host] = [address]
    with pytest.raises(ReachError, match="write the address itself"):
        Reach(f"http://{host}/").resolve(host, 80)


def test_private_server_leads_to_allowed_private_hosts(names: dict[str, list[str]]) -> None:
    names |= {"a.internal": ["10.0.0.5"], "b.internal": ["10.0.0.6"], "c": ["169.254.169.254"]}
    reach = Reach("http://a.internal/", ["b.internal", "c"])
    reach.resolve("a.internal", 80)
    assert reach.resolve("b.internal", 80) == ["10.0.0.6"]
    with pytest.raises(ReachError, match="no redirect leads to it"):
        reach.resolve("c", 80)
