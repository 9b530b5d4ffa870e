"""Every surface marks a contested id, shows all its texts, and calls none genuine."""

import gzip
import xml.etree.ElementTree as ET
from collections.abc import Iterator

import httpx
import pytest

from mail_assets_tests.kept_worlds import standing_world
from mail_assets_tests.steps.test_contested import FALSE, TRUE, arrived
from mail_assets_tests.web.conftest import serving_world
from mail_assets_tests.web.readings import ATOM, ask_tool
from mail_assets_tests.world import HARBOR, MARCH, PIER, World, mail

ID = "decision@example.org"


def load_forged(world: World) -> None:
    """Load a decision, and in PIER later another text under its id, with an older date."""
    world.load(
        mail("question", "Do we ship the quokka?", subject="decision", from_line=line(9)),
        arrived(10, TRUE, references="<question@example.org>"),
        mail("thanks", "Understood.", subject="Re: decision", references=f"<{ID}>"),
        last="chunks",
    )
    forged = arrived(11, FALSE, date="Fri, 01 Mar 2024 09:00:00 +0000")
    world.load(forged, arrived(12, TRUE, sender="eve@example.com"), list_name=PIER, last="chunks")
    world.threads()
    world.summaries()


def line(day: int) -> str:
    return f"From list@example.org Sat Mar {day:2} 10:00:00 2024"


forged = standing_world(load_forged)


@pytest.fixture(scope="module")
def client(forged: World) -> Iterator[httpx.Client]:
    with serving_world(forged, addresses="shown") as client:
        yield client


def test_json_of_a_message_has_all_texts(client: httpx.Client) -> None:
    document = client.get(f"/message.json/{ID}").json()
    texts = [document, *document["other_texts"]]
    assert document["contested"]
    assert [one["text"] for one in texts] == [1, 2, 3]
    assert [one["places"][0]["list"] for one in texts] == [HARBOR, PIER, PIER]
    assert [one["arrived_at"] for one in texts] == [
        f"2024-03-{day}T10:00:00Z" for day in (10, 11, 12)
    ]
    assert [one["body_text"].strip() for one in texts] == [TRUE, FALSE, TRUE]
    assert document["places"] == [{"list": HARBOR, "month": MARCH}]
    assert not client.get("/message.json/thanks@example.org").json()["contested"]


@pytest.mark.parametrize(
    ("query", "body", "thread"),
    [("", TRUE, "decision"), ("?list=pier", FALSE, None), ("?list=harbor", TRUE, "decision"),
     ("?text=2", FALSE, None), ("?text=3", TRUE, None)],
)  # fmt: skip
def test_the_text_that_is_asked_for_comes_first(
    client: httpx.Client, query: str, body: str, thread: str | None
) -> None:
    document = client.get(f"/message.json/{ID}{query}").json()
    assert document["body_text"].strip() == body
    assert (document["thread_id"] is None) == (thread is None)
    assert len(document["other_texts"]) == 2
    page = client.get(f"/message/{ID}{query}").text
    assert "3 texts claim this Message-ID" in page
    assert page.count("Another text under this Message-ID") == 2
    mailbox = client.get(f"/message.mbox/{ID}{query}").text
    assert mailbox.count("X-Contested: ") == 3
    assert mailbox.index(body) == min(mailbox.index(text) for text in (TRUE, FALSE))


@pytest.mark.parametrize("query", ["?list=quay", "?text=4", "?list=harbor&text=2"])
def test_missing_text_number_is_an_error(client: httpx.Client, query: str) -> None:
    found = client.get(f"/message.json/{ID}{query}")
    assert found.status_code == 404
    error = found.json()["error"]
    assert (error["code"], error["allowed"]) == ("unknown_text", [HARBOR, PIER, "1", "2", "3"])
    page = client.get(f"/message/{ID}{query}").text
    assert "texts 1 to 3, in harbor, pier" in page
    assert "nearest ids" not in page


def test_a_thread_has_the_first_text_and_a_mark(client: httpx.Client) -> None:
    document = client.get("/thread.json/question@example.org").json()
    posts = {post["message_id"].partition("@")[0]: post for post in document["posts"]}
    assert posts["decision"]["body_text"].strip() == TRUE
    assert [name for name, post in posts.items() if post["contested"]] == ["decision"]
    assert document["lists"] == [HARBOR]
    assert posts["decision"]["places"] == [{"list": HARBOR, "month": MARCH}]
    assert "other texts claim this Message-ID" in client.get("/thread/question@example.org").text
    mailbox = gzip.decompress(client.get("/thread.mbox.gz/question@example.org").content).decode()
    assert mailbox.count("X-Contested: ") == 1
    assert TRUE in mailbox
    assert FALSE not in mailbox


def test_a_summary_has_no_sentence_of_a_contested_id(client: httpx.Client, forged: World) -> None:
    summary = client.get("/thread.json/question@example.org").json()["summary"]
    assert summary
    assert ID not in str(summary["sentences"])
    assert ID not in str(forged.rows("thread_summaries", "sentences"))


