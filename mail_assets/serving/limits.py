"""How much a client may ask, and how much runs at once, by what a request costs.

A token bucket for each client and class (https://en.wikipedia.org/wiki/Token_bucket): it holds the
requests of a minute and fills evenly. Used by one thread, that of the event loop.
"""

import math
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from mail_assets.serving.errors import ServingError

#: Clients that are remembered; whoever asked least recently is forgotten, with a full bucket.
MAX_CLIENTS = 10_000
#: What clients on this machine are identified by: IPv4, the /64 of ::1, a socket of a file.
HERE = frozenset({"127.0.0.1", "::/64", ""})


class Cost(StrEnum):
    """What a request costs: rows that are read, a search, hundreds of messages, an answer."""

    read = "read"
    search = "search"
    export = "export"
    answer = "answer"


class Allowance(NamedTuple):
    """Requests a minute of one client, 0 for any number; and those of all that run at once.

    `per_minute_here` is that of clients on this machine: whoever started the service, or a proxy
    that nobody named, behind which all clients would be one.
    """

    per_minute: int
    at_once: int
    per_minute_here: int = 0


#: A reader looks at a page a second for a while, and a program at ten.
DEFAULT_ALLOWANCES: Mapping[Cost, Allowance] = {
    Cost.read: Allowance(600, 64),
    Cost.search: Allowance(60, 32),
    Cost.export: Allowance(10, 4),
    Cost.answer: Allowance(6, 4),
}


class _Bucket(NamedTuple):
    tokens: float
    at: float


@dataclass
class Limits:
    """Admits requests, or says when to come again."""

    allowances: Mapping[Cost, Allowance] = field(default_factory=lambda: DEFAULT_ALLOWANCES)
    clock: Callable[[], float] = time.monotonic
    _buckets: OrderedDict[tuple[str, Cost], _Bucket] = field(default_factory=OrderedDict)
    _running: Counter[Cost] = field(default_factory=Counter)

    @contextmanager
    def admit(self, client: str, cost: Cost) -> Iterator[None]:
        """Let a request run.

        Raises:
            ServingError: the client has asked too much (429), or too much runs already (503).
        """
        if self._running[cost] >= self.allowances[cost].at_once:
            message = f"too many requests of this kind ({cost}) run at the moment"
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
        """Take a token out of a client's bucket; return 0, or the seconds until there is one."""
        capacity = self._capacity(client, cost)
        if not capacity:
            return 0
        key, now, rate = (client, cost), self.clock(), capacity / 60
        tokens, at = self._buckets.pop(key, _Bucket(capacity, now))
        tokens = min(capacity, tokens + (now - at) * rate)
        taken = tokens >= 1
        self._buckets[key] = _Bucket(tokens - taken, now)
        if len(self._buckets) > MAX_CLIENTS * len(Cost):
            self._buckets.popitem(last=False)
        return 0 if taken else math.ceil((1 - tokens) / rate)

    def _capacity(self, client: str, cost: Cost) -> int:
        """Return the requests a minute of a client."""
        allowance = self.allowances[cost]
        return allowance.per_minute_here if client in HERE else allowance.per_minute
