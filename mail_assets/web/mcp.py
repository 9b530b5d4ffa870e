"""The archive as tools for assistants (Model Context Protocol, https://modelcontextprotocol.io).

All tools only read. Their results are texts of a bounded size, in which mail is marked
(mcp_text.py).
"""

import functools
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal, ParamSpec, TypeVar

from mcp.server import MCPServer
from mcp.server.context import LifespanContextT, RequestT
from mcp.server.mcpserver.context import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.tools import Tool
from mcp_types import ToolAnnotations
from pydantic import Field

from mail_assets import __version__
from mail_assets.answers.maker import PassageMaker
from mail_assets.search.language.request import MAX_OFFSET
from mail_assets.web.answers import Answering, read_events
from mail_assets.web.browse import Archives
from mail_assets.web.documents import Documents
from mail_assets.web.mcp_text import (
    WARNING,
    describe_answer,
    describe_lists,
    describe_message,
    describe_rows,
    describe_thread,
    find_start,
    read_id,
)
from mail_assets.web.requests import Wanted
from mail_assets.web.responses import ServingError, read_error

P = ParamSpec("P")
D = TypeVar("D")

#: Former names of arguments, which prompts may still use.
_OLD_NAMES = {"list_name": "list"}

INSTRUCTIONS = f"""\
Search in the archives of mailing lists. Begin with semantic_search, read what looks right with \
get_message, and its discussion with get_thread. Cite messages by their ids. {WARNING}"""

_READS = ToolAnnotations(
    read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)

Id = Annotated[str, Field(min_length=1, max_length=2_000, description="a Message-ID")]
Tokens = Annotated[int, Field(ge=200, le=8_000, description="about the longest result")]
Day = Annotated[str, Field(max_length=20, description="YYYY, YYYY-MM, YYYY-MM-DD, or 2y (ago)")]
Name = Annotated[str, Field(max_length=200, description="only this mailing list")]


