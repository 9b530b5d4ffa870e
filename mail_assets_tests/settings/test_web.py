"""Limits and proxies of `serve`, read from the environment."""

from collections.abc import Callable
from ipaddress import ip_network

import pytest

from mail_assets.settings import settings
from mail_assets.settings.settings import read_hosts, read_limits, read_processes, read_proxies
from mail_assets.settings.values import SettingsError
from mail_assets.web.limits import DEFAULT_ALLOWANCES, Allowance, Cost


def test_limits_are_numbers_a_minute() -> None:
    assert read_limits({}) == DEFAULT_ALLOWANCES
    limits = read_limits({"MAIL_WEB_SEARCHES": "5", "MAIL_WEB_ANSWERS": "0"})
    assert limits[Cost.search] == Allowance(5, DEFAULT_ALLOWANCES[Cost.search].at_once, 5)
    assert limits[Cost.answer].per_minute == 0
    assert limits[Cost.read] == DEFAULT_ALLOWANCES[Cost.read]


@pytest.mark.parametrize(("cores", "processes"), [(1, 2), (2, 2), (3, 3), (64, 4)])
def test_processes_are_one_a_core_within_bounds(
    cores: int, processes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "count_physical_cores", lambda: cores)
    assert read_processes({}) == processes
    assert read_processes({"MAIL_WEB_PROCESSES": "0"}) == 0
    assert read_processes({"MAIL_WEB_PROCESSES": "9"}) == 9


def test_proxies_are_addresses_and_networks() -> None:
    assert read_proxies({}) == ()
    found = read_proxies({"MAIL_WEB_PROXIES": "127.0.0.1, 10.0.0.0/8,::1"})
    assert found == (ip_network("127.0.0.1/32"), ip_network("10.0.0.0/8"), ip_network("::1/128"))


@pytest.mark.parametrize(
    ("read", "name", "value"),
    [
        (read_limits, "MAIL_WEB_READS", "many"),
        (read_limits, "MAIL_WEB_SEARCHES", "-1"),
        (read_processes, "MAIL_WEB_PROCESSES", "all"),
        (read_processes, "MAIL_WEB_PROCESSES", "257"),
        (read_processes, "MAIL_WEB_PROCESSES", "9" * 5000),
        (read_proxies, "MAIL_WEB_PROXIES", "proxy.example.org"),
        (read_proxies, "MAIL_WEB_PROXIES", "10.0.0.1/8"),
        (read_hosts, "MAIL_WEB_HOSTS", "https://archive.example.org"),
    ],
)
def test_a_wrong_value_is_named(
    read: Callable[[dict[str, str]], object], name: str, value: str
) -> None:
    with pytest.raises(SettingsError, match=name):
        read({name: value})


def test_what_is_allowed_is_said_with_its_bounds() -> None:
    with pytest.raises(SettingsError, match="must be 0 to 256 processes; 0: searches run in"):
        read_processes({"MAIL_WEB_PROCESSES": "1000"})
    with pytest.raises(SettingsError, match="must be 0 to 99999 requests a minute; 0: any number"):
        read_limits({"MAIL_WEB_READS": "100000"})
