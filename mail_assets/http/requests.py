"""Helpers for HTTP requests: retries, header fields, loopback hosts, webhooks.

Requests to archive servers, model servers and vector buckets share one set of retry rules. tenacity
is not used: botocore runs its own loop and asks only for the next wait, and tenacity has neither
Retry-After nor a retry budget.
"""

import json
import logging
import math
import random
import re
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http.client import HTTPException
from ipaddress import ip_address
from typing import TypeVar
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from mail_assets.errors import MailAssetsError

logger = logging.getLogger(__name__)

T = TypeVar("T")

#: Statuses of 500 and above that are not transient: not implemented, HTTP version not supported,
#: and configuration errors (RFC 2295, 5842, 2774 and 6585).
_PERMANENT = frozenset({501, 505, 506, 508, 510, 511})


def is_transient(status: int) -> bool:
    """Return whether the same request may succeed later, after a timeout, limit or outage."""
    return status in (408, 429) or (status >= 500 and status not in _PERMANENT)


class TransientError(MailAssetsError):
    """A failed attempt; another may succeed. The message must not contain credentials.

    `retry_after`: the seconds that the server asks to wait, None if it does not say.
    """

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class GivenUpError(MailAssetsError):
    """All attempts failed; the message is that of the last TransientError.

    `seconds`: total time of the attempts and the waits between them. `stopped`: a wait was
    interrupted.
    """

    def __init__(
        self, last: TransientError, attempts: int, seconds: float, stopped: bool = False
    ) -> None:
        super().__init__(str(last))
        self.retry_after = last.retry_after
        self.attempts = attempts
        self.seconds = seconds
        self.stopped = stopped


@dataclass(frozen=True, kw_only=True)
class RetryPolicy:
    """Rules for retrying a request; all times are in seconds.

    The n-th wait is `first_wait` * 2**(n-1), at most `longest_wait`, less a random share of up to
    `jitter` of it, so that clients that failed together do not retry together:
    https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/
    With `exact_retry_after` the time of Retry-After is the wait; without, it is added to the wait.

    A caller gives up after `attempts` in total, if the next wait would end after `patience`, or if
    the server asks for more than `longest_retry_after`.
    """

    first_wait: float
    longest_wait: float
    jitter: float
    attempts: float = math.inf
    patience: float = math.inf
    longest_retry_after: float = math.inf
    exact_retry_after: bool = False

    def next_wait(
        self, attempts: int, retry_after: float | None = None, seconds: float = 0.0
    ) -> float | None:
        """Return the wait after `attempts` failed in `seconds` in total; None to give up.

        `retry_after`: the wait that the last answer asked for.
        """
        if attempts >= self.attempts or (retry_after or 0.0) > self.longest_retry_after:
            return None
        backoff = min(self.longest_wait, self.first_wait * 2.0 ** (attempts - 1))
        wait = backoff * random.uniform(1 - self.jitter, 1)
        if retry_after is not None:
            wait = retry_after + (0.0 if self.exact_retry_after else wait)
        return None if seconds + wait > self.patience else wait


class RetryBudget:
    """Budget of retries of this process, for all requests to a service together.

    It protects a service that is down from many retries: a retry takes COST, an answered request
    gives 1 back. (The numbers are those of the AWS SDKs' standard mode.)
    """

    CAPACITY, COST = 500, 5

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._left = self.CAPACITY

    def take(self) -> bool:
        """Take one retry; return False if none is left."""
        with self._lock:
            if self._left < self.COST:
                return False
            self._left -= self.COST
            return True

    def refill(self) -> None:
        """Give 1 back for an answered request."""
        with self._lock:
            self._left = min(self.CAPACITY, self._left + 1)


