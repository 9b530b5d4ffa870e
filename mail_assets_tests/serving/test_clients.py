"""Clients are told apart by their address, and nobody chooses his own."""

from ipaddress import ip_network

import pytest

from mail_assets.web.limits import Clients

PROXIES = (ip_network("10.0.0.0/8"), ip_network("fd00::/8"))


def identify(peer: str, *forwarded: str, believed: bool = True) -> str:
    headers = [(b"x-forwarded-for", value.encode()) for value in forwarded]
    scope = {"type": "http", "client": (peer, 1) if peer else None, "headers": headers}
    return Clients(PROXIES if believed else ()).identify(scope)


@pytest.mark.parametrize(
    ("peer", "client"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::9", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", ""),
        ("testclient", "testclient"),
    ],
)
def test_a_client_is_an_address_or_a_network_of_a_subscriber(peer: str, client: str) -> None:
    assert identify(peer) == client


@pytest.mark.parametrize(
    ("peer", "forwarded", "client"),
    [
        ("10.0.0.1", ["192.0.2.7"], "192.0.2.7"),
        ("10.0.0.1", ["198.51.100.1, 192.0.2.7"], "192.0.2.7"),
        ("10.0.0.1", ["198.51.100.1", "192.0.2.7"], "192.0.2.7"),
        ("10.0.0.1", ["192.0.2.7, 10.0.0.2"], "192.0.2.7"),
        ("10.0.0.1", ["192.0.2.7, [fd00::1]"], "192.0.2.7"),
        ("10.0.0.1", ["2001:db8::1"], "2001:db8::/64"),
        ("10.0.0.1", ["192.0.2.7:49152"], "192.0.2.7"),
        ("10.0.0.1", ["192.0.2.7:49152, 10.0.0.2:443"], "192.0.2.7"),
        ("10.0.0.1", ["192.0.2.7, [fd00::1]:443"], "192.0.2.7"),
        ("10.0.0.1", ["[2001:db8::1]:49152"], "2001:db8::/64"),
        ("10.0.0.1", ["2001:db8:1:2:3:4:5:6"], "2001:db8:1:2::/64"),
        ("10.0.0.1", ["192.0.2.7:http"], "10.0.0.1"),
        ("10.0.0.1", [":443"], "10.0.0.1"),
        ("10.0.0.1", ["nobody"], "10.0.0.1"),
        ("10.0.0.1", ["192.0.2.7, nobody, 10.0.0.2"], "10.0.0.2"),
        ("10.0.0.1", [""], "10.0.0.1"),
        ("10.0.0.1", [], "10.0.0.1"),
        ("10.0.0.1", ["10.0.0.3, " * 40 + "10.0.0.2"], "10.0.0.3"),
        ("192.0.2.9", ["192.0.2.7"], "192.0.2.9"),
    ],
)
def test_a_proxy_that_is_believed_names_the_client(
    peer: str, forwarded: list[str], client: str
) -> None:
    assert identify(peer, *forwarded) == client


def test_nobody_is_believed_unless_named() -> None:
    assert identify("10.0.0.1", "192.0.2.7", believed=False) == "10.0.0.1"
