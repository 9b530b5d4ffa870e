"""Call one tool with a real client of the Model Context Protocol."""

import asyncio
from typing import Any

from mcp import Client
from mcp_types import TextContent


def ask(server: Any, tool: str, mode: str = "auto", **arguments: object) -> str:
    """Call a tool; return its text, with the prefix "error: " for an error."""

    async def call() -> str:
        async with Client(server, mode=mode) as client:
            result = await client.call_tool(tool, arguments)
            text = "".join(part.text for part in result.content if isinstance(part, TextContent))
            return f"error: {text}" if result.is_error else text

    return asyncio.run(call())
