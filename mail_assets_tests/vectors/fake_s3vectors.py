"""A loopback server of the S3 Vectors API, as AWS and as Supabase speak it.

    with FakeS3Vectors("aws") as fake:                       # or "supabase"
        client = boto3.client("s3vectors", endpoint_url=fake.url, ...)

The flavours differ as the services do: error codes and statuses, limits, ARNs, refused fields,
zero vectors, wrong dimensions. Search is exact where the services approximate: never measure
recall with it. Tags, policies, index modes and full-text queries are not served.

Knobs: `faults` (of the next calls, one each), `trouble` (returns the fault of each call, see
`at_random`), `under_return` (the share of its matches that a filtered query returns, as approximate
indexes do), `token` (the expected bearer token), `max_indexes`.
Counters: `calls` by operation, `troubled` by kind of fault.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from typing import Literal

from mail_assets_tests.http.loopback import QuietHandler, listen
from mail_assets_tests.vectors.fake_rules import Flavour, Json
from mail_assets_tests.vectors.fake_service import FakeService


@dataclass(frozen=True)
class Fault:
    """Fault of one call.

    `kind`: "status" answers `status` and `code` instead of serving it, with `retry_after` as that
    header; "body" answers 200 and `body` instead of serving it, as a proxy may; "hang" is silent
    until the client gives up; "cut before" and "cut after" close the connection
    without an answer, before or after the call was carried out.
    """

    kind: Literal["status", "body", "hang", "cut before", "cut after"] = "status"
    status: int = 503
    code: str = "ServiceUnavailable"
    retry_after: str | None = None
    body: bytes = b""


def at_random(share: float, seed: int) -> Callable[[str], Fault | None]:
    """Return a `trouble` for a share of all calls, with equal parts of every kind of fault."""
    rng = random.Random(seed)
    kinds = (
        Fault(status=500, code="InternalServerException"),
        Fault(),
        Fault(retry_after="0"),
        Fault(status=429, code="SlowDown"),
        Fault(status=429, code="NeverHeardOf", retry_after="0"),
        Fault("hang"),
        Fault("cut before"),
        Fault("cut after"),
    )
    return lambda operation: rng.choice(kinds) if rng.random() < share else None


class FakeS3Vectors(FakeService):
    def __init__(self, flavour: Flavour, token: str = "") -> None:
        super().__init__(flavour, token)
        self.port = 0
        self._running = ExitStack()

    def reset(self) -> None:
        super().reset()
        self.faults: list[Fault] = []
        self.trouble: Callable[[str], Fault | None] = lambda operation: None
        self.calls: Counter[str] = Counter()
        self.troubled: Counter[str] = Counter()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> FakeS3Vectors:
        self.port = self._running.enter_context(listen(self._handler()))
        return self

    def __exit__(self, *error: object) -> None:
        self._running.close()

    def next_fault(self, path: str) -> Fault | None:
        """Count a call, and return its fault."""
        operation = path.removeprefix(f"{self.prefix}/")
        with self._lock:
            self.calls[operation] += 1
            fault = self.faults.pop(0) if self.faults else self.trouble(operation)
            if fault:
                self.troubled[fault.kind] += 1
            return fault

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        fake = self

        class Handler(QuietHandler, BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                fault = fake.next_fault(self.path)
                if fault is None:
                    self._send(*fake.answer(self.path, self.headers, body))
                elif fault.kind == "status":
                    message = {"message": "a fault was asked for"}
                    self._send(fault.status, message, fault.code, fault.retry_after)
                elif fault.kind == "body":
                    self._send_body(200, fault.body, {})
                else:
                    if fault.kind == "hang":
                        with suppress(ConnectionResetError):
                            self.connection.recv(1)  # ends when the client closes
                    elif fault.kind == "cut after":
                        fake.answer(self.path, self.headers, body)
                    self.close_connection = True

            def _send(
                self, status: int, answer: Json, code: str, retry_after: str | None = None
            ) -> None:
                if code and fake.flavour == "supabase":
                    answer = {"statusCode": str(status), "error": code, "code": code, **answer}
                # Success without a result has an empty body.
                data = json.dumps(answer).encode() if answer else b""
                fields = {} if retry_after is None else {"retry-after": retry_after}
                if code and fake.flavour == "aws":
                    fields["x-amzn-errortype"] = code
                self._send_body(status, data, fields)

            def _send_body(self, status: int, data: bytes, fields: dict[str, str]) -> None:
                self.send_response(status)
                self.send_header("content-length", str(len(data)))
                self.send_header("content-type", "application/json")
                for name, value in fields.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)

        return Handler
