"""Which hosts are this machine."""

import pytest

from mail_assets.http.requests import is_loopback


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "localhost"])
def test_loopback_addresses_and_localhost_are_this_machine(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["", "10.0.0.1", "localhost.example.org", "example.org", "::2"])
def test_everything_else_is_another(host: str) -> None:
    assert not is_loopback(host)
