"""The summary of a thread on every surface: it says the same everywhere and shows no address."""

from pathlib import Path

import httpx
import pytest

from mail_assets.indexes.words import open_mail_words
from mail_assets.web.documents import Documents
from mail_assets.web.privacy import SHOWN, Publication
from mail_assets.web.searchers import SearchService, ServiceOptions
from mail_assets_tests.sample_corpus import ROOT
from mail_assets_tests.world import MARCH, World, mail

QUESTION = "Whom do I ask about the pump? Write to jo.poe@example.net or call the office."


def test_a_thread_opens_with_its_summary(public: httpx.Client) -> None:
    thread = public.get(f"/thread.json/{ROOT}").json()
    summary = thread["summary"]
    assert summary["messages"] == thread["messages"]
    assert summary["sentences"]
    bodies = {post["message_id"]: post["body_text"] for post in thread["posts"]}
    page = " ".join(public.get(f"/thread/{ROOT}").text.split())
    assert page.count('<section class="summary"') == 1
    for one in summary["sentences"]:
        assert bodies[one["message_id"]][one["start"] : one["end"]] == one["text"]
        assert one["url"] in page
    assert page.index('id="summary"') < page.index("<article")


def test_hits_for_whole_threads_say_how_the_thread_begins_and_ends(public: httpx.Client) -> None:
    found = public.get("/search.json?q=jobs&group=thread").json()["hits"]
    assert found
    for hit in found:
        thread = public.get(f"/thread.json/{hit['message_id']}").json()
        sentences = thread["summary"]["sentences"]
        assert hit["summary"] == (
            sentences if len(sentences) < 2 else [sentences[0], sentences[-1]]
        )
    assert "sentences" in public.get("/search?q=jobs&group=thread").text
    assert "summary" not in public.get("/search.json?q=jobs&group=few").json()["hits"][0]


@pytest.fixture
def world(world: World) -> World:
    """A thread whose question has an address, summarized."""
    world.archive(MARCH, mail("a", QUESTION), mail("b", references="<a@example.org>"))
    world.chain(MARCH, last="messages")
    open_mail_words(world.words_url).index.ensure()
    world.threads()
    world.summaries()
    return world


@pytest.mark.parametrize("addresses", ["hidden", SHOWN])
def test_an_address_is_hidden_even_where_a_sentence_cuts_it(
    world: World, tmp_path: Path, addresses: str
) -> None:
    at = QUESTION.index("poe@")
    cut = f"""update thread_summaries set sentences = jsonb_build_array(jsonb_build_object(
        'part', 'question', 'message_id', 'a@example.org', 'also', '[]'::jsonb,
        'start', {at}, 'end', {at + 11}, 'text', '{QUESTION[at : at + 11]}'))"""
    with world.connect() as connection:
        connection.execute(cut.encode())
    options = ServiceOptions(
        world.settings().search, world.forget_key, str(tmp_path / "store"), searchers=1
    )
    service = SearchService(options)
    try:
        thread = Documents(service, Publication(addresses)).thread("a@example.org")
    finally:
        service.close()
    [sentence] = thread["summary"]["sentences"]
    assert len(sentence["text"]) == 11
    assert (sentence["text"] == "poe@example") == (addresses == SHOWN)
    assert (sentence["text"] == 11 * "•") == (addresses == "hidden")
    assert sentence["message_id"] == "a@example.org"
