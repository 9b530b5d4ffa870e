"""Documents are complete and bounded, and the same on every surface."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import httpx
import psycopg
import pytest

from mail_assets.indexes.words import open_mail_words
from mail_assets.search import filters
from mail_assets.search.response import SHORTEST
from mail_assets.web import documents
from mail_assets.web.document_types import ThreadDocument
from mail_assets.web.documents import POST_CHARACTERS, POSTS, Documents
from mail_assets.web.mcp_text import describe_rows, describe_thread
from mail_assets.web.privacy import SHOWN, Publication
from mail_assets.web.searchers import SearchService
from mail_assets_tests.kept_worlds import standing_world
from mail_assets_tests.sample_corpus import ROOT
from mail_assets_tests.web.conftest import fill, open_service, serving_world
from mail_assets_tests.web.readings import ask_tool
from mail_assets_tests.web.test_openapi import check, read_api
from mail_assets_tests.world import PIER, World, mail

ID = "a@example.org"
FOOTER = "_______________________________________________\nHarbor mailing list\n"
TEXTS = ("A walrus came.", "An ocelot came.", "A heron came; write to jo@example.org.")


def fill_contested(world: World) -> None:
    """Fill three texts under one id, the last also on another list."""
    came = [f"From ann@example.org Mon Mar  4 09:01:0{number} 2024" for number in range(3)]
    mails = [mail("a", text, from_line=line) for text, line in zip(TEXTS, came, strict=True)]
    world.archive("2024-03", *mails)
    copy = mail("a", f"{TEXTS[2]}\n{FOOTER}", from_line=came[2])
    world.archive("2024-03", copy, list_name=PIER)
    for name in ("harbor", PIER):
        world.chain(list_name=name, last="words")
    world.threads()


contested = standing_world(fill_contested)


@pytest.fixture(scope="module")
def client(contested: World) -> Iterator[httpx.Client]:
    with serving_world(contested) as client:
        yield client


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


def test_number_of_other_texts_is_limited(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents, "MAX_OTHERS", 1)
    [other] = client.get(f"/message.json/{ID}").json()["other_texts"]
    assert "ocelot" in other["body_text"]


BODY = "The harbor master counts the boats of each quay before the tide turns at night."
SEARCH = {"q": "boats quay", "mode": "fulltext"}


@pytest.fixture
def patched(world: World) -> Iterator[httpx.Client]:
    """A server with three versions of a patch; the oldest ranks first."""
    versions = [("a", "[PATCH] count boats", 4), ("b", "[PATCH v3] count boats", 9)]
    versions.append(("c", "[PATCH v2] count boats", 6))
    mails = (
        mail(name, BODY, subject=subject, date=f"{day:02} Mar 2024 09:00:00 +0000")
        for name, subject, day in versions
    )
    fill(world, *mails, last="chunks")
    with serving_world(world) as client:
        yield client


def test_every_surface_names_the_newest_version(patched: httpx.Client) -> None:
    document = patched.get("/search.json", params=SEARCH).json()
    check(read_api(patched), "SearchDocument", document)
    [hit] = document["hits"]
    assert (hit["message_id"], hit["copies"]) == (
        "a@example.org",
        ["b@example.org", "c@example.org"],
    )
    assert hit["newer_copy"] == {
        "message_id": "b@example.org",
        "subject": "[PATCH v3] count boats",
        "sent_at": "2024-03-09T09:00:00Z",
        "url": "/message.json/b@example.org",
        "html_url": "/message/b@example.org",
    }
    page = patched.get("/search", params=SEARCH).text
    link = '<a href="/message/b@example.org">[PATCH v3] count boats</a>'
    assert f'Newer: {link}, <time datetime="2024-03-09T09:00:00Z">2024-03-09</time>' in page

    said = ask_tool(patched, "semantic_search", query="boats quay mode:fulltext").text
    assert "sent again with nearly the same words: message b@example.org" in said


#: A condition that no index supports.
QUERY = "/search{}?q=-subject%3Azzz"


def test_page_names_the_first_day_of_a_limited_search(
    public: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert public.get(QUERY.format(".json")).json()["looked_back_to"] is None
    monkeypatch.setattr(filters, "MAX_WALKED", 3)
    found = public.get(QUERY.format(".json")).json()
    day = found["looked_back_to"]
    assert day > "2024-03"
    page = public.get(QUERY.format("")).text
    assert f"Only messages from {day} on were read" in page
    assert f"for others add before:{day}." in page


@pytest.mark.parametrize("limit", [10, 2])
def test_tool_names_the_first_day_if_hits_are_short(
    public: httpx.Client, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    monkeypatch.setattr(filters, "MAX_WALKED", 3)
    found = public.get(f"{QUERY.format('.json')}&limit={limit}").json()
    text = describe_rows(found, 1_000).text
    assert ("were read: for others add before:" in text) is (limit == 10)


QUESTION = "Whom do I ask about the pump? Write to jo.poe@example.net or call the office."


def test_thread_begins_with_its_summary(public: httpx.Client) -> None:
    thread = public.get(f"/thread.json/{ROOT}").json()
    summary = thread["summary"]
    assert summary["messages"] == thread["messages"]
    assert summary["sentences"]
    bodies = {post["message_id"]: post["body_text"] for post in thread["posts"]}
    page = " ".join(public.get(f"/thread/{ROOT}").text.split())
    assert page.count('<details class="summary"') == 1
    for one in summary["sentences"]:
        assert bodies[one["message_id"]][one["start"] : one["end"]] == one["text"]
        assert one["html_url"] in page
    assert page.index("<h2>Summary</h2>") < page.index("<article")


def test_conversation_leads_to_its_thread_and_messages(public: httpx.Client) -> None:
    found = public.get("/search.json?q=jobs").json()
    hits = {hit["message_id"]: hit for hit in found["hits"]}
    assert [id for one in found["conversations"] for id in one["best"]] == [*hits]
    for one in found["conversations"]:
        thread = public.get(one["url"]).json()
        assert thread["thread_id"] == one["thread_id"]
        assert (thread["messages"], thread["people"]) == (one["messages"], one["people"])
        first = public.get(one["first"]["url"]).json()
        beginning = " ".join(one["first"]["text"].split())
        assert 0 < len(one["first"]["text"]) <= SHORTEST
        assert " ".join(first["body_text"].split()).find(beginning[:40]) >= 0
        assert {hits[id]["thread_id"] for id in one["best"]} == {one["thread_id"]}


@pytest.fixture
def summarized(world: World) -> World:
    """A thread whose question has an address, summarized."""
    world.load(mail("a", QUESTION), mail("b", references="<a@example.org>"))
    open_mail_words(world.words_url).index.ensure()
    world.threads()
    world.summaries()
    return world


@pytest.mark.parametrize("addresses", ["hidden", SHOWN])
def test_address_cut_by_a_sentence_is_hidden(summarized: World, addresses: str) -> None:
    at = QUESTION.index("poe@")
    cut = f"""update thread_summaries set sentences = jsonb_build_array(jsonb_build_object(
        'part', 'question', 'message_id', 'a@example.org', 'also', '[]'::jsonb,
        'start', {at}, 'end', {at + 11}, 'text', '{QUESTION[at : at + 11]}'))"""
    with summarized.connect() as connection:
        connection.execute(cut.encode())
    with open_service(summarized.settings()) as service:
        summary = Documents(service, Publication(addresses)).thread("a@example.org")["summary"]
    assert summary
    [sentence] = summary["sentences"]
    assert len(sentence["text"]) == 11
    assert (sentence["text"] == "poe@example") == (addresses == SHOWN)
    assert (sentence["text"] == 11 * "•") == (addresses == "hidden")
    assert sentence["message_id"] == "a@example.org"


def test_decision_is_shown_with_who_said_it(world: World) -> None:
    answer = mail(
        "b",
        "Fixed in SVN, tell poe@example.org.",
        subject="Re: about a",
        references="<a@example.org>",
    )
    world.load(mail("a", QUESTION), answer.replace(b"From: Ann", b"From: Sam"))
    open_mail_words(world.words_url).index.ensure()
    world.threads()
    world.summaries()
    with open_service(world.settings()) as service:
        thread = Documents(service, Publication("hidden")).thread("a@example.org")
    assert thread["summary"]
    decision = thread["summary"]["decision"]
    assert decision
    assert decision["decided"]
    assert decision["decided"]["text"] == "Fixed in SVN, tell •••••••••••••••."
    assert (decision["decided"]["who"], decision["superseded_by"]) == ("Sam", None)
    assert "from_email" not in decision["decided"]
    text = describe_thread(thread, 2_000).text
    assert "| Sam, 2024-03-04: Fixed in SVN" in text
    del thread["posts"][1]  # names of other pages of the thread are not compared
    text = describe_thread(thread, 2_000).text
    assert f"| Sam ({decision['decided']['namesake']}), 2024-03-04: Fixed in SVN" in text
    assert "said, in message b@example.org" in text


T = TypeVar("T")

#: Messages of the large thread, and characters of its longest message.
MANY, LONG = 2 * POSTS + 20, 3 * POST_CHARACTERS


class TracedService(SearchService):
    """A service that counts round trips of reads: the server sends one ReadyForQuery in each."""

    trace_file: Path
    trips = 0

    def read(self, function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        def traced(connection: psycopg.Connection) -> T:
            with self.trace_file.open("w+b") as trace:
                connection.pgconn.trace(trace.fileno())
                try:
                    return function(connection, *args, **kwargs)
                finally:
                    connection.pgconn.untrace()
                    trace.seek(0)
                    self.trips += sum(b"ReadyForQuery" in line for line in trace)

        return super().read(traced)


def fill_large(world: World) -> None:
    """Fill a thread of two messages, and one of many whose last is long."""
    large = [
        mail(f"b{n}", references=f"<b{n // 2}@example.org>" if n else "", body=f"Number {n}.")
        for n in range(MANY)
    ]
    longest = mail("long", body="A line of text.\n" * (LONG // 16), references="<b0@example.org>")
    small = [mail("a0"), mail("a1", references="<a0@example.org>")]
    fill(world, *small, *large, longest, last="messages").summaries()


long_threads = standing_world(fill_large)


@pytest.fixture(scope="module")
def service(long_threads: World) -> Iterator[TracedService]:
    with open_service(long_threads.settings(), kind=TracedService) as service:
        assert isinstance(service, TracedService)
        service.trace_file = long_threads.home / "trace"
        yield service


def test_round_trips_do_not_depend_on_the_thread_size(service: TracedService) -> None:
    documents = Documents(service, Publication())
    for make in (documents.thread, documents.message):
        trips = []
        for id in ("a1@example.org", f"b{MANY - 1}@example.org"):
            service.trips = 0
            make(id)
            trips.append(service.trips)
        assert trips[0] == trips[1] <= 6


def test_thread_pages_are_bounded_and_have_each_post_once(service: TracedService) -> None:
    documents = Documents(service, Publication())
    page: ThreadDocument | None = documents.thread("b0@example.org")
    seen: list[str] = []
    while page:
        assert len(page["posts"]) <= POSTS
        assert all(len(post["body_text"]) <= POST_CHARACTERS for post in page["posts"])
        seen += [post["message_id"] for post in page["posts"]]
        page = documents.thread(page["next"].removeprefix("/thread/")) if page["next"] else None
    assert sorted(seen) == sorted({*seen})
    assert len(seen) == MANY + 1


def test_id_leads_to_the_page_with_its_message(service: TracedService) -> None:
    for id in ("b0", f"b{MANY - 1}", "long"):
        page = Documents(service, Publication()).thread(f"{id}@example.org")
        assert f"{id}@example.org" in [post["message_id"] for post in page["posts"]]
        assert page["messages"] == MANY + 1
        assert page["url"] in page["pages"]
        assert len(page["pages"]) == -(-(MANY + 1) // POSTS)
