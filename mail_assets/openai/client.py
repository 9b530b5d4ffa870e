"""Requests to an OpenAI-compatible server, tried again where that can help.

Tried again: no connection, a connection that breaks, and the statuses of _PASSING, after the
time that Retry-After asks for or a growing pause, until the request has waited for as long as
its caller has patience. Everything else fails at once with the server's own message. The key
stands in one header and nowhere else: not in an error, a log or a repr.
What does not live here: what is sent, what the answers and the errors (errors.py) mean.
"""

import json
import logging
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Self, TypeVar

import httpx

from mail_assets.http.headers import retry_after
from mail_assets.openai.errors import (
    NO_MONEY,
    TOO_LONG,
    EndpointError,
    PassingError,
    message_of,
)

logger = logging.getLogger(__name__)

USER_AGENT = "mail-assets"
CONNECT_TIMEOUT = 10.0  # seconds
#: Between two bytes, in seconds: a model on a laptop's processor takes minutes for a batch.
READ_TIMEOUT = 300.0
MAX_PAUSE = 60.0  # seconds, where the server names no time
MAX_MESSAGE = 400  # characters of what a server says

#: 408 and 529 (overloaded) are those of servers that say so; 500 is often a worker that died.
_PASSING = frozenset({408, 429, 500, 502, 503, 504, 529})

T = TypeVar("T")


@dataclass(frozen=True)
class Server:
    """Where a server is. `setting` is what its variables begin with, such as MAIL_ENCODER."""

    setting: str
    url: str
    key: str = field(default="", repr=False)


class Client:
    """Connections to one server; safe to share between threads.

    `pause(stopped, seconds)` waits for that long, or until `stopped` is set.
    """

    def __init__(
        self,
        server: Server,
        pause: Callable[[threading.Event, float], object] = threading.Event.wait,
    ) -> None:
        self._server = server
        self._pause = pause
        headers = {"User-Agent": USER_AGENT}
        if server.key:
            headers["Authorization"] = f"Bearer {server.key}"
        self._http = httpx.Client(
            headers=headers, timeout=httpx.Timeout(READ_TIMEOUT, connect=CONNECT_TIMEOUT)
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def post(
        self,
        path: str,
        body: Mapping[str, Any],
        patience: float,
        stopped: threading.Event | None = None,
    ) -> dict[str, Any]:
        """Return the JSON object that answers a request.

        It spends `patience` seconds in all on attempts that fail and on pauses between them, and
        pauses no longer when `stopped` is set.

        Raises:
            EndpointError: the server refuses, or is not there for longer than that.
        """

        def attempt() -> dict[str, Any]:
            with self._reaching(path):
                response = self._http.post(self._url(path), json=body)
            self._require_ok(path, response)
            return self._object(path, response.text)

        return self._persist(attempt, patience, stopped or threading.Event())

    @contextmanager
    def stream(
        self, path: str, body: Mapping[str, Any], patience: float
    ) -> Iterator[Iterator[bytes]]:
        """Give the bytes of an answer as they come; what fails after the first is not repeated.

        Raises:
            EndpointError: the server refuses, or breaks off.
        """

        def attempt() -> httpx.Response:
            request = self._http.build_request("POST", self._url(path), json=body)
            with self._reaching(path):
                response = self._http.send(request, stream=True)
            try:
                if response.status_code != 200:
                    with self._reaching(path):
                        response.read()
                self._require_ok(path, response)
            except EndpointError:
                response.close()
                raise
            return response

        response = self._persist(attempt, patience, threading.Event())
        try:
            yield self._received(path, response)
        finally:
            response.close()

    def error(self, path: str, fault: str, too_long: bool = False) -> EndpointError:
        """Return an error that names the request."""
        return EndpointError(self._say(path, fault), too_long)

    def quote(self, text: str, most: int = MAX_MESSAGE) -> str:
        """Return what a server said on one line, cut, and without the key."""
        key = self._server.key
        line = " ".join((text.replace(key, "***") if key else text).split())
        return line if len(line) <= most else f"{line[:most]}..."

    def _received(self, path: str, response: httpx.Response) -> Iterator[bytes]:
        with self._reaching(path):
            yield from response.iter_bytes()

    def _url(self, path: str) -> str:
        return f"{self._server.url}/{path}"

    def _say(self, path: str, fault: str) -> str:
        return f"{self._url(path)}: {fault}"

    @contextmanager
    def _reaching(self, path: str) -> Iterator[None]:
        """Turn what fails on the network into an error worth another attempt."""
        try:
            yield
        except httpx.HTTPError as error:
            fault = self.quote(f"{type(error).__name__}: {error}".removesuffix(": "))
            raise PassingError(self._say(path, fault)) from None  # the request holds the key

    def _require_ok(self, path: str, response: httpx.Response) -> None:
        status = response.status_code
        if status == 200:
            return
        said = self.quote(message_of(response.text) or response.reason_phrase)
        fault = f"HTTP {status}: {said}"
        too_long = bool(TOO_LONG.search(said))
        if status in _PASSING and not too_long and not NO_MONEY.search(response.text):
            raise PassingError(self._say(path, fault), retry_after(response.headers))
        remedy = self._remedy(status)
        raise self.error(path, f"{fault}; {remedy}" if remedy else fault, too_long)

    def _remedy(self, status: int) -> str:
        setting = self._server.setting
        if status in (401, 403):
            state = "is refused" if self._server.key else "is not set"
            return f"{setting}_KEY {state}: check it"
        if status == 404:
            return f"check {setting}_URL, which mostly ends in /v1, and the model's name"
        if 300 <= status < 400:
            return f"redirects are not followed, they could carry the key away: set {setting}_URL"
        return ""

    def _object(self, path: str, text: str) -> dict[str, Any]:
        try:
            answer = json.loads(text)
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict):
            raise self.error(
                path,
                f"answers no JSON object but {self.quote(text, 80)!r}; "
                f"check {self._server.setting}_URL",
            )
        return answer

    def _persist(self, attempt: Callable[[], T], patience: float, stopped: threading.Event) -> T:
        tries, waited = 1, 0.0
        while True:
            began = time.monotonic()
            try:
                return attempt()
            except PassingError as error:
                waited += time.monotonic() - began  # for a timeout, for one
                wait = min(2.0**tries / 2, MAX_PAUSE) * random.uniform(0.5, 1.0)
                if error.wait is not None:  # never before the time that was asked for
                    wait += error.wait
                times = "" if tries == 1 else f", {tries} times in {waited:.0f} s"
                if waited + wait > patience:
                    asks = "" if error.wait is None else f" (asks to wait {error.wait:.0f} s)"
                    raise EndpointError(f"{error}{times}{asks}; run again later") from None
                logger.warning("%s; trying again in %.1f s", error, wait)
                self._pause(stopped, wait)
                if stopped.is_set():
                    raise EndpointError(f"{error}{times}; stopped") from None
                tries, waited = tries + 1, waited + wait
