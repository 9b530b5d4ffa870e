"""Tools that refuse arguments they do not know: dropped ones would answer another question."""

from collections.abc import Callable, Mapping
from typing import Any

from mcp.server.context import LifespanContextT, RequestT
from mcp.server.mcpserver.context import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.tools import Tool
from mcp_types import ToolAnnotations

#: Names that arguments had before, which prompts may still have.
_OLD_NAMES = {"list_name": "list"}


class StrictTool(Tool):
    """A tool whose schema allows no other arguments than its own."""

    def model_post_init(self, context: Any, /) -> None:
        """Say so in the schema."""
        self.parameters["additionalProperties"] = False

    async def run(
        self,
        arguments: dict[str, Any],
        context: Context[LifespanContextT, RequestT],
        convert_result: bool = False,
    ) -> Any:
        """Run the tool.

        Raises:
            ToolError: there is no argument of that name, or as of the tool itself.
        """
        return await super().run(self._read(arguments), context, convert_result)

    def _read(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments by their names of today."""
        known = self.parameters.get("properties", {})
        renamed = {
            old: new for old, new in _OLD_NAMES.items() if new in known and new not in arguments
        }
        read = {renamed.get(name, name): value for name, value in arguments.items()}
        if unknown := sorted(read.keys() - known.keys()):
            there_are = f"there are: {', '.join(known)}" if known else "there are none"
            raise ToolError(f"argument {unknown[0][:40]!r} is unknown; {there_are}")
        return read


def make_tool(function: Callable[..., str], annotations: ToolAnnotations) -> Tool:
    """Return a tool of a function's name, whose arguments are the function's."""
    return StrictTool.from_function(function, annotations=annotations, structured_output=False)
