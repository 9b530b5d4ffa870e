"""Messages joined to a thread only by subject are marked on all pages and in all files."""

import gzip

from mail_assets_tests.web.assistants import ask
from mail_assets_tests.web.conftest import fill, serving_world
from mail_assets_tests.world import World, mail

A, B, C = (f"{name}@example.org" for name in "abc")
MARK = "joined by subject"


def test_message_that_joined_by_subject_is_marked_everywhere(world: World) -> None:
    stranger = mail("b", subject="Re: about a", references="<gone@example.org>")
    fill(world, mail("a"), stranger, mail("c", references=f"<{A}>"))
    with serving_world(world) as client:
        thread = client.get(f"/thread.json/{A}").json()
        marks = {post["message_id"]: post["by_subject"] for post in thread["posts"]}
        assert marks == {A: False, "gone@example.org": True, B: True, C: False}
        assert thread["summary"] is None
        for name in (A, B, C):
            joined = name == B
            message = client.get(f"/message.json/{name}").json()
            assert (message["thread_id"], message["by_subject"]) == (A, joined)
            page = client.get(f"/message/{name}").text
            assert ("Joined by subject" in page) == joined
            assert ("First message of its subject" in page) == joined
            assert ("Message that it replies to" in page) == (name == C)
            assert (MARK in ask(f"{client.base_url}/mcp", "get_message", message_id=name)) == joined
        page = client.get(f"/thread/{A}").text
        assert page.count(MARK) == 1
        assert page.count("in reply to") == 1
        assert ask(f"{client.base_url}/mcp", "get_thread", message_id=A).count(MARK) == 1
        assert client.get("/lists/harbor/2024-03").text.count(MARK) == 1
        assert client.get(f"/thread.atom/{A}").text.count(f'label="{MARK}"') == 1
        mailbox = gzip.decompress(client.get(f"/thread.mbox.gz/{A}").content)
        assert mailbox.count(b"X-Joined-By: subject\n") == 1


def test_mark_is_gone_when_the_parent_arrives(world: World) -> None:
    stranger = mail("b", subject="Re: about a", references="<c@example.org>")
    fill(world, mail("a"), stranger)
    fill(world, mail("a"), stranger, mail("c", subject="Something else"))
    with serving_world(world) as client:
        message = client.get(f"/message.json/{B}").json()
        assert (message["parent_id"], message["by_subject"]) == (C, False)
        assert client.get(f"/thread.json/{A}").json()["messages"] == 1
