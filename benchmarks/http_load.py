"""A client for loads: requests over kept connections, as cheap as Python makes them.

No library: at some thousand requests a second it would take the processor that the server needs.
"""

import asyncio
import json
import time
from collections.abc import Sequence
from typing import NamedTuple


class Answer(NamedTuple):
    """An answer: when it was asked for, in seconds, how long it took, its status and body.

    The status is 0 where the connection broke.
    """

    path: str
    asked: float
    seconds: float
    status: int
    body: bytes


class Load(NamedTuple):
    """`paths`, asked in turn by `clients` at once, until `seconds` or `requests` are over."""

    paths: Sequence[str]
    clients: int
    seconds: float = float("inf")
    requests: int = 1 << 62


async def ask_in_turn(port: int, load: Load) -> list[Answer]:
    """Return all answers of a load, in the order of their ends."""
    answers: list[Answer] = []
    begun = time.monotonic()
    asked = 0

    async def ask_on() -> None:
        nonlocal asked
        connection: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        while asked < load.requests and time.monotonic() - begun < load.seconds:
            path = load.paths[asked % len(load.paths)]
            asked += 1
            at = time.monotonic()
            try:
                connection = connection or await asyncio.open_connection("127.0.0.1", port)
                status, body = await _ask(*connection, path)
            except (OSError, asyncio.IncompleteReadError, ValueError):
                connection, status, body = None, 0, b""
                await asyncio.sleep(0.05)
            answers.append(Answer(path, at - begun, time.monotonic() - at, status, body))
        if connection:
            connection[1].close()

    await asyncio.gather(*(ask_on() for _ in range(load.clients)))
    return answers


async def _ask(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, path: str
) -> tuple[int, bytes]:
    writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
    size = int(head.partition("content-length: ")[2].partition("\r\n")[0])
    return int(head.split(" ", 2)[1]), await reader.readexactly(size)


def quantile(answers: Sequence[Answer], share: float) -> float:
    """Return the milliseconds that a share of the answers did not take longer than."""
    ordered = sorted(answer.seconds for answer in answers)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] * 1000 if ordered else 0.0


def hit_ids(body: bytes) -> list[str]:
    """Return the ids that an answer has: those of its hits, or its own."""
    document = json.loads(body)
    if "hits" in document:
        return [hit["message_id"] for hit in document["hits"]]
    return [str(document.get("message_id") or document.get("thread_id"))]
