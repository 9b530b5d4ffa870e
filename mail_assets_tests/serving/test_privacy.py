"""Addresses are on no page, and in no data, however they might be written there."""

import html
import re
from urllib.parse import unquote

import httpx
import psycopg
import pytest

from mail_assets.web.documents import POST_CHARACTERS
from mail_assets.web.requests import page_url
from mail_assets_tests.sample_corpus import QUERY, Corpus
from mail_assets_tests.serving.conftest import serving_world
from mail_assets_tests.serving.readings import ask_tool, read_response
from mail_assets_tests.serving.test_encoded import HEAD, TAIL, armour
from mail_assets_tests.world import World, mail

#: Marks of highlights, which could split an address in two.
_TAGS = re.compile(r"<[^>]*>")


def read_addresses(corpus: Corpus) -> set[str]:
    with psycopg.connect(corpus.settings.pg_dsn) as connection:
        rows = connection.execute(
            "select from_email || ' ' || array_to_string(recipients || cc || reply_to, ' ')"
            " from messages"
        ).fetchall()
    return {found.lower() for (row,) in rows for found in re.findall(r"[^\s<>,]+@[^\s<>,]+", row)}


def read_ids(corpus: Corpus) -> list[str]:
    with psycopg.connect(corpus.settings.pg_dsn) as connection:
        return [id for (id,) in connection.execute("select distinct message_id from messages")]


def spellings(text: str) -> set[str]:
    """Return a page as a harvester might read it."""
    plain = html.unescape(text)
    return {one.lower() for one in (text, plain, unquote(plain), _TAGS.sub("", plain))}


def test_no_address_is_anywhere(public: httpx.Client, corpus: Corpus) -> None:
    addresses = read_addresses(corpus)
    assert len(addresses) > 10
    ids = read_ids(corpus)
    paths = ["/lists", *(page_url(page, id) for page in ("message", "thread") for id in ids)]
    queries = [QUERY, "signed-off-by", *sorted(addresses)[:5]]
    paths += [f"/search?q={one}&limit=50&group=message" for one in queries]
    for path in paths:
        for one in (path, re.sub(r"^/(\w+)", r"/\1.json", path)):
            response = public.get(one)
            # ids are shown, and what the client has sent itself
            for text in spellings(response.text):
                for known in (*ids, *queries):
                    text = text.replace(known.lower(), "")
                assert not [address for address in addresses if address in text], one


def test_who_wants_to_shows_them(private: httpx.Client) -> None:
    hits = private.get("/search.json", params={"q": QUERY}).json()["hits"]
    assert all("@" in hit["from_email"] for hit in hits)


def test_no_key_that_is_pasted_is_anywhere(world: World) -> None:
    body = f"My whale key:\n\n{HEAD}\n\n{armour()}\n{TAIL}\n\nWrite to me about whales."
    answer = mail("b", body, subject="whale", references="<a@example.org>")
    world.archive("2024-03", mail("a", body, subject="whale"), answer)
    world.chain(last="words")
    world.threads()
    id = "a@example.org"
    paths = [f"/{page}/{id}" for page in ("message", "thread", "message.json", "thread.json")]
    paths += [f"/thread.atom/{id}", f"/thread.mbox.gz/{id}", f"/message.mbox/{id}"]
    query = "q=whale&mode=fulltext"
    paths += [f"/search{kind}?{query}" for kind in ("", ".json", ".atom", ".mbox.gz")]
    with serving_world(world) as client:
        responses = [client.get(path) for path in paths]
        responses.append(ask_tool(client, "get_message", message_id=id))
        responses.append(ask_tool(client, "semantic_search", query="whale mode:fulltext"))
        for response in responses:
            text = read_response(response)
            assert response.status_code == 200
            assert not [line for line in armour().split("\n") if line in text], response.url
            assert "whale" in text
        document = client.get(f"/message.json/{id}").json()
        assert len(document["body_text"].rstrip("\n")) == len(body)


@pytest.mark.parametrize("line", ["harbor.example about it.", "harbor.example " + "x" * 800])
def test_no_part_of_an_address_is_where_a_thread_cuts_a_text(world: World, line: str) -> None:
    whole = "A line about whales that is whole.\n" * ((POST_CHARACTERS - 60) // 35)
    world.archive("2024-03", mail("a", f"{whole}Write to anna.moor@\n{line}\n{whole}"))
    world.chain(last="messages")
    world.threads()
    with serving_world(world) as client:
        [post] = client.get("/thread.json/a@example.org").json()["posts"]
        pages = [client.get("/thread/a@example.org").text, post["body_text"]]
    assert len(whole) <= len(post["body_text"]) <= POST_CHARACTERS < post["characters"]
    assert post["body_text"].endswith("\n")
    assert max(end for _, end, _ in post["segments"]) == len(post["body_text"])
    for text in pages:
        assert "that is whole" in text
        assert "anna.moor" not in text


def test_nobody_makes_an_address_readable_in_the_mail_of_others(world: World) -> None:
    anna, carl, id = "anna.moor@harbor.example", "carl.moor@harbor.example", "b1@example.org"
    body = f"whale To: {anna}, {carl}; see <{id}>"
    world.archive(
        "2024-03",
        mail("a", body, subject=f"whale {anna} {carl}"),
        mail("b1", references="<a@example.org>"),
        mail("c", headers=f"In-Reply-To: <{anna}>"),
        mail("d", references=f"<{anna}>"),
        mail("e", sender=carl),
        mail("f").replace(b"<f@example.org>", f"<{carl}>".encode()),
    )
    world.chain(last="words")
    world.threads()
    paths = [f"/{page}/a@example.org" for page in ("message", "message.json", "thread.json")]
    paths += ["/message.mbox/a@example.org", "/thread.atom/a@example.org"]
    with serving_world(world) as client:
        for path in paths:
            text = html.unescape(read_response(client.get(path)))
            assert "anna.moor" not in text, path
            assert "carl.moor" not in text, path
            assert f"<{id}>" in text or f">{id}</a>" in text, path
