"""What `serve` is set with: who may call it, by which names, how often."""

import re
from collections.abc import Mapping
from ipaddress import ip_network

from mail_assets.encoding.local_encoder import count_physical_cores
from mail_assets.openai.variables import Environ
from mail_assets.serving.clients import Network
from mail_assets.serving.limits import DEFAULT_ALLOWANCES, Allowance, Cost
from mail_assets.settings.errors import SettingsError
from mail_assets.settings.numbers import read_number
from mail_assets.settings.variables import MAX_JOBS

#: Processes that search where MAIL_WEB_PROCESSES is not set: two at least, so that a slow search
#: does not keep all others waiting, and four at most, which take 0.2 to 0.3 GB each.
FEWEST_PROCESSES, MOST_PROCESSES = 2, 4

_HOST = re.compile(r"[A-Za-z0-9.-]+(?::\d{1,5})?", re.ASCII)
_LIMITS = {
    Cost.read: "MAIL_WEB_READS",
    Cost.search: "MAIL_WEB_SEARCHES",
    Cost.export: "MAIL_WEB_EXPORTS",
    Cost.answer: "MAIL_WEB_ANSWERS",
}


def read_hosts(env: Environ) -> tuple[str, ...]:
    """Return MAIL_WEB_HOSTS: names, with a port where it is not that of the scheme.

    Raises:
        SettingsError: one is a URL, or no name.
    """
    hosts = _split(env, "MAIL_WEB_HOSTS")
    if wrong := [name for name in hosts if not _HOST.fullmatch(name)]:
        raise SettingsError("MAIL_WEB_HOSTS", wrong[0], "must be names such as archive.example.org")
    return hosts


def read_proxies(env: Environ) -> tuple[Network, ...]:
    """Return MAIL_WEB_PROXIES: addresses and networks whose X-Forwarded-For is believed.

    Raises:
        SettingsError: one is no address and no network.
    """
    proxies = _split(env, "MAIL_WEB_PROXIES")
    try:
        return tuple(map(ip_network, proxies))
    except ValueError as error:
        rule = f"must be addresses or networks such as 127.0.0.1,10.0.0.0/8: {error}"
        raise SettingsError("MAIL_WEB_PROXIES", ",".join(proxies), rule) from None


def read_limits(env: Environ) -> Mapping[Cost, Allowance]:
    """Return how often a client may ask, by what it costs: requests a minute.

    What is set holds for clients on this machine too, the defaults do not.

    Raises:
        SettingsError: one is no number.
    """
    allowances = {**DEFAULT_ALLOWANCES}
    for cost, name in _LIMITS.items():
        if env.get(name):
            most = read_number(env, name, 0, "requests a minute; 0: any number")
            allowances[cost] = Allowance(most, DEFAULT_ALLOWANCES[cost].at_once, most)
    return allowances


def read_processes(env: Environ) -> int:
    """Return MAIL_WEB_PROCESSES: those that search; one a core, within bounds, if it is not set.

    0: searches run in threads of the server.

    Raises:
        SettingsError: it is no number.
    """
    default = max(FEWEST_PROCESSES, min(MOST_PROCESSES, count_physical_cores()))
    unit = "processes; 0: searches run in threads"
    return read_number(env, "MAIL_WEB_PROCESSES", default, unit, MAX_JOBS)


def _split(env: Environ, name: str) -> tuple[str, ...]:
    return tuple(one.strip() for one in env.get(name, "").split(",") if one.strip())