@pytest.mark.parametrize(
    ("query", "body", "text", "lists"),
    [("quokka OR ship decision", "", 1, [HARBOR]), (f"id:{ID}", TRUE, 1, [HARBOR]),
     (f"id:{ID} list:pier", FALSE, 2, [PIER])],
)  # fmt: skip
def test_a_hit_is_of_one_text_and_marked(
    client: httpx.Client, query: str, body: str, text: int, lists: list[str]
) -> None:
    found = client.get("/search.json", params={"q": query, "mode": "fulltext"}).json()["hits"]
    [hit] = [hit for hit in found if hit["message_id"] == ID]
    assert (hit["contested"], hit["text"], hit["lists"]) == (True, text, lists)
    shown = client.get(hit["html_url"]).text
    assert "Contested:" in shown
    assert body in shown
    if body:
        assert client.get(f"/message.json/{ID}?text={text}").json()["body_text"].strip() == body
    feed = client.get("/search.atom", params={"q": query, "mode": "fulltext"}).text
    titles = [
        one.findtext(f"{ATOM}title") or "" for one in ET.fromstring(feed).iter(f"{ATOM}entry")
    ]
    assert sum(title.startswith("[contested] ") for title in titles) == 1
    assert 'category term="contested"' in feed
    mailbox = client.get("/search.mbox.gz", params={"q": query, "mode": "fulltext"}).content
    assert gzip.decompress(mailbox).decode().count("X-Contested: ") == 1


def test_pages_of_lists_mark_a_contested_id(client: httpx.Client) -> None:
    for name, text in ((HARBOR, ""), (PIER, "?text=2")):
        posts = client.get(f"/lists.json/{name}/{MARCH}").json()["posts"]
        post = next(post for post in posts if post["message_id"] == ID)
        assert (post["contested"], post["html_url"]) == (True, f"/message/{ID}{text}")
        assert "contested</strong>" in client.get(f"/lists/{name}/{MARCH}").text


def test_a_month_lists_what_it_counts(client: httpx.Client) -> None:
    """Two texts of an id in one month are two messages, apart from the thread of the first."""
    month = f"{PIER}/{MARCH}"
    document = client.get(f"/lists.json/{month}").json()
    assert document["messages"] == client.get("/lists.json").json()["lists"][1]["messages"] == 2
    listed = [(post["html_url"], post["thread_id"], post["depth"]) for post in document["posts"]]
    assert listed == [(f"/message/{ID}?text={text}", None, 0) for text in (2, 3)]
    page = client.get(f"/lists/{month}").text
    assert page.count(f'<h2 dir="auto"><a href="/message/{ID}?text=') == 2
    assert "/thread/" not in page.partition('<ol class="threads">')[2].partition("</ol>")[0]
    mailbox = gzip.decompress(client.get(f"/lists.mbox.gz/{month}").content).decode()
    assert mailbox.count("\nX-Contested: ") == 2
    feed = ET.fromstring(client.get(f"/lists.atom/{month}").text)
    assert len([*feed.iter(f"{ATOM}entry")]) == 2


def test_tools_mark_a_contested_id(client: httpx.Client) -> None:
    said = ask_tool(client, "get_message", message_id=ID).text
    assert "Contested id: 3 texts claim it; text 1 arrived first." in said
    assert FALSE not in said
    assert FALSE in ask_tool(client, "get_message", message_id=ID, text=2).text
    assert "contested id" in ask_tool(client, "get_thread", message_id=ID).text


def test_facets_count_the_text_that_arrived_first(client: httpx.Client) -> None:
    def lists(query: str) -> dict[str, int]:
        asked = {"q": query, "mode": "fulltext"}
        facets: dict[str, dict[str, int]] = client.get("/search.json", params=asked).json()[
            "facets"
        ]
        return facets["lists"]

    assert lists(f"id:{ID}") == {HARBOR: 1}
    assert lists(f"id:{ID} list:pier") == {PIER: 1}


def test_forgetting_the_other_texts_settles_the_id(world: World) -> None:
    load_forged(world)
    with world.connect() as connection:
        connection.execute("delete from messages where list = 'pier' and variant = 0")
        assert len(world.rows("contested_texts")) == 2
        connection.execute("delete from messages where list = 'pier'")
    assert world.rows("contested_texts") == []
    world.summaries()
    assert ID in str(world.rows("thread_summaries", "sentences"))


def test_an_answer_quotes_the_text_that_arrived_first(client: httpx.Client) -> None:
    asked = {"q": "what was decided on the quokka", "mode": "fulltext"}
    found = client.post("/answer", json=asked, headers={"Accept": "application/json"}).json()
    quoted = [one for one in found["citations"] if one["message_id"] == ID]
    assert all(one["contested"] and one["text"] == TRUE for one in quoted)
    assert FALSE not in "".join(one["text"] for one in found["citations"])
