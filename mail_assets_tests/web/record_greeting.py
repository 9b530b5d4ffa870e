"""Record what the MCP library says before the first call of a tool, for mcp_stdio.py."""

import json
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS

from mail_assets import __version__
from mail_assets.web.mcp_stdio import VERSION

_SERVER = (
    "from mail_assets.web.mcp import build_mcp_server\n"
    "from mail_assets.web.documents import Documents\n"
    "build_mcp_server(Documents(None, None)).run()"
)
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
    """Return the same requests of a protocol without a handshake."""
    name = "io.modelcontextprotocol"
    meta = {f"{name}/protocolVersion": version, f"{name}/clientCapabilities": {}}
    params = {"_meta": {**meta, f"{name}/clientInfo": CLIENT}}
    return [
        {"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": params},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": params},
    ]


def record() -> dict[str, Any]:
    """Return the results of the library, by version of the protocol."""
    versions = {
        one: dict(zip(("initialize", "tools/list"), _ask(greet(one)), strict=True))
        for one in HANDSHAKE_PROTOCOL_VERSIONS
    }
    stateless = {
        one: dict(zip(("server/discover", "tools/list"), _ask(ask_stateless(one)), strict=True))
        for one in MODERN_PROTOCOL_VERSIONS
    }
    return {"newest": max(versions), "versions": versions, "stateless": stateless}


def _ask(messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the results of requests; the server drops what it has not answered at the end."""
    found = []
    command = [sys.executable, "-c", _SERVER]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdin
        assert server.stdout
        for message in messages:
            server.stdin.write(f"{json.dumps(message)}\n")
            server.stdin.flush()
            if "id" in message:
                found.append(json.loads(server.stdout.readline())["result"])
    return found


def write_greeting() -> str:
    """Return the file of the recorded answers."""
    text = json.dumps(record(), ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    return text.replace(f'"version":"{__version__}"', f'"version":"{VERSION}"') + "\n"


if __name__ == "__main__":
    sys.stdout.write(write_greeting())
