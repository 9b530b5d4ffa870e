"""Connections go to the checked address; received bytes extend their time limit."""

import httpcore
import httpx
import pytest

from mail_assets.http import transport
from mail_assets.http.reach import Reach, ReachError
from mail_assets.http.transport import GuardedTransport, proxy_for


class Clock:
    """A clock that only a test moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now


class Pieces(httpcore.NetworkStream):
    """A connection that brings pieces of a size, each after some seconds."""

    def __init__(self, clock: Clock, size: int, seconds: float) -> None:
        self.clock, self.size, self.seconds = clock, size, seconds

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        assert timeout is not None
        self.clock.now += min(self.seconds, timeout)
        if self.seconds > timeout:
            raise httpcore.ReadTimeout
        return bytes(self.size)

    def close(self) -> None:
        pass


@pytest.mark.parametrize(("size", "seconds", "at_most"), [
    pytest.param(1, 1.0, 61, id="a byte a second"),
    pytest.param(100, 1.0, 61, id="100 bytes a second"),
    pytest.param(1, 59.0, 61, id="a byte a minute"),
    pytest.param(0, 90.0, 60, id="silence"),
    pytest.param(9 << 10, 1.0, 6 * 3600, id="as fast as it must be"),
])  # fmt: skip
def test_connection_is_waited_for_as_its_bytes_earn(
    size: int, seconds: float, at_most: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    monkeypatch.setattr(transport, "time", clock)
    stream = transport._Stream(Pieces(clock, size, seconds), 60.0)

    def read_all() -> None:
        while True:
            stream.read(1 << 20, 60.0)

    with pytest.raises(httpcore.ReadTimeout):
        read_all()
    assert at_most - 1 <= clock.now <= at_most


def test_checked_address_is_the_one_connected_to(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    class Recorder(httpcore.SyncBackend):
        def connect_tcp(self, host: str, *_: object, **__: object) -> httpcore.NetworkStream:
            asked.append(host)
            raise httpcore.ConnectError("not here")

    monkeypatch.setattr(httpcore, "SyncBackend", Recorder)
    reach = Reach("http://lists.example.org/")
    monkeypatch.setattr(reach, "resolve", lambda *_: ["9.9.9.9", "2620:fe::fe"])
    client = httpx.Client(transport=GuardedTransport(reach, 1.0))
    with client, pytest.raises(httpx.ConnectError, match="not here"):
        client.get("http://lists.example.org/")
    assert asked == ["9.9.9.9", "2620:fe::fe"]


def test_address_out_of_reach_is_not_connected_to(monkeypatch: pytest.MonkeyPatch) -> None:
    reach = Reach("http://lists.example.org/", ["127.0.0.1:9"])
    client = httpx.Client(transport=GuardedTransport(reach, 1.0))
    with client, pytest.raises(ReachError, match=r"127\.0\.0\.1 has the address"):
        client.get("http://127.0.0.1:9/")


@pytest.mark.parametrize(("variables", "proxy"), [
    ({}, ""),
    ({"http_proxy": "http://proxy:3128"}, "http://proxy:3128"),
    ({"http_proxy": "proxy:3128"}, "http://proxy:3128"),
    ({"all_proxy": "http://proxy:3128"}, "http://proxy:3128"),
    ({"https_proxy": "http://proxy:3128"}, ""),
    ({"http_proxy": "http://proxy:3128", "no_proxy": "example.org"}, ""),
])  # fmt: skip
def test_proxy_of_the_environment_is_used(
    variables: dict[str, str], proxy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert proxy_for("http://lists.example.org/") == proxy
