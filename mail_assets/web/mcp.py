"""The archive as tools for assistants (Model Context Protocol, https://modelcontextprotocol.io).

The tools only read. A result is a text of limited size in which mail is marked (mcp_text.py), with
links to pages and the freshness of the archive. The same text is in the structured content too, for
clients that read nothing else.
"""

import functools
import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal, ParamSpec, TypeVar

from mcp.server import MCPServer
from mcp.server.context import LifespanContextT, RequestT
from mcp.server.mcpserver.context import Context
from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
from mcp.server.mcpserver.tools import Tool
from mcp_types import CallToolResult, TextContent, ToolAnnotations
from pydantic import Field, ValidationError

from mail_assets import __version__
from mail_assets.answers.answer import PassageMaker
from mail_assets.errors import name_nearest
from mail_assets.search.language.description import describe_shortly
from mail_assets.search.language.request import MAX_OFFSET
from mail_assets.text.untrusted import quote_lines
from mail_assets.web.answers import Answering, read_events
from mail_assets.web.browse import Archives
from mail_assets.web.documents import POSTS, Documents
from mail_assets.web.limits import Asked, Cost
from mail_assets.web.mcp_patches import PatchTools
from mail_assets.web.mcp_results import Id, Result, ResultMaker, Tokens, find_by_id
from mail_assets.web.mcp_text import (
    MIN_SHARE,
    WARNING,
    Described,
    describe_answer,
    describe_lists,
    describe_message,
    describe_rows,
    describe_texts,
    describe_thread,
    find_start,
    read_id,
)
from mail_assets.web.requests import Wanted
from mail_assets.web.responses import read_error

P = ParamSpec("P")
D = TypeVar("D")

INSTRUCTIONS = f"""\
Search in the archives of mailing lists. Begin with semantic_search, read what looks right with \
get_message, its discussion with get_thread (texts: all that was said there). Cite messages by \
their links. {WARNING}"""

#: Names of the tools that search.
SEARCHING = frozenset({"semantic_search", "answer", "similar", "explain_search"})

#: The whole query language, as the description of the search tool.
LANGUAGE = f"""\
Find conversations by meaning and by words, best first, each with its best passages.

query is a question or words. It may have:
{describe_shortly(90)}
Quote values with blanks. Conditions alone list the newest. \\list:x is text."""

_READS = ToolAnnotations(
    read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)

Day = Annotated[str, Field(max_length=20, description="YYYY, YYYY-MM, YYYY-MM-DD, or 2y (ago)")]
Name = Annotated[str, Field(max_length=200, description="only this mailing list")]


