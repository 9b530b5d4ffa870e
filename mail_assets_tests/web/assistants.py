"""Call one tool with a real client of the Model Context Protocol."""

import asyncio
from typing import Any

from mcp import Client
from mcp_types import CallToolResult, TextContent


def call_tool(
    server: Any, tool: str, arguments: dict[str, Any], mode: str = "auto"
) -> CallToolResult:
    """Call a tool of a server, or of the server at a URL."""

    async def call() -> CallToolResult:
        async with Client(server, mode=mode) as client:
            return await client.call_tool(tool, arguments)

    return asyncio.run(call())


def ask(server: Any, tool: str, mode: str = "auto", **arguments: object) -> str:
    """Call a tool; return its text, with the prefix "error: " for an error."""
    result = call_tool(server, tool, arguments, mode)
    text = "".join(part.text for part in result.content if isinstance(part, TextContent))
    return f"error: {text}" if result.is_error else text
