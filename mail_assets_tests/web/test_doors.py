"""All doors say the same about a message: its id, author, marks, text, and what is hidden in it."""

import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import httpx
import psycopg
import pytest
from click.testing import CliRunner

from mail_assets.cli import main
from mail_assets.forgetting.forget import ForgetRequest
from mail_assets.mail.message.message import FLAGS
from mail_assets.mail.message.text_addresses import MASK
from mail_assets.sql_functions import install_functions
from mail_assets.tables.lists import record_lists
from mail_assets_tests.kept_worlds import standing_world
from mail_assets_tests.web.assistants import ask
from mail_assets_tests.web.conftest import serving_world
from mail_assets_tests.world import HARBOR, MARCH, PIER, World, mail

PATCH = (
    "Please apply.\n---\n--- a/crane.c\n+++ b/crane.c\n@@ -1 +1 @@\n-/* jo@example.org */\n+/* */\n"
)
NOTHING = (
    "--b\nContent-Type: image/png\nContent-Disposition: attachment; filename=x.png\n\nx\n--b--"
)
MIXED = "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b"


def at(day: int) -> str:
    return f"From list@example.org Sat Mar {day:2} 10:00:00 2024"


def load(world: World) -> None:
    """Load a message of each kind; PIER is a second list, with a contesting text."""
    world.load(
        mail("root", "Does the crane lift it?", subject="Crane limits", from_line=at(9)),
        mail("claimed", "It lifts one ton.", subject="Re: Crane limits", from_line=at(10),
             references="<root@example.org>"),
        mail("joined", "It lifted two.", subject="Re: Crane limits", from_line=at(11),
             references="<gone@example.org>", date="Tue, 05 Mar 2024 09:00:00 +0000"),
        mail("patch", PATCH, subject="[PATCH] crane: no names", from_line=at(12)),
        mail("empty", NOTHING, headers=MIXED, subject="A picture", from_line=at(13)),
        mail("secret", "Forget me.", subject="Secret", from_line=at(14)),
        mail("heir", "I remember.", references="<secret@example.org>", from_line=at(15)),
        last="chunks",
    )  # fmt: skip
    forged = mail("claimed", "It lifts nothing. Ask eve@example.net", subject="No crane",
                  sender="eve@example.net", from_line=at(20))  # fmt: skip
    world.load(forged.replace(b"From: Ann", b"From: Eve"), list_name=PIER, last="chunks")
    world.forget(ForgetRequest(["secret@example.org"], [], "asked to", "the postmaster"))
    world.threads()
    for name, month in ((HARBOR, MARCH), (PIER, MARCH)):
        world.words(month, name)


class Said(NamedTuple):
    """Facts of a message as a door says them; None if it does not say them."""

    author: str
    contested: bool | None
    by_subject: bool | None
    text: str | None  # the first line
    thread: str | None


#: Message, number of its text -> what all doors say. Addresses in texts are masked for the public.
KINDS: dict[tuple[str, int], Said] = {
    ("root", 1): Said("Ann", False, False, "Does the crane lift it?", "claimed"),
    ("claimed", 1): Said("Ann", True, False, "It lifts one ton.", "claimed"),
    ("claimed", 2): Said("Eve", True, False, "It lifts nothing. Ask", None),
    ("joined", 1): Said("Ann", False, True, "It lifted two.", "claimed"),
    ("patch", 1): Said("Ann", False, False, "Please apply.", "patch"),
    ("empty", 1): Said("Ann", False, False, "", "empty"),
    ("heir", 1): Said("Ann", False, False, "I remember.", "*"),
}
#: Number of addresses hidden in each text, where they are hidden.
HIDDEN_IN = {("claimed", 2): 1, ("patch", 1): 1}


def of_json(post: dict[str, Any], **more: Any) -> Said:
    body = post.get("body_text")
    one = {
        "contested": post.get("contested"), "by_subject": post.get("by_subject"),
        "text": None if body is None else body.strip().split("\n")[0],
        "thread": post.get("thread_id") or "", **more,
    }  # fmt: skip
    return Said(post["from_name"], **one)


standing = standing_world(load)


@pytest.fixture(scope="module")
def client(standing: World) -> Iterator[httpx.Client]:
    with serving_world(standing) as client:
        yield client


Door = Callable[[str, int], list[Said]]


def message_json(client: httpx.Client, id: str, text: int) -> list[Said]:
    return [of_json(client.get(f"/message.json/{id}?text={text}").json())]


def thread_json(client: httpx.Client, id: str, text: int) -> list[Said]:
    found = client.get(f"/thread.json/{id}").json()
    posts = [one for one in found["posts"] if one["message_id"] == id and text == 1]
    return [of_json(one, thread=found["thread_id"]) for one in posts]


def month_json(client: httpx.Client, id: str, text: int) -> list[Said]:
    posts = [
        one
        for name in (HARBOR, PIER)
        for one in client.get(f"/lists.json/{name}/{MARCH}").json()["posts"]
        if one["message_id"] == id and ("text=" in one["url"]) == (text > 1)
    ]
    return [of_json(one) for one in posts]


def hit_json(client: httpx.Client, id: str, text: int) -> list[Said]:
    query = f"id:{id}" + (f" list:{PIER}" if text > 1 else "")
    hits = client.get("/search.json", params={"q": query, "mode": "fulltext"}).json()["hits"]
    return [of_json(one) for one in hits]


def same(found: Said, wanted: Said) -> bool:
    """Return whether a door says nothing else than is wanted."""
    thread = None if found.thread is None else found.thread.partition("@")[0]
    text = None if found.text is None else found.text.replace(MASK, "").strip()
    text = text and text.removesuffix("eve@example.net").removesuffix("[address]").strip()
    found = found._replace(thread=thread, text=text)
    wanted = wanted._replace(thread=wanted.thread or "")
    return all(x is None or x == y or (y == "*" and x) for x, y in zip(found, wanted, strict=True))