class MailTools:
    """The tools. Each public method is a tool; its name and docstring are published.

    `site` is the base of links; "" makes links paths.
    """

    def __init__(self, documents: Documents, results: ResultMaker, site: str = "") -> None:
        self._documents = documents
        self._results = results
        self._site = site.rstrip("/")

    def semantic_search(
        self,
        query: Annotated[
            str, Field(min_length=1, max_length=2_000, description="in the language above")
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
            Field(description="best first, or by date with every word required"),
        ] = "relevance",
        mode: Annotated[
            Literal["hybrid", "semantic", "fulltext"],
            Field(description="by both, by meaning alone, or by words alone"),
        ] = "hybrid",
        explain: Annotated[bool, Field(description="show how the query was understood")] = False,
        tokens: Tokens = 2_000,
    ) -> Result:
        """"""
        given = {
            "q": query,
            "list": list,
            "after": after,
            "before": before,
            "limit": str(limit),
            "offset": str(offset),
            "near": read_id(near),
            "sort": sort,
            **({} if mode == "hybrid" else {"mode": mode}),
        }
        document = self._documents.search(given, facets=False)
        made = describe_rows(document, self._results.room(tokens, list), offset, self._site)
        if explain:
            made.text = f"Understood as: {document['explain']['query']}\n\n{made.text}"
        return self._results.finish(made, list)

    def answer(
        self,
        question: Annotated[
            str,
            Field(
                min_length=1,
                max_length=2_000,
                description="a question; what a person said is answered from that person's mail",
            ),
        ],
        list: Name = "",
        after: Day = "",
        before: Day = "",
        tokens: Tokens = 2_000,
    ) -> Result:
        """Quote the paragraphs nearest to a question."""
        answering = Answering(self._documents, PassageMaker())
        given = {"q": question, "list": list, "after": after, "before": before}
        room = self._results.room(tokens, list)
        found = answering.stream(answering.find({k: v for k, v in given.items() if v}))
        return self._results.finish(describe_answer(read_events(found), room, self._site), list)

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
    ) -> Result:
        """Read a message, from a character of its text on, or around a character."""
        wanted = Wanted(number=text)
        document = find_by_id(lambda id: self._documents.message(id, wanted), message_id)
        room = self._results.room(tokens)
        start = offset if around is None else find_start(document, around, room)
        return self._results.finish(describe_message(document, start, room, self._site))

    def get_thread(
        self,
        message_id: Id,
        first: Annotated[
            int, Field(ge=0, le=1_000_000, description="number of the first message")
        ] = 0,
        tokens: Tokens = 2_000,
        texts: Annotated[
            bool, Field(description="the texts of all messages, not an outline")
        ] = False,
        characters: Annotated[
            int, Field(ge=1_000, le=100_000, description="with texts: about the longest result")
        ] = 20_000,
        quotes: Annotated[
            bool, Field(description="with texts: also what messages quote, patches, signatures")
        ] = False,
    ) -> Result:
        """Summarize and outline the conversation of a message, or read all its texts in one call.

        The outline says who replies to whom, and when. With texts, the longest are cut to fit.
        """
        document = find_by_id(lambda id: self._documents.thread(id, first), message_id)
        if not texts:
            return self._results.finish(
                describe_thread(document, self._results.room(tokens), self._site)
            )
        posts = [*document["posts"]]
        while posts and len(posts) * MIN_SHARE < characters and len(posts) % POSTS == 0:
            after = self._documents.thread(document["thread_id"], posts[-1]["position"] + 1)
            posts += after["posts"]
            if not after["posts"]:
                break
        return self._results.finish(describe_texts(document, posts, characters, quotes, self._site))

    def similar(self, message_id: Id, tokens: Tokens = 2_000) -> Result:
        """Find the messages nearest in meaning to a message."""
        document = find_by_id(self._documents.similar, message_id)
        return self._results.finish(
            describe_rows(document, self._results.room(tokens), site=self._site)
        )

    def list_lists(self) -> Result:
        """Name the mailing lists, their sizes, months and newest mail, and what is not indexed."""
        archives = Archives(self._documents.service, self._documents.publication)
        newest = {
            one.list_name: f"{one.newest:%Y-%m-%d}"
            for one in self._results.freshness()
            if one.newest
        }
        return self._results.finish(describe_lists(archives.lists(), newest, self._site))

    def explain_search(
        self, query: Annotated[str, Field(min_length=1, max_length=2_000)], list: Name = ""
    ) -> Result:
        """Explain a search: what it requires, how its words are weighted, how many match."""
        document = self._documents.search({"q": query, "list": list, "limit": "1"})
        facets = document["facets"]
        counted = {"total": facets["total"], "at_least": facets["at_least"]}
        dropped = {"without_quotes": document["without_quotes"], "notes": document["notes"]}
        explained = {**document["explain"], **dropped, **counted}
        text = json.dumps(explained, ensure_ascii=False, indent=1)
        if document["near"]:  # the subject that is read along is mail
            text = "\n".join([WARNING, *quote_lines(text)])
        return self._results.finish(Described(self._site, text), says_fresh=False)


def find_call_cost(asked: Asked) -> Cost:
    """Return the cost of a message to the server: calls of some tools are searches."""
    try:
        match json.loads(asked.body):
            case {"params": {"name": str(name)}} if name in SEARCHING:
                return Cost.search
    except (ValueError, RecursionError):
        pass  # the MCP server reports what is wrong
    return Cost.read


