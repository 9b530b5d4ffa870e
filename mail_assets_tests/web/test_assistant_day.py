"""An assistant's day: from a question to a cited message and the texts of its thread.

The client is that of the MCP library, over HTTP and over standard input and output.
"""

import asyncio
import json
import re
import sys
from collections.abc import Callable, Coroutine
from typing import Any

import httpx
import jsonschema
import pytest
from mcp import Client, StdioServerParameters
from mcp_types import TextContent

from mail_assets.encoding.checkpoint import load_tokenizer
from mail_assets.encoding.models import LOCAL_MODELS
from mail_assets.web.mcp_stdio import GREETING
from mail_assets_tests.sample_corpus import QUERY, ROOT, Corpus
from mail_assets_tests.web.assistants import call_tool
from mail_assets_tests.web.conftest import BASE_URL
from mail_assets_tests.web.record_greeting import write_greeting

Day = Callable[[Client], Coroutine[Any, Any, None]]


@pytest.fixture(params=["http", "stdio"])
def live(request: pytest.FixtureRequest, corpus: Corpus) -> Callable[[Day], None]:
    """A function that runs a day with a client: `live(day)`."""
    if request.param == "http":
        public = request.getfixturevalue("public")
        server: Any = f"{public.base_url}/mcp"
    else:
        environ = corpus.environ | {"MAIL_WEB_URL": BASE_URL}
        arguments = ["-m", "mail_assets.cli", "mcp"]
        server = StdioServerParameters(command=sys.executable, args=arguments, env=environ)

    def run(day: Day) -> None:
        async def whole() -> None:
            async with Client(server) as client:
                await day(client)

        asyncio.run(whole())

    return run