@pytest.mark.parametrize("door", [message_json, thread_json, month_json, hit_json])
def test_json_says_the_same(client: httpx.Client, door: Any) -> None:
    for (name, text), wanted in KINDS.items():
        found = door(client, f"{name}@example.org", text)
        assert len(found) == (0 if door is thread_json and text > 1 else 1), name
        for one in found:
            assert same(one, wanted), (door, name, text, one)


def test_public_doors_hide_the_same_addresses(client: httpx.Client) -> None:
    for name, text in KINDS:
        document = client.get(f"/message.json/{name}@example.org?text={text}").json()
        assert document["addresses_hidden"] == HIDDEN_IN.get((name, text), 0)
        assert document["patch_altered"] == (name == "patch")
        tool = ask(
            f"{client.base_url}/mcp", "get_message", message_id=f"{name}@example.org", text=text
        )
        assert ("addresses hidden in the text" in tool) == ((name, text) in HIDDEN_IN)
        mailbox = client.get(f"/message.mbox/{name}@example.org?text={text}").text
        for said in (json.dumps(document), tool, mailbox):
            assert "jo@example.org" not in said
            assert "eve@example.net" not in said


def test_tools_say_the_same(client: httpx.Client) -> None:
    for (name, text), wanted in KINDS.items():
        id = f"{name}@example.org"
        said = [ask(f"{client.base_url}/mcp", "get_message", message_id=id, text=text)]
        if text == 1:
            whole = ask(
                f"{client.base_url}/mcp", "get_thread", message_id=id, texts=True, tokens=8000
            )
            said += [part for part in whole.split("\n\n") if f". message {id}" in part]
            assert len(said) == 2
        for one in said:
            assert f"From: {wanted.author}" in one
            assert ("Contested id" in one) == wanted.contested, one
            assert ("joined by subject" in one) == wanted.by_subject, one
            assert (wanted.text or "") in one
    whole = ask(f"{client.base_url}/mcp", "get_thread", message_id="heir@example.org")
    assert "a message that was forgotten" in whole
    assert "was forgotten" in client.get("/thread/heir@example.org").text


@pytest.fixture(scope="module")
def run(standing: World) -> Callable[..., str]:
    more = f'[{PIER}]\nsource = "{standing.folder(PIER)}"\n'
    environ = standing.environ(more)

    def run(*arguments: str) -> str:
        result = CliRunner().invoke(main, arguments, env=environ)
        assert result.exit_code == 0, result.output
        return result.stdout

    return run


def test_mail_without_a_text_is_called_so(
    standing: World, client: httpx.Client, run: Callable[..., str]
) -> None:
    says, empty = FLAGS["no_text"], "empty@example.org"
    server = f"{client.base_url}/mcp"
    shown = [
        ask(server, "get_message", message_id=empty),
        ask(server, "get_thread", message_id=empty),
        ask(server, "get_thread", message_id=empty, texts=True),
        client.get(f"/message/{empty}").text,
        client.get(f"/thread/{empty}").text,
        run("thread", empty),
    ]
    assert [says[:30] in one.replace("The message", "the message") for one in shown] == [True] * 6
    assert client.get(f"/thread.json/{empty}").json()["posts"][0]["flags"] == ["no_text"]


def test_commands_say_the_same(run: Callable[..., str]) -> None:
    rows = [
        json.loads(line)
        for name in (HARBOR, PIER)
        for line in run("list", name, "--month", MARCH, "--json").splitlines()
    ]
    listed = {(one["message_id"], one["from_email"] != "ann@example.org"): one for one in rows}
    assert len(listed) == len(KINDS)
    for (name, text), wanted in KINDS.items():
        id = f"{name}@example.org"
        row = listed[id, text > 1]
        assert row["contested"] == wanted.contested
        assert ((row["thread_id"] or "").partition("@")[0] or None) in (wanted.thread, id) or (
            wanted.thread == "*"
        )
        if text > 1:
            continue
        thread = json.loads(run("thread", id, "--json"))
        [post] = [one for one in thread["posts"] if one["message_id"] == id]
        assert same(of_json(post, thread=thread["thread_id"]), wanted), post
        hits = json.loads(run("search", f"id:{id}", "--mode", "fulltext", "--json"))["hits"]
        assert [same(of_json(hit), wanted) for hit in hits] == [True], hits


def test_public_views_say_the_same(standing: World) -> None:
    with standing.connect() as connection, connection.transaction(force_rollback=True):
        record_lists(connection, dict.fromkeys((HARBOR, PIER), "english"))
        connection.execute("create role doors")
        install_functions(connection, {HARBOR: "english", PIER: "english"}, public="doors")
        query = (
            "select message_id, coalesce(text_number, 1), from_name, contested,"
            " split_part(btrim(body_text, e'\\n'), e'\\n', 1), thread_id"
            " from mail_public.messages"
        )
        rows = {
            (id, n): Said(a, c, None, b, t or "") for id, n, a, c, b, t in read(connection, query)
        }
        assert rows.keys() == {(f"{name}@example.org", text) for name, text in KINDS}
        for (name, text), wanted in KINDS.items():
            assert same(rows[f"{name}@example.org", text], wanted), rows
        joined = read(
            connection,
            "select message_id from mail_public.threads where by_subject and not is_ghost",
        )
        assert joined == [("joined@example.org",)]


def read(connection: psycopg.Connection, query: str) -> list[tuple[Any, ...]]:
    return connection.execute(query.encode()).fetchall()
