"""Options of requests to archive servers."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class HttpOptions:
    """Passwords, limits and times of requests to archive servers.

    `auth` is "user:password" (or "") for every host but postgresql.org's, whose public
    anti-crawler pair is `postgresql_auth`. Times are in seconds; `delay` is the crawl delay
    between two requests to one host, None meaning 1 s for remote hosts and 0 for this machine.

    Raises:
        ValueError: for a malformed pair or a number out of range; shows no password.
    """

    auth: str = field(default="", repr=False)
    postgresql_auth: str = field(default="archives:antispam", repr=False)
    max_bytes: int = 4 << 30
    attempts: int = 5
    delay: float | None = None
    connect_timeout: float = 15.0
    read_timeout: float = 60.0  # between two pieces of a body; a big month takes long to render
    sleep: Callable[[float], None] = field(default=time.sleep, repr=False)

    def __post_init__(self) -> None:
        pairs = {"MAIL_HTTP_AUTH": self.auth, "the pair for postgresql.org": self.postgresql_auth}
        for name, pair in pairs.items():
            if pair and pair.find(":") < 1:
                raise ValueError(f"{name} must be written user:password")
        if self.attempts < 1 or self.max_bytes < 1:
            raise ValueError("HTTP attempts and max_bytes must be at least 1")
        pauses = (self.delay or 0.0, self.connect_timeout, self.read_timeout)
        if not all(math.isfinite(pause) and pause >= 0 for pause in pauses):
            raise ValueError("HTTP delays and timeouts must be finite and not negative")