def call_with_retries(
    attempt: Callable[[], T],
    policy: RetryPolicy,
    pause: Callable[[float], object] = time.sleep,
) -> T:
    """Return the result of `attempt`; call it again after each TransientError.

    `pause` waits for some seconds, and returns true if the caller no longer wants an answer.

    Raises:
        GivenUpError: the policy allows no further attempt, or a pause was interrupted.
    """
    attempts, seconds = 0, 0.0
    while True:
        began = time.monotonic()
        try:
            return attempt()
        except TransientError as error:
            attempts += 1
            seconds += time.monotonic() - began
            wait = policy.next_wait(attempts, error.retry_after, seconds)
            if wait is None:
                raise GivenUpError(error, attempts, seconds) from error
            logger.warning("%s; trying again in %.1f s", error, wait)
            if pause(wait):
                raise GivenUpError(error, attempts, seconds, stopped=True) from error
            seconds += wait


_ETAG = re.compile(r'(?:W/)?"[\x21\x23-\x7e]*"')  # RFC 9110, 8.8.3, without its obsolete bytes


def file_version(headers: Mapping[str, str]) -> str:
    """Return the ETag, else Last-Modified, as sent; "" if there is neither."""
    etag = headers.get("ETag", "").strip()
    return etag if _ETAG.fullmatch(etag) else headers.get("Last-Modified", "").strip()


def conditional_headers(version: str) -> dict[str, str]:
    """Return the header fields that avoid a download if the file still has this version."""
    if _ETAG.fullmatch(version):
        return {"If-None-Match": version}
    return {} if _parse_date(version) is None else {"If-Modified-Since": version}


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that the server asks to wait (RFC 9110, 10.2.3: a number or a date)."""
    value = headers.get("Retry-After", "").strip()
    if value.isascii() and value.isdigit():
        return float(value)
    date = _parse_date(value)
    return None if date is None else max(0.0, (date - datetime.now(UTC)).total_seconds())


def _parse_date(text: str) -> datetime | None:
    try:
        date = parsedate_to_datetime(text)
    except (ValueError, OverflowError):  # OverflowError: a very large year
        return None
    return date if date.tzinfo else date.replace(tzinfo=UTC)


def is_loopback(host: str) -> bool:
    """Return whether a host name or address is this machine's own."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


TIMEOUT = 10.0  # seconds
MAX_ANSWER = 200  # characters of a server's answer in an error


class WebhookError(MailAssetsError):
    """A webhook did not accept a message; the error names the cause but not the URL."""


def check_webhook(url: str) -> None:
    """Raise ValueError with a short reason if a URL cannot be a webhook; open nothing."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        raise ValueError("must be a URL such as https://hooks.slack.com/services/...") from None
    secure = parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host))
    if not host or not secure or not url.isascii() or not url.isprintable() or " " in url:
        raise ValueError("must be an https:// URL; http:// only for this machine")


def escape(text: str) -> str:
    """Escape for Slack: https://docs.slack.dev/messaging/formatting-message-text#escaping"""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def post_message(url: str, text: str) -> None:
    """Post a text in Slack's markup.

    Raises:
        WebhookError: the server refuses it, or does not answer.
    """
    request = Request(
        url,
        data=json.dumps({"text": text}).encode(),
        headers={"Content-Type": "application/json", "User-Agent": "mail-assets"},
        method="POST",
    )
    try:
        with build_opener(_NoRedirect).open(request, timeout=TIMEOUT):
            return
    except HTTPError as error:
        fault = f"HTTP {error.code}: {_first_line(error) or error.reason}"
    except (OSError, HTTPException) as error:
        fault = f"no answer: {getattr(error, 'reason', error)}"
    raise WebhookError(fault.replace(url, "***"))


class _NoRedirect(HTTPRedirectHandler):
    """Treat a redirect as an error: it would turn the request into a GET without the message."""

    def redirect_request(self, *_: object) -> None:
        """Do not follow redirects."""


def _first_line(error: HTTPError) -> str:
    with error:
        try:
            answer = error.read(4 * MAX_ANSWER).decode("utf-8", "replace")
        except (OSError, HTTPException):  # the answer broke off
            return ""
    return " ".join(answer.split())[:MAX_ANSWER]
