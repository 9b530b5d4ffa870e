"""A patch that was sent again leads to its newest version, wherever it is found."""

import asyncio
from collections.abc import Iterator

import httpx
import pytest
from mcp.client import Client

from mail_assets_tests.web.conftest import serving_world
from mail_assets_tests.web.test_openapi import check, read_api
from mail_assets_tests.world import World, mail

BODY = "The harbor master counts the boats of each quay before the tide turns at night."
SEARCH = {"q": "boats quay", "mode": "fulltext"}


@pytest.fixture
def client(world: World) -> Iterator[httpx.Client]:
    """A server over three versions of a patch, of which the oldest ranks first."""
    versions = [("a", "[PATCH] count boats", 4), ("b", "[PATCH v3] count boats", 9)]
    versions.append(("c", "[PATCH v2] count boats", 6))
    world.archive(
        "2024-03",
        *(
            mail(name, BODY, subject=subject, date=f"{day:02} Mar 2024 09:00:00 +0000")
            for name, subject, day in versions
        ),
    )
    world.chain(last="chunks")
    world.threads()
    with serving_world(world) as client:
        yield client


def test_every_surface_names_the_newest_version(client: httpx.Client) -> None:
    document = client.get("/search.json", params=SEARCH).json()
    check(read_api(client), "SearchDocument", document)
    [hit] = document["hits"]
    assert (hit["message_id"], hit["copies"]) == (
        "a@example.org",
        ["b@example.org", "c@example.org"],
    )
    assert hit["newer_copy"] == {
        "message_id": "b@example.org",
        "subject": "[PATCH v3] count boats",
        "sent_at": "2024-03-09T09:00:00Z",
        "url": "/message/b@example.org",
    }
    page = client.get("/search", params=SEARCH).text
    link = '<a href="/message/b@example.org">[PATCH v3] count boats</a>'
    assert f'Newer: {link}, <time datetime="2024-03-09T09:00:00Z">2024-03-09</time>' in page

    async def ask() -> str:
        async with Client(f"{client.base_url}/mcp") as assistant:
            asked = {"query": "boats quay mode:fulltext"}
            result = await assistant.call_tool("semantic_search", asked)
            return str(result.content)

    assert "sent again with nearly the same words: message b@example.org" in asyncio.run(ask())