async def call(client: Client, tool: str, **arguments: object) -> dict[str, Any]:
    """Call a tool; check its structured content against the schema that the server published."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    schemas = {one.name: one.output_schema for one in (await client.list_tools()).tools}
    jsonschema.validate(result.structured_content, schemas[tool])
    found: dict[str, Any] = result.structured_content
    assert found["text"] == "".join(getattr(part, "text", "") for part in result.content)
    return found


def test_question_leads_to_a_cited_thread(
    live: Callable[[Day], None], public: httpx.Client
) -> None:
    async def day(client: Client) -> None:
        # lists and their freshness
        lists = await call(client, "list_lists")
        assert "harbor-dev: 58 messages, 2024-03 to 2024-04, newest mail 2024-04-2" in lists["text"]
        assert lists["newest"].keys() == {"harbor-dev", "harbor-es", "harbor-users"}
        # a question: passages with links and freshness
        answer = await call(client, "answer", question=QUERY)
        cited = answer["links"][0]
        assert cited["url"].startswith(f"{BASE_URL}/message/")
        assert f"link: {cited['url']}" in answer["text"]
        assert "newest mail: " in answer["text"]
        # the link leads to an existing page
        assert public.get(cited["url"].removeprefix(BASE_URL)).status_code == 200
        # the message, then all texts of its thread in one call
        message = await call(client, "get_message", message_id=cited["id"])
        [thread] = [one for one in message["links"] if one["kind"] == "thread"]
        whole = await call(client, "get_thread", message_id=cited["id"], texts=True)
        posts = public.get(f"/thread.json/{thread['id']}").json()["posts"]
        shown = [one["id"] for one in whole["links"] if one["kind"] == "message"]
        assert shown == [one["message_id"] for one in posts if not one["is_ghost"]]
        assert (whole["more"], whole["text"].count("\ncut: ")) == (None, 0)
        # similar messages, and later ones
        similar = await call(client, "similar", message_id=cited["id"])
        assert cited["id"] not in {one["id"] for one in similar["links"]}
        newest = await call(client, "semantic_search", query="lease", sort="newest", limit=3)
        oldest = await call(client, "semantic_search", query="lease sort:oldest", limit=3)
        days = [
            re.findall(r"^\[\d\].* (\d{4}-\d\d-\d\d), in", one["text"], re.M)
            for one in (newest, oldest)
        ]
        assert days[0] > days[1]

    live(day)


@pytest.mark.parametrize("live", ["http"], indirect=True)
def test_next_arguments_lead_to_the_whole_result(live: Callable[[Day], None]) -> None:
    async def day(client: Client) -> None:
        asked: dict[str, Any] = {"query": QUERY, "limit": 4, "tokens": 300}
        whole = await call(client, "semantic_search", **{**asked, "tokens": 8_000})
        wanted = [one["id"] for one in whole["links"] if one["kind"] == "thread"]
        seen: list[str] = []
        offset = 0
        while len(seen) < len(wanted):
            part = await call(
                client, "semantic_search", **{**asked, "offset": offset, "limit": 4 - offset}
            )
            found = [one["id"] for one in part["links"] if one["kind"] == "thread"]
            assert found
            seen += found
            offset = part["more"]["offset"]
        assert seen == wanted

    live(day)


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("semantic_search", {}, "argument 'query' is missing"),
        ("semantic_search", {"query": ""}, "'query' is '': must have at least 1 character"),
        ("semantic_search", {"query": 7}, "argument 'query' is 7: must be a valid string"),
        ("semantic_search", {"query": "x", "limit": 1000}, "must be less than or equal to 20"),
        ("semantic_search", {"query": "x", "limit": None}, "'limit' is None: must be a valid int"),
        ("semantic_search", {"query": "x", "sort": "newst"}, "'oldest'; did you mean newest?"),
        ("semantic_search", {"query": "mode:smantic x"}, "mode 'smantic': allowed are"),
        ("semantic_search", {"query": "x", "list": "harbor-dve"}, "did you mean harbor-dev?"),
        ("semantic_search", {"query": "x", "list": "nowhere"}, "nowhere"),
        ("semantic_search", {"query": "x" * 3_000}, "argument 'query' is 'xxx"),
        ("semantic_search", {"query": "x", "most": 1}, "'most' is unknown; there are: query, list"),
        ("semantic_search", {"query": "x", "list": "", "name": ""}, "'name' is unknown"),
        ("get_thread", {"message_id": ROOT, "list_name": ""}, "'list_name' is unknown"),
        ("list_lists", {"list": "harbor-dev"}, "'list' is unknown; there are none"),
        ("get_message", {"message_id": "nobody@example.org"}, "no message has the id"),
        ("get_message", {"mesage_id": "x"}, "did you mean message_id?"),
        ("get_thread", {"message_id": "x", "characters": 10}, "greater than or equal to 1000"),
        *(
            (tool, {"message_id": id}, "the id contains a NUL character")
            for tool in ("get_message", "get_thread", "similar")
            for id in ("a\0b@example.org", "a%00b@example.org")
        ),
    ],
)
def test_wrong_call_is_answered_in_one_sentence(
    public: httpx.Client, tool: str, arguments: dict[str, Any], said: str
) -> None:
    result = call_tool(f"{public.base_url}/mcp", tool, arguments)
    assert result.is_error
    [part] = result.content
    assert isinstance(part, TextContent)
    assert said in part.text
    assert "\n" not in part.text
    assert len(part.text) < 400
    assert not {"pydantic", "Error executing", "validation error"} & {*re.split("[:,]", part.text)}


def test_query_language_is_in_one_short_text(public: httpx.Client, corpus: Corpus) -> None:
    async def describe() -> Any:
        async with Client(f"{public.base_url}/mcp") as client:
            return {one.name: one.description for one in (await client.list_tools()).tools}

    text = asyncio.run(describe())["semantic_search"]
    fields = ("from", "to", "subject", "file", "list", "month", "after", "before", "date", "has")
    more = ("is", "thread", "id", "near", "sort", "mode", "group", "limit", "offset", "score")
    assert all(f"{name}:" in text for name in (*fields, *more))
    assert all(
        sign in text for sign in (" OR ", " AND ", "NOT ", '" (phrase)', "leas*", "-windows")
    )
    tokenizer = load_tokenizer(LOCAL_MODELS[corpus.settings.encoder])
    assert len(tokenizer.encode(text).ids) <= 400


@pytest.mark.parametrize("characters", [1_000, 2_000, 5_000, 100_000])
def test_texts_of_a_thread_fit_their_budget(public: httpx.Client, characters: int) -> None:
    async def day(client: Client) -> None:
        first, seen = 0, []
        id = "20240304090533.GE9223@solheim.example.org"
        while True:
            part = await call(
                client, "get_thread", message_id=id, texts=True, characters=characters, first=first
            )
            assert len(part["text"]) <= characters + 1_500
            seen += [one["id"] for one in part["links"] if one["kind"] == "message"]
            if part["more"] is None:
                break
            assert f"go on with first {part['more']['first']}" in part["text"]
            first = part["more"]["first"]
        posts = public.get(f"/thread.json/{id}").json()["posts"]
        assert seen == [one["message_id"] for one in posts if not one["is_ghost"]]

    async def run() -> None:
        async with Client(f"{public.base_url}/mcp") as client:
            await day(client)

    asyncio.run(run())


def test_stdio_greets_like_the_library() -> None:
    is_current = json.loads(write_greeting()) == json.loads(GREETING.read_text())
    assert is_current, "record it again: the docstring of mail_assets/web/mcp_stdio.py says how"