class MailTools:
    """The tools; each public method is a tool of its name, with its docstring as description."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents

    def semantic_search(
        self,
        query: Annotated[
            str,
            Field(
                min_length=1,
                max_length=2_000,
                description='a question, or words; "a phrase", -without, from:name, subject:word; '
                "group:message for single messages",
            ),
        ],
        list: Name = "",
        after: Day = "",
        before: Day = "",
        limit: Annotated[int, Field(ge=1, le=20)] = 5,
        offset: Annotated[int, Field(ge=0, le=MAX_OFFSET)] = 0,
        near: Annotated[
            str, Field(max_length=2_000, description="id of the message or thread that is read")
        ] = "",
        sort: Annotated[
            Literal["relevance", "newest", "oldest"],
            Field(description="best first, or by date those that have every word"),
        ] = "relevance",
        explain: Annotated[bool, Field(description="show how the query was understood")] = False,
        tokens: Tokens = 2_000,
    ) -> str:
        """Find conversations by meaning and by words, best first, each with its best passages."""
        document = self._documents.search(
            {
                "q": query,
                "list": list,
                "after": after,
                "before": before,
                "limit": str(limit),
                "offset": str(offset),
                "near": read_id(near),
                "sort": sort,
            },
            facets=False,
        )
        understood = f"Understood as: {document['explain']['query']}\n\n" if explain else ""
        return understood + describe_rows(document, tokens, offset)

    def answer(
        self,
        question: Annotated[
            str,
            Field(
                min_length=1,
                max_length=2_000,
                description="a question; one for what somebody said is answered from their mail",
            ),
        ],
        list: Name = "",
        after: Day = "",
        before: Day = "",
        tokens: Tokens = 2_000,
    ) -> str:
        """Quote the paragraphs nearest to a question, and say whether they answer it."""
        answering = Answering(self._documents, PassageMaker())
        given = {"q": question, "list": list, "after": after, "before": before}
        found = answering.stream(answering.find({k: v for k, v in given.items() if v}))
        return describe_answer(read_events(found), tokens)

    def get_message(
        self,
        message_id: Id,
        offset: Annotated[int, Field(ge=0, description="first character of the text")] = 0,
        around: Annotated[
            int | None, Field(ge=0, description="a character to show in the middle")
        ] = None,
        text: Annotated[
            int, Field(ge=1, le=100, description="number of the text, if the id has several")
        ] = 1,
        tokens: Tokens = 2_000,
    ) -> str:
        """Read a message, from a character of its text on, or around a character."""
        wanted = Wanted(number=text)
        document = _find(lambda id: self._documents.message(id, wanted), message_id)
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
        """Summarize and outline the conversation of a message: who replies to whom, and when."""
        document = _find(lambda id: self._documents.thread(id, first), message_id)
        return describe_thread(document, tokens)

    def similar(self, message_id: Id, tokens: Tokens = 2_000) -> str:
        """Find the messages nearest in meaning to a message."""
        return describe_rows(_find(self._documents.similar, message_id), tokens)

    def list_lists(self) -> str:
        """Name the mailing lists, their sizes and their first and last months."""
        archives = Archives(self._documents.service, self._documents.publication)
        return describe_lists(archives.lists())

    def explain_search(
        self, query: Annotated[str, Field(min_length=1, max_length=2_000)], list: Name = ""
    ) -> str:
        """Explain a search: what it requires, how its words are weighted, how many match."""
        document = self._documents.search({"q": query, "list": list, "limit": "1"})
        facets = document["facets"]
        counted = {"total": facets["total"], "at_least": facets["at_least"]}
        dropped = {"without_quotes": document["without_quotes"], "notes": document["notes"]}
        explained = {**document["explain"], **dropped, **counted}
        return json.dumps(explained, ensure_ascii=False, indent=1)


class StrictTool(Tool):
    """A tool that refuses unknown arguments: to drop one would answer another question."""

    def model_post_init(self, context: Any, /) -> None:
        """Close the schema of the arguments."""
        self.parameters["additionalProperties"] = False

    async def run(
        self,
        arguments: dict[str, Any],
        context: Context[LifespanContextT, RequestT],
        convert_result: bool = False,
    ) -> Any:
        """Run the tool.

        Raises:
            ToolError: an argument is unknown, or the tool itself failed.
        """
        return await super().run(self._read(arguments), context, convert_result)

    def _read(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        known = self.parameters.get("properties", {})
        renamed = {
            old: new for old, new in _OLD_NAMES.items() if new in known and new not in arguments
        }
        read = {renamed.get(name, name): value for name, value in arguments.items()}
        if unknown := sorted(read.keys() - known.keys()):
            there_are = f"there are: {', '.join(known)}" if known else "there are none"
            raise ToolError(f"argument {unknown[0][:40]!r} is unknown; {there_are}")
        return read


def build_mcp_server(documents: Documents) -> MCPServer:
    """Return a server with the tools."""
    documents = replace(documents, surface="mcp")
    tools = MailTools(documents)
    methods = (
        tools.semantic_search,
        tools.answer,
        tools.get_message,
        tools.get_thread,
        tools.similar,
        tools.list_lists,
        tools.explain_search,
    )
    return MCPServer(
        "mail_assets",
        instructions=INSTRUCTIONS,
        version=__version__,
        tools=[
            StrictTool.from_function(
                _show_errors(method), annotations=_READS, structured_output=False
            )
            for method in methods
        ],
        subscriptions=False,  # tools never change, so a subscriber would wait forever
    )


def _find(make: Callable[[str], D], message_id: str) -> D:
    """Return the document of an id as tools write it, or of the id as mail writes it."""
    id = read_id(message_id)
    try:
        return make(id)
    except ServingError as error:
        if error.code != "not_found" or id == message_id:
            raise
    return make(message_id)


def _show_errors(tool: Callable[P, str]) -> Callable[P, str]:
    """Let the assistant read expected errors; faults of the program stay hidden."""

    @functools.wraps(tool)
    def run(*args: P.args, **kwargs: P.kwargs) -> str:
        try:
            return tool(*args, **kwargs)
        except Exception as error:
            if shown := read_error(error):
                raise ToolError(shown.message) from None
            raise

    return run
