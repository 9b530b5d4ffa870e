"""MCP server on standard input and output; greets a client before slow imports.

Importing the MCP library takes half a second of CPU time, and search four times that. Clients give
up on a server that greets them late. The responses before the first call never change, so they are
sent from a file that was recorded from the library:

    python -m mail_assets_tests.web.record_greeting > mail_assets/web/mcp_greeting.json

The first other message starts the server. The server reads all earlier messages again; responses
that the client already has are not sent again.
https://modelcontextprotocol.io/specification/2025-11-25/basic/lifecycle
"""

import io
import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mail_assets import __version__
from mail_assets.errors import MailAssetsError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer
    from mcp.server import MCPServer

#: The recorded responses of the library, by protocol version.
GREETING = Path(__file__).with_name("mcp_greeting.json")
#: Placeholder for this program's version in the recorded responses.
VERSION = "{version}"
#: Key of the protocol version in requests without a handshake.
_META_VERSION = "io.modelcontextprotocol/protocolVersion"
_CHUNK = 1 << 16

Message = dict[str, Any]


class Greeter:
    """Answers the first messages of a client; `sent` has the lines that a server must read too."""

    def __init__(self) -> None:
        self._answers: dict[str, Any] = json.loads(
            GREETING.read_text().replace(VERSION, __version__)
        )
        self._version = ""
        self.sent: list[bytes] = []
        #: The id of the answered handshake.
        self.greeted: int | str | None = None

    def answer(self, line: bytes) -> Message | None:
        """Return the result for a message, {} if it needs none, None if a server must answer.

        Only well-formed messages are answered; for others the library reports the fault.
        """
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            return None
        if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
            return None
        method, params = message.get("method"), message.get("params", {})
        if not isinstance(method, str) or not isinstance(params, dict):
            return None
        if "id" not in message:
            self.sent.append(line)
            return {}
        id = message["id"]
        if not isinstance(id, (int, str)) or isinstance(id, bool):
            return None
        result = self._find(method, params)
        if result is None:
            return None
        if method == "initialize":
            self.greeted = id
            self.sent.append(line)
        return {"jsonrpc": "2.0", "id": id, "result": result}

    def _find(self, method: str, params: Message) -> Message | None:
        meta = params.get("_meta", {})
        if isinstance(meta, dict) and _META_VERSION in meta:
            known = self._answers["stateless"].get(meta[_META_VERSION], {})
            is_full = isinstance(meta.get("io.modelcontextprotocol/clientCapabilities"), dict)
            return known.get(method) if params.keys() == {"_meta"} and is_full else None
        if method == "initialize" and not self._version and _is_greeting(params):
            asked = params["protocolVersion"]
            self._version = asked if asked in self._answers["versions"] else self._answers["newest"]
        elif method == "ping" and self._version:
            return {}
        elif method != "tools/list" or not self._version or params.keys() - {"_meta"}:
            return None
        found: Message | None = self._answers["versions"][self._version][method]
        return found


def _is_greeting(params: Message) -> bool:
    client = params.get("clientInfo")
    return (
        isinstance(params.get("protocolVersion"), str)
        and isinstance(params.get("capabilities"), dict)
        and isinstance(client, dict)
        and all(isinstance(client.get(name), str) for name in ("name", "version"))
    )


def serve_stdio(open_server: Callable[[], AbstractContextManager["MCPServer"]]) -> None:
    """Serve standard input and output until the client closes them.

    The first message that needs a server calls `open_server`. If that fails, the client gets the
    reason, and the next message tries again.
    """
    wire = _Wire()
    greeter = Greeter()
    for line in wire.read_lines():
        answer = greeter.answer(line)
        if answer is None:
            try:
                with open_server() as server:
                    wire.hand_over([*greeter.sent, line], greeter.greeted)
                    server.run()
                return
            except MailAssetsError as error:
                answer = _fail(line, str(error))
        if answer:
            wire.write(json.dumps(answer, ensure_ascii=False, separators=(",", ":")).encode())


def _fail(line: bytes, reason: str) -> Message:
    try:
        id = json.loads(line).get("id")
    except (ValueError, AttributeError):
        id = None
    return {"jsonrpc": "2.0", "id": id, "error": {"code": -32603, "message": reason}}


class _Wire:
    """The connection to the client, which nothing else in this process can read or write.

    Standard output of libraries goes to standard error, and child processes have no input.
    """

    def __init__(self) -> None:
        self._input, self._output = os.dup(0), os.dup(1)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        os.dup2(2, 1)
        self._read = b""

    def read_lines(self) -> Iterator[bytes]:
        """Yield the lines that the client sends; bytes after a line wait for `hand_over`."""
        while True:
            line, end, rest = self._read.partition(b"\n")
            if end:
                self._read = rest
                if line.strip():
                    yield line + end
            elif data := os.read(self._input, _CHUNK):
                self._read += data
            else:
                return

    def write(self, line: bytes) -> None:
        data = memoryview(line + b"\n")
        while data:
            data = data[os.write(self._output, data) :]

    def hand_over(self, lines: list[bytes], greeted: int | str | None) -> None:
        """Give standard input and output to a server, which first reads `lines` again.

        The response to the message `greeted` is not sent again.
        """
        reader = io.BufferedReader(_Replay(b"".join(lines) + self._read, self._input))
        writer = _Writer(self.write, greeted)
        # the library uses the buffers of these
        sys.stdin, sys.stdout = io.TextIOWrapper(reader), io.TextIOWrapper(writer)


class _Replay(io.RawIOBase):
    """A reader of earlier bytes, and then of a file."""

    def __init__(self, before: bytes, file: int) -> None:
        self._before, self._file = before, file

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer", /) -> int:
        """Read bytes into a buffer; return their number, 0 at the end."""
        room = memoryview(buffer).cast("B")
        data = self._before[: len(room)] or os.read(self._file, len(room))
        self._before = self._before[len(room) :]
        room[: len(data)] = data
        return len(data)


class _Writer(io.RawIOBase):
    """Passes whole lines on, except the response that the client already has."""

    def __init__(self, write: Callable[[bytes], None], greeted: int | str | None) -> None:
        self._write, self._greeted, self._part = write, greeted, b""

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        *lines, self._part = (self._part + bytes(data)).split(b"\n")
        for line in lines:
            if self._greeted is not None and json.loads(line).get("id") == self._greeted:
                self._greeted = None
            else:
                self._write(line)
        return len(data)
