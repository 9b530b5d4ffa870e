"""Each text under a Message-ID can be read where search leads to."""

from collections.abc import Iterator

import httpx
import pytest

from mail_assets.web import documents
from mail_assets_tests.web.conftest import serving_world
from mail_assets_tests.web.readings import ask_tool
from mail_assets_tests.web.test_openapi import check, read_api
from mail_assets_tests.world import PIER, World, mail

ID = "a@example.org"
FOOTER = "_______________________________________________\nHarbor mailing list\n"
TEXTS = ("A walrus came.", "An ocelot came.", "A heron came; write to jo@example.org.")


@pytest.fixture
def client(world: World) -> Iterator[httpx.Client]:
    """A message under whose id three texts stand, the last on another list too."""
    world.archive("2024-03", *(mail("a", text) for text in TEXTS))
    world.archive("2024-03", mail("a", f"{TEXTS[2]}\n{FOOTER}"), list_name=PIER)
    for name in ("harbor", PIER):
        world.chain(list_name=name, last="words")
    world.threads()
    with serving_world(world) as client:
        yield client


@pytest.mark.parametrize("word", ["walrus", "ocelot", "heron"])
def test_page_of_a_hit_has_the_found_text(client: httpx.Client, word: str) -> None:
    [hit] = client.get("/search.json", params={"q": f"{word} mode:fulltext"}).json()["hits"]
    page = client.get(hit["url"]).text
    assert word in page
    assert page.count("Another text under this Message-ID") == 2
    assert "jo@example.org" not in page


def test_message_has_each_text_once_with_its_places(client: httpx.Client) -> None:
    document = client.get(f"/message.json/{ID}").json()
    check(read_api(client), "MessageDocument", document)
    texts = [document, *document["other_texts"]]
    assert [one["body_text"].split()[1] for one in texts] == ["walrus", "ocelot", "heron"]
    assert [[place["list"] for place in one["places"]] for one in texts[1:]] == [
        ["harbor"],
        ["harbor", "pier"],
    ]
    assert all(one["segments"][-1][1] == len(one["body_text"]) for one in texts)


@pytest.mark.parametrize(("text", "word"), [(1, "walrus"), (2, "ocelot"), (3, "heron")])
def test_get_message_chooses_a_text(client: httpx.Client, text: int, word: str) -> None:
    said = ask_tool(client, "get_message", message_id=ID, text=text).text
    assert f"| A{'n' if word == 'ocelot' else ''} {word} came" in said
    assert "its id has 3 texts: choose by text, from 1" in said


def test_number_of_other_texts_is_limited(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents, "MAX_OTHERS", 1)
    [other] = client.get(f"/message.json/{ID}").json()["other_texts"]
    assert "ocelot" in other["body_text"]
