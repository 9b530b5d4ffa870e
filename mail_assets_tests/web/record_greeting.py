"""Record the answers of the MCP library before the first call of a tool, for mcp_stdio.py."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS

from mail_assets import __version__
from mail_assets.web.mcp_stdio import VERSION

#: Program that forks a server for each pair of files, because importing the library is slow.
_SERVERS = """\
import os, sys
from mail_assets.web.mcp import build_mcp_server
from mail_assets.web.documents import Documents
for pair in sys.argv[1:]:
    if os.fork() == 0:
        for number, file in enumerate(map(int, pair.split(","))):
            os.dup2(file, number)
        build_mcp_server(Documents(None, None)).run()
        os._exit(0)
"""
CLIENT = {"name": "recorder", "version": "1"}


def greet(version: str) -> list[dict[str, Any]]:
    """Return the messages of a handshake, and the request for the tools."""
    asked = {"protocolVersion": version, "capabilities": {}, "clientInfo": CLIENT}
    return [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": asked},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
    ]


def ask_stateless(version: str) -> list[dict[str, Any]]:
    """Return the same requests in a protocol without handshake."""
    name = "io.modelcontextprotocol"
    meta = {f"{name}/protocolVersion": version, f"{name}/clientCapabilities": {}}
    params = {"_meta": {**meta, f"{name}/clientInfo": CLIENT}}
    return [
        {"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": params},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": params},
    ]


def record() -> dict[str, Any]:
    """Return the results of the library, by version of the protocol."""
    talks = {one: greet(one) for one in HANDSHAKE_PROTOCOL_VERSIONS}
    talks |= {one: ask_stateless(one) for one in MODERN_PROTOCOL_VERSIONS}
    results = dict(zip(talks, _ask([*talks.values()]), strict=True))
    return {
        "newest": max(HANDSHAKE_PROTOCOL_VERSIONS),
        "versions": {one: results[one] for one in HANDSHAKE_PROTOCOL_VERSIONS},
        "stateless": {one: results[one] for one in MODERN_PROTOCOL_VERSIONS},
    }


def _ask(talks: Sequence[Sequence[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Return the results of the requests of each session, by method."""
    pipes = [(os.pipe(), os.pipe()) for _ in talks]
    theirs = [(asked[0], answered[1]) for asked, answered in pipes]
    command = [sys.executable, "-c", _SERVERS, *(f"{read},{write}" for read, write in theirs)]
    servers = subprocess.Popen(command, pass_fds=[file for pair in theirs for file in pair])
    for file in (one for pair in theirs for one in pair):  # so that the end of a server is noticed
        os.close(file)
    results = []
    for talk, (asked, answered) in zip(talks, pipes, strict=True):
        with os.fdopen(asked[1], "w") as writer, os.fdopen(answered[0]) as reader:
            found = {}
            for message in talk:
                writer.write(f"{json.dumps(message)}\n")
                writer.flush()
                if "id" in message:
                    found[message["method"]] = json.loads(reader.readline())["result"]
            results.append(found)
    servers.wait()
    return results


def write_greeting() -> str:
    """Return the content of the file of recorded answers."""
    text = json.dumps(record(), ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    return text.replace(f'"version":"{__version__}"', f'"version":"{VERSION}"') + "\n"


if __name__ == "__main__":
    sys.stdout.write(write_greeting())
