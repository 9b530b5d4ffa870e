"""The archive as tools for assistants (Model Context Protocol, https://modelcontextprotocol.io).

All tools read. Their results are texts of a bounded size; what is mail in them is marked.

[strict_tool] Tools that refuse arguments they do not know: dropped ones would answer another question.
"""

import functools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, ParamSpec

from mcp.server import MCPServer
from mcp.server.context import LifespanContextT, RequestT
from mcp.server.mcpserver.context import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.tools import Tool
from mcp.server.transport_security import TransportSecuritySettings
from mcp_types import ToolAnnotations
from pydantic import Field

from mail_assets import __version__
from mail_assets.search.language.request import MAX_OFFSET
from mail_assets.web.documents import Documents, choose_text
from mail_assets.web.mcp_text import (
    WARNING,
    describe_hits,
    describe_lists,
    describe_message,
    describe_thread,
    find_start,
    read_id,
)
from mail_assets.web.responses import ServingError, read_error

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


P = ParamSpec("P")

#: Names that assistants on the same machine call it by.
LOCAL_HOSTS = ("127.0.0.1", "localhost", "[::1]")

INSTRUCTIONS = f"""\
Search in the archives of mailing lists. Begin with semantic_search, read what looks right with \
get_message, and its discussion with get_thread. Cite messages by their ids. {WARNING}"""

_READS = ToolAnnotations(
    read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)

Id = Annotated[str, Field(min_length=1, max_length=2_000, description="a Message-ID")]
Tokens = Annotated[int, Field(ge=200, le=8_000, description="about how long the result may be")]
Day = Annotated[str, Field(max_length=20, description="YYYY, YYYY-MM, YYYY-MM-DD, or 2y for ago")]
Name = Annotated[str, Field(max_length=200, description="only this mailing list")]


class MailTools:
    """What assistants may ask; each method is a tool of its name."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents

    def semantic_search(
        self,
        query: Annotated[
            str,
            Field(
                min_length=1,
                max_length=2_000,
                description='a question, or words; "a phrase", -without, from:name, subject:word',
            ),
        ],
        list: Name = "",
        after: Day = "",
        before: Day = "",
        limit: Annotated[int, Field(ge=1, le=20)] = 5,
        offset: Annotated[int, Field(ge=0, le=MAX_OFFSET)] = 0,
        explain: Annotated[bool, Field(description="say how the query was understood")] = False,
        tokens: Tokens = 2_000,
    ) -> str:
        """Find messages by meaning and by words, best first, each with the passage that matches."""
        document = self._documents.search(
            {
                "q": query,
                "list": list,
                "after": after,
                "before": before,
                "limit": str(limit),
                "offset": str(offset),
            },
            facets=False,
        )
        understood = f"Understood as: {document['explain']['query']}\n\n" if explain else ""
        return understood + describe_hits(document, tokens, offset)

    def get_message(
        self,
        message_id: Id,
        offset: Annotated[int, Field(ge=0, description="first character of the text")] = 0,
        around: Annotated[
            int | None, Field(ge=0, description="a character that is to stand in the middle")
        ] = None,
        text: Annotated[
            int, Field(ge=1, le=100, description="which of the texts, if its id has several")
        ] = 1,
        tokens: Tokens = 2_000,
    ) -> str:
        """Read a message, from a character of its text on, or the part around one."""
        document = choose_text(_find(self._documents.message, message_id), text)
        start = offset if around is None else find_start(document, around, tokens)
        return describe_message(document, start, tokens)

    def get_thread(
        self,
        message_id: Id,
        first: Annotated[
            int, Field(ge=0, le=1_000_000, description="number of the first message")
        ] = 0,
        tokens: Tokens = 2_000,
    ) -> str:
        """Summarize and outline the conversation of a message: who answers whom, and when."""
        document = _find(lambda id: self._documents.thread(id, first), message_id)
        return describe_thread(document, tokens)

    def similar(self, message_id: Id, tokens: Tokens = 2_000) -> str:
        """Find the messages nearest in meaning to a message."""
        return describe_hits(_find(self._documents.similar, message_id), tokens)

    def list_lists(self) -> str:
        """Name the mailing lists, their sizes and their first and last months."""
        return describe_lists(self._documents.lists())

    def explain_search(
        self, query: Annotated[str, Field(min_length=1, max_length=2_000)], list: Name = ""
    ) -> str:
        """Say how a search is understood: what is required, how words weigh, how many match."""
        document = self._documents.search({"q": query, "list": list, "limit": "1"})
        facets = document["facets"]
        counted = {"total": facets["total"], "at_least": facets["at_least"]}
        dropped = {"without_quotes": document["without_quotes"]}
        said = {**document["explain"], **dropped, **counted}
        return json.dumps(said, ensure_ascii=False, indent=1)


def build_mcp_server(documents: Documents) -> MCPServer:
    """Return a server whose tools read documents."""
    documents = replace(documents, surface="mcp")
    asked = MailTools(documents)
    tools = (
        asked.semantic_search,
        asked.get_message,
        asked.get_thread,
        asked.similar,
        asked.list_lists,
        asked.explain_search,
    )
    return MCPServer(
        "mail_assets",
        instructions=INSTRUCTIONS,
        version=__version__,
        tools=[make_tool(_tell_errors(tool), _READS) for tool in tools],
        subscriptions=False,  # tools never change: a client would wait for that without end
    )


def protect_from_rebinding(hosts: Sequence[str]) -> TransportSecuritySettings:
    """Return who may ask over HTTP: this machine, and pages and programs that name `hosts`.

    The page of another site cannot ask by a name of its own that leads to this machine (DNS
    rebinding).
    """
    names = [*LOCAL_HOSTS, *(f"{name}:*" for name in LOCAL_HOSTS), *hosts]
    origins = [f"{scheme}://{name}" for scheme in ("http", "https") for name in names]
    return TransportSecuritySettings(allowed_hosts=names, allowed_origins=origins)


def _find(make: Callable[[str], dict[str, Any]], message_id: str) -> dict[str, Any]:
    """Return the document of an id as tools write it, or else as it stands in mail.

    Raises:
        RequestError, ServingError: as `make` does.
    """
    id = read_id(message_id)
    try:
        return make(id)
    except ServingError as error:
        if error.code != "not_found" or id == message_id:
            raise
    return make(message_id)


def _tell_errors(tool: Callable[P, str]) -> Callable[P, str]:
    """Let the assistant read what was wrong; a fault of the program stays inside."""

    @functools.wraps(tool)
    def run(*args: P.args, **kwargs: P.kwargs) -> str:
        try:
            return tool(*args, **kwargs)
        except Exception as error:
            if told := read_error(error):
                raise ToolError(told.message) from None
            raise

    return run