class StrictTool(Tool):
    """A tool that refuses unknown arguments; ignoring one would answer another question."""

    def model_post_init(self, context: Any, /) -> None:
        """Close the schema of the arguments, and drop titles: they repeat names and cost tokens."""
        self.parameters = {**_leave_out_titles(self.parameters), "additionalProperties": False}
        self.fn_metadata.output_schema = _leave_out_titles(self.fn_metadata.output_schema)

    async def run(
        self,
        arguments: dict[str, Any],
        context: Context[LifespanContextT, RequestT],
        convert_result: bool = False,
    ) -> Any:
        """Run the tool.

        Raises:
            ToolError: an argument is wrong, or the tool itself failed; one sentence says what.
        """
        known = self.parameters.get("properties", {})
        if unknown := sorted(arguments.keys() - known.keys()):
            hint = name_nearest(unknown[0], known)
            there_are = f"there are: {', '.join(known)}" if known else "there are none"
            said = f"argument {unknown[0][:40]!r} is unknown; {there_are}; {hint}"
            raise ToolError(said.rstrip("; "))
        try:
            validated = self.fn_metadata.validate_arguments(arguments)
        except ValidationError as error:
            raise ToolError(_describe_wrong(error, self.parameters)) from None
        try:
            result = await self.fn_metadata.call_fn(self.fn, self.is_async, validated)
            return self.fn_metadata.convert_result(result) if convert_result else result
        except ToolError:
            raise
        except Exception as error:
            raise UnexpectedToolError("the program failed; the error was logged") from error


def _leave_out_titles(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_leave_out_titles(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    titled = isinstance(schema.get("title"), str)
    return {k: _leave_out_titles(v) for k, v in schema.items() if not (titled and k == "title")}


def _describe_wrong(error: ValidationError, schema: Mapping[str, Any]) -> str:
    """Return a sentence about the first wrong argument: name, value and rule."""
    first = error.errors(include_url=False)[0]
    name = ".".join(map(str, first["loc"][:1])) or "arguments"
    if first["type"] == "missing":
        return f"argument {name!r} is missing"
    value = repr(first["input"])
    shown = value if len(value) <= 60 else f"{value[:60]}..."
    rule = first["msg"].replace("Input should be", "must be").replace("String should", "must")
    rule = f"{rule[:1].lower()}{rule[1:]}"
    if first["type"] == "literal_error":
        hint = name_nearest(str(first["input"]), schema["properties"][name].get("enum", ()))
        rule = f"{rule}; {hint}".rstrip("; ")
    return f"argument {name!r} is {shown}: {rule}"


def build_mcp_server(documents: Documents, site: str = "") -> MCPServer:
    """Return a server with the tools; `site` is the base of links, "" makes links paths.

    Senders with the same name get marks if the publication of the documents has a key for marks.
    """
    documents = replace(documents, surface="mcp")
    results = ResultMaker(documents)
    tools = MailTools(documents, results, site)
    patches = PatchTools(documents, results, site)
    methods: tuple[Callable[..., Result], ...] = (
        tools.semantic_search,
        tools.answer,
        tools.get_message,
        tools.get_thread,
        tools.similar,
        tools.list_lists,
        tools.explain_search,
        patches.why,
        patches.get_series,
        patches.compare_versions,
    )
    return MCPServer(
        "mail_assets",
        instructions=INSTRUCTIONS,
        version=__version__,
        tools=[
            StrictTool.from_function(
                _show_errors(method),
                description=inspect.getdoc(method) or LANGUAGE,
                annotations=_READS,
            )
            for method in methods
        ],
        subscriptions=False,  # tools never change, so a subscriber would wait forever
    )


def _show_errors(tool: Callable[P, Result]) -> Callable[P, CallToolResult]:
    """Wrap a tool: the assistant reads expected errors, faults of the program stay hidden."""

    @functools.wraps(tool)
    def run(*args: P.args, **kwargs: P.kwargs) -> CallToolResult:
        try:
            result = tool(*args, **kwargs)
        except Exception as error:
            if shown := read_error(error):
                near = f"; nearest: {', '.join(shown.allowed)}" if shown.allowed else ""
                raise ToolError(f"{shown.message}{near}") from None
            raise
        text = TextContent(type="text", text=result.text)
        return CallToolResult(content=[text], structured_content=result.model_dump())

    # the MCP library makes the schema of the result from the annotation
    signature = inspect.signature(tool)
    returned = Annotated[CallToolResult, signature.return_annotation]
    run.__signature__ = signature.replace(  # type: ignore[attr-defined]
        return_annotation=returned
    )
    run.__annotations__ = {**tool.__annotations__, "return": returned}
    return run
