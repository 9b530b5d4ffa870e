"""Chromium without a window, controlled by its DevTools protocol.

https://chromedevtools.github.io/devtools-protocol/
"""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium")
#: Events of a dialog, which attacking scripts open, and of an entry in the log, such as a refusal.
EXECUTED, REFUSED = "Page.javascriptDialogOpening", "Log.entryAdded"


class Chromium:
    """One page of a browser; messages are JSON ended by NUL, over two pipes."""

    def __init__(self, requests: int, responses: int) -> None:
        self._requests = requests
        self._responses = responses
        self._numbers = count(1)
        self._rest = b""
        self._session: dict[str, str] = {}
        self.events: list[dict[str, Any]] = []
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self._session = {"sessionId": session}
        for domain in ("Page", "Log", "Runtime"):
            self.ask(f"{domain}.enable")

    def visit(self, url: str) -> list[dict[str, Any]]:
        """Open a page and let its scripts run; return all events of the browser."""
        self.events = []
        self.ask("Page.navigate", url=url)
        while not any(event["method"] == "Page.loadEventFired" for event in self.events):
            self._note(self._read())
        later = "new Promise(resolve => setTimeout(resolve, 20))"
        self.ask("Runtime.evaluate", expression=later, awaitPromise=True)
        return self.events

    def ask(self, method: str, **params: object) -> Mapping[str, Any]:
        number = self._send(method, params)
        while (message := self._read()).get("id") != number:
            self._note(message)
        return message.get("result", {})  # type: ignore[no-any-return]

    def _send(self, method: str, params: Mapping[str, object]) -> int:
        number = next(self._numbers)
        request = {"id": number, "method": method, "params": params, **self._session}
        os.write(self._requests, json.dumps(request).encode() + b"\0")
        return number

    def _note(self, message: dict[str, Any]) -> None:
        if "method" in message:
            self.events.append(message)
            if message["method"] == EXECUTED:  # the page waits for an answer
                self._send("Page.handleJavaScriptDialog", {"accept": True})

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            data = os.read(self._responses, 1 << 16)
            assert data, "Chromium has ended"
            self._rest += data
        message, _, self._rest = self._rest.partition(b"\0")
        return json.loads(message)  # type: ignore[no-any-return]


@contextmanager
def browsing(folder: Path) -> Iterator[Chromium]:
    """Run a browser with its files in a folder, while the block runs."""
    from_us, requests = os.pipe()
    responses, to_us = os.pipe()
    command = [
        *("bash", "-c", f'exec "$@" 3<&{from_us} 4>&{to_us}', "bash", str(CHROMIUM)),
        *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"),
        *("--remote-debugging-pipe", f"--user-data-dir={folder}", "--no-first-run"),
    ]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, pass_fds=(from_us, to_us), **quiet) as process:  # type: ignore[call-overload]
        os.close(from_us)
        os.close(to_us)
        try:
            yield Chromium(requests, responses)
        finally:
            process.kill()
            os.close(requests)
            os.close(responses)
