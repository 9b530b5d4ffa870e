"""Marks distinguish people without addresses, and do not reveal addresses."""

import re
from dataclasses import replace
from typing import cast

import pytest
from click import unstyle

from mail_assets.cli.series import format_series
from mail_assets.reading.series import read_series
from mail_assets.tables.lists import show_lists
from mail_assets.web.mcp_text import describe_summary
from mail_assets.web.privacy import MARK_LETTERS, SHOWN, Publication, mark_person
from mail_assets_tests.steps.test_group_series import FIRST, TITLE, load, post
from mail_assets_tests.web.conftest import fill, open_app, serving_world
from mail_assets_tests.web.readings import ask_tool
from mail_assets_tests.world import HARBOR, PIER, World, mail

KEY, OTHER = b"k" * 32, b"o" * 32


def test_mark_is_the_same_for_one_address_and_key() -> None:
    mark = mark_person(KEY, "Ann@Example.org")
    assert mark == mark_person(KEY, " ann@example.org ")
    assert re.fullmatch(rf"[b-z2-9]{{{MARK_LETTERS}}}", mark)
    assert mark != mark_person(OTHER, "ann@example.org")
    assert mark_person(KEY, "") == ""


def test_few_people_share_a_mark() -> None:
    marks = {mark_person(KEY, f"user{number}@example.org") for number in range(1_000)}
    assert len(marks) > 990


@pytest.mark.parametrize("key", [b"", KEY])
def test_only_pages_have_marks(key: bytes) -> None:
    given = {"from_name": "", "from_email": "ann@example.org", "posts": [{"from_email": "b@c.org"}]}
    shown = Publication(mark_key=key, marks_all=True).publish(given)
    assert "from_email" not in str(shown)
    assert ("mark" in shown) == bool(key)
    if key:
        assert shown["mark"] == mark_person(KEY, "ann@example.org")
        [post] = cast(list[dict[str, str]], shown["posts"])
        assert post["mark"] == mark_person(KEY, "b@c.org")
    assert Publication(SHOWN, key, marks_all=True).publish(given) == given


def nameless(id: str, sender: str, references: str = "") -> bytes:
    written = mail(id, "whale", sender=sender, subject="Whale", references=references)
    return written.replace(b"From: Ann <", b"From: <")


def test_people_without_a_name_are_distinguished(world: World) -> None:
    first = "<a@example.org>"
    fill(
        world,
        nameless("a", "one@example.org"),
        nameless("b", "two@example.org", first),
        nameless("c", "one@example.org", first),
        mail("d", "squid", sender="ann1@example.org", references=first),
        mail("e", "squid", sender="ann2@example.org", references=first),
        last="messages",
    )
    with serving_world(world) as client:
        thread = client.get("/thread/a@example.org").text
        again = client.get("/thread/a@example.org").text
        data = client.get("/thread.json/a@example.org").text
    with serving_world(world) as client:
        later = client.get("/thread/a@example.org").text
    names = re.findall(r"<h2><bdi>([^<]*)</bdi>(?: <span class=\"person\">(\w+)</span>)?", thread)
    assert [name for name, _ in names[:1]] == [name for name, _ in names if name == names[0][0]][:1]
    unknown = [name for name, _ in names if name.startswith("unknown sender")]
    assert len(unknown) == 3
    assert len({*unknown}) == 2
    namesakes = [mark for name, mark in names if name == "Ann"]
    assert len({*namesakes}) == 2
    assert all(namesakes)
    assert thread == again == later
    assert '"mark"' not in data


@pytest.mark.parametrize("addresses", ["hidden", "shown"])
def test_namesakes_are_distinguished_on_every_surface(world: World, addresses: str) -> None:
    """Another person writes under a name that looks like Ann's."""
    first = "<a@example.org>"
    fill(
        world,
        mail("a", "Shall the whale be kept here?", sender="ann@example.org"),
        mail("b", "The whale is kept.", sender="ann@example.org", references=first),
        mail("c", "The whale is sold.", sender="eve@example.com", references=first).replace(
            b"From: Ann", b"From: ANN"
        ),
        last="vectors",
    )
    world.summaries()
    with serving_world(world, addresses=addresses) as client:
        page = client.get("/thread/a@example.org").text
        answers = client.get("/message/a@example.org").text.partition('id="answers"')[2]
        outline = ask_tool(client, "get_thread", message_id="a@example.org").text
        texts = ask_tool(client, "get_thread", message_id="a@example.org", texts=True).text
        month = client.get("/lists/harbor/2024-03").text
        hits = client.get("/search?q=whale+mode:fulltext+group:message").text
        conversations = client.get("/search?q=sold+mode:fulltext").text
        data = [
            client.get("/search.json?q=whale+mode:fulltext+group:message").json()["hits"],
            [one["first"] for one in client.get("/search.json?q=sold").json()["conversations"]],
            client.get("/lists.json/harbor/2024-03").json()["posts"],
            client.get("/thread.json/a@example.org").json()["posts"],
        ]
        feeds = [
            client.get("/search.atom?q=whale").text,
            client.get("/lists.atom/harbor/2024-03").text,
            client.get("/thread.atom/a@example.org").text,
        ]
        found_hits = ask_tool(client, "semantic_search", query="sold mode:fulltext").text
    found = re.findall(r'<h2><bdi>A..</bdi> <span class="person">([^<]*)</span></h2>', page)
    assert len(found) == 3
    one, _, other = found
    assert one != other
    if addresses == "shown":
        assert (one, other) == ("ann@example.org", "eve@example.com")
    summary = page.partition("</details>")[0]
    assert f'<bdi>ANN</bdi> <span class="person">{other}</span>' in summary
    assert f'<span class="person">{other}</span>' in answers
    shown = [
        f'<bdi>{name}</bdi> <span class="person">{person}</span>'
        for name, person in (("Ann", one), ("ANN", other))
    ]
    for text in (month, hits, conversations):
        assert all(told in text for told in shown), text
    for messages in data:
        for message in messages:
            assert message["namesake"] == (other if message["from_name"] == "ANN" else one)
    for feed in feeds:
        assert f"<name>Ann ({one})</name>" in feed
        assert f"<name>ANN ({other})</name>" in feed
        assert feed.count(f'/namesake" term="{other}"') == 1
    for text in (outline, texts, found_hits):
        assert f"Ann ({one})" in text
        assert f"ANN ({other})" in text


