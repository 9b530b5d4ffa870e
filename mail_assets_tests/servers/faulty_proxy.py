"""A proxy that disturbs connections: resets, silence, slow and cut answers, "503 Slow Down".

The seed and the number of a connection decide how and after how many bytes it is disturbed.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import socket
import struct
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import NamedTuple, TypeVar

from mail_assets.store.objects import StoreError
from mail_assets.vectors.index import VectorError
from mail_assets.words.index import WordsError

T = TypeVar("T")

#: Kinds of faults.
RESET, CUT, SLOW, BUSY = "reset", "cut", "slow", "busy"
ALL = (RESET, CUT, SLOW, BUSY)

#: Bytes after which a connection is disturbed, at most; mostly few, so that short ones are too.
LATEST = 200_000

PIECE, PAUSE = 2_048, 0.005  # a slow answer: 400 kB a second

_SLOW_DOWN = (
    b"<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"
)
BUSY_ANSWER = (
    b"HTTP/1.1 503 Slow Down\r\nContent-Type: application/xml\r\nConnection: close\r\n"
    b"Content-Length: %d\r\n\r\n%s" % (len(_SLOW_DOWN), _SLOW_DOWN)
)

Reader = asyncio.StreamReader
Writer = asyncio.StreamWriter


class Fault(NamedTuple):
    """Fault of a connection after some bytes in one direction."""

    kind: str
    after: int


@dataclass(frozen=True)
class Trouble:
    """Disturbs a share of the connections, each after a limited number of bytes."""

    share: float = 0.0
    kinds: Sequence[str] = ALL
    seed: int = 1
    latest: int = LATEST

    def choose(self, number: int) -> Fault | None:
        """Return what happens to a connection; the same for the same seed and number."""
        chance = random.Random(f"{self.seed} {number}")
        if chance.random() >= self.share:
            return None
        return Fault(chance.choice(self.kinds), int(self.latest ** chance.random()))


class FaultyProxy:
    """Listens on a port of the loopback, and connects to a port there or to a Unix socket.

    `trouble` may be changed at any time; `happened` counts the faults.
    """

    def __init__(self, target: int | Path) -> None:
        self.trouble = Trouble()
        self.happened: Counter[str] = Counter()
        self.port = 0
        self._target = target
        self._numbers = count()
        self._open: set[Writer] = set()
        self._loop = asyncio.new_event_loop()
        self._flowing, self._ending = asyncio.Event(), asyncio.Event()

    @contextlib.contextmanager
    def run(self) -> Iterator[FaultyProxy]:
        listening = threading.Event()
        thread = threading.Thread(
            target=self._loop.run_until_complete, args=(self._listen(listening),)
        )
        thread.start()
        listening.wait()
        try:
            yield self
        finally:
            self._loop.call_soon_threadsafe(self._ending.set)
            thread.join()
            self._loop.close()

    def reset_connections(self) -> None:
        asyncio.run_coroutine_threadsafe(self._reset_all(), self._loop).result()

    def pause(self) -> None:
        """Stop forwarding; connections stay open."""
        self._loop.call_soon_threadsafe(self._flowing.clear)

    def resume(self) -> None:
        self._loop.call_soon_threadsafe(self._flowing.set)

    async def _listen(self, listening: threading.Event) -> None:
        self._flowing.set()
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        listening.set()
        await self._ending.wait()
        server.close()
        self._flowing.set()
        while others := asyncio.all_tasks() - {asyncio.current_task()}:
            await self._reset_all()
            await asyncio.wait(others, timeout=1)

    async def _reset_all(self) -> None:
        reset(self._open)

    async def _serve(self, reader: Reader, writer: Writer) -> None:
        fault = self.trouble.choose(next(self._numbers))
        ends = [writer]
        self._open.add(writer)
        try:
            if fault and fault.kind == BUSY:
                await self._answer_busy(reader, writer)
            else:
                from_server, to_server = await self._connect()
                ends.append(to_server)
                self._open.add(to_server)
                upwards = fault if fault and fault.kind == RESET else None
                await asyncio.gather(
                    self._pass(reader, to_server, upwards, ends),
                    self._pass(from_server, writer, fault, ends),
                )
        except OSError:  # nobody listens at the target, or the client has gone
            reset(ends)
        finally:
            self._open.difference_update(ends)
            for end in ends:
                end.close()

    async def _connect(self) -> tuple[Reader, Writer]:
        if isinstance(self._target, Path):
            return await asyncio.open_unix_connection(str(self._target))
        return await asyncio.open_connection("127.0.0.1", self._target)

    async def _answer_busy(self, reader: Reader, writer: Writer) -> None:
        self.happened[BUSY] += 1
        with contextlib.suppress(asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            await reader.readuntil(b"\r\n\r\n")
        writer.write(BUSY_ANSWER)
        await writer.drain()
        writer.write_eof()
        await read_to_end(reader)

    async def _pass(
        self, reader: Reader, writer: Writer, fault: Fault | None, ends: Sequence[Writer]
    ) -> None:
        """Pass on what comes until its end, or until the fault; an error is for both ends."""
        passed = 0
        try:
            while data := await reader.read(PIECE if fault else 1 << 16):
                await self._flowing.wait()
                if fault and passed + len(data) > fault.after:
                    self.happened[fault.kind] += passed <= fault.after
                    if fault.kind == SLOW:
                        await asyncio.sleep(PAUSE)
                    else:
                        writer.write(data[: fault.after - passed])
                        break
                passed += len(data)
                writer.write(data)
                await writer.drain()
            if fault and fault.kind == RESET and data:
                reset(ends)
                return
            writer.write_eof()
            await read_to_end(reader)
        except OSError:
            reset(ends)


def repeat(work: Callable[[], T]) -> T:
    """Do some work until it succeeds, as runs do that are launched again."""
    for _ in range(20):
        with contextlib.suppress(StoreError, VectorError, WordsError):
            return work()
    raise AssertionError("the connection was too bad 20 times")


async def read_to_end(reader: Reader) -> None:
    """Read what still comes: to close a connection with data unread would reset it."""
    while await reader.read(1 << 16):
        pass


def reset(writers: Iterable[Writer]) -> None:
    """Close connections by a reset (RST): the other side gets an error, and no end."""
    for writer in [*writers]:
        connected: socket.socket = writer.get_extra_info("socket")
        if connected.family != socket.AF_UNIX:
            with contextlib.suppress(OSError):  # closed already
                connected.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()