@pytest.mark.parametrize("answers", ["", "<a@example.org>"])
def test_namesakes_are_distinguished_in_answers(world: World, answers: str) -> None:
    fill(
        world,
        mail("a", "The whale is kept in the harbor.", sender="ann@example.org"),
        mail(
            "b", "The whale is sold to somebody else.", sender="eve@example.com", references=answers
        ).replace(b"Subject: ", b"Subject: Sale of "),
        last="vectors",
    )
    asked = {"q": "Where is the whale kept or sold? mode:fulltext"}
    with serving_world(world) as client:
        found = client.post("/answer", json=asked, headers={"Accept": "application/json"})
        page = client.post("/answer", data=asked, headers={"Accept": "text/html"}).text
        told = ask_tool(client, "answer", question=asked["q"]).text
    marks = [one["namesake"] for one in found.json()["citations"]]
    assert len({*marks}) == (1 if answers else 2)
    for mark in marks:
        assert re.fullmatch(rf"[b-z2-9]{{{MARK_LETTERS}}}", mark)
        assert f'<bdi>Ann</bdi> <span class="person">{mark}</span>' in page
        assert f"Ann ({mark})" in told


def test_key_of_marks_is_stored_for_the_owner_alone(world: World) -> None:
    fill(world, mail("a", "whale"), last="messages")
    settings = replace(world.settings(), given_forget_key="")
    with open_app(settings):
        pass
    key = settings.home / "marks.key"
    assert key.stat().st_mode & 0o077 == 0


def test_each_sentence_of_a_summary_names_its_author(world: World) -> None:
    """Many mails push the author of a sentence off the page; the sentence still names them."""
    fill(
        world,
        mail("a", "Shall the whale be kept here?"),
        mail("b", "We decided to sell the whale.", sender="eve@example.com",
             references="<a@example.org>").replace(b"From: Ann", b"From: Eve"),
        last="chunks",
    )  # fmt: skip
    world.summaries()
    with serving_world(world) as client:
        summary = client.get("/thread.json/a@example.org").json()["summary"]
    sentences = {one["message_id"]: one for one in summary["sentences"]}
    eve = sentences["b@example.org"]
    assert (sentences["a@example.org"]["from_name"], eve["from_name"]) == ("Ann", "Eve")
    assert re.fullmatch(rf"[b-z2-9]{{{MARK_LETTERS}}}", eve["namesake"])
    assert "eve@example.com" not in str(summary)
    said = describe_summary(summary, 9_999, {"a@example.org": "Ann"})
    assert f"{eve['part']}, Eve ({eve['namesake']}): We decided to sell the whale." in said


def test_people_of_patches_are_distinguished(world: World) -> None:
    """A stranger with Ann's name refuses her patch, and posts another text under its id."""
    forger = "Ann <ann@evil.example>"
    load(world, FIRST, post("no", f"Re: [PATCH] {TITLE}", "NAK.\n", forger, 6, "v1"))
    load(world, FIRST.replace(b"loads", b"guns"), list_name=PIER)
    world.series()
    with serving_world(world) as client:
        [change] = client.get("/series.json/v1@example.org").json()["changes"]
        page = client.get("/series/v1@example.org").text
        text = ask_tool(client, "get_series", message_id="v1@example.org").text
    one, other = (x["namesake"] for x in (change["versions"][0], change["reason"]))
    assert one != other
    assert change["versions"][0]["contested"]
    for said in (page, text, change["words"]):
        assert "contested" in said
    assert all(mark in said for mark in (one, other) for said in (page, text))
    with world.connect() as connection:
        show_lists(connection, [HARBOR, PIER])
        series = read_series(connection, "v1@example.org")
    assert series is not None
    lines = [unstyle(line) for line in format_series(series, "")]
    assert "  rejected, Ann <ann@evil.example> on 2024-03-06" in lines
    assert "  v1, contested id" in lines
