"""A crawler that decodes like a harvester finds no address of the archive."""

from collections import deque
from collections.abc import Iterable
from urllib.parse import quote

import httpx
import pytest

from mail_assets.web.privacy import SHOWN
from mail_assets_tests.kept_worlds import standing_world
from mail_assets_tests.web.conftest import BASE_URL, fill, serving_world
from mail_assets_tests.web.readings import ask_tool, find_links, read_response, readings
from mail_assets_tests.world import World, mail

#: Local parts of addresses; each occurs once, in one spelling.
USERS = [f"zq{name}x" for name in ("sender", "to", "cc", "reply", "name", "subject", "file")]
SPELLED = {
    "zqplainx": "zqplainx@harbour.example",
    "zqanglex": "<zqanglex@harbour.example>",
    "zqmailtox": "mailto:zqmailtox@harbour.example?subject=whale",
    "zqatx": "zqatx at harbour.example",
    "zqdotx": "zqdotx [at] harbour [dot] example",
    "zqpercentx": "http://archive.example/?to=zqpercentx%40harbour.example",
    "zqentityx": "zqentityx&#64;harbour.example zqentityx&commat;harbour.example",
    "zqwidex": "zqwidex\uff20harbour.example",
    "zqzerox": "zq\u200bzerox@harbour.example",
    "zqmarkedx": "whale-zqmarkedx@whale.example",
    "zqlocalx": "zqlocalx@localhost",
    "zqquotedx": '"zqquotedx whale"@harbour.example',
    "zqpatchx": "Signed-off-by: Ann <zqpatchx@harbour.example>",
}
BODY = "\n".join(f"whale {text} ballast\n> {text}" for text in SPELLED.values())
#: Most pages that are read with addresses hidden.
MOST = 150


def attached(number: int, body: str) -> bytes:
    return mail(
        f"m{number}",
        f"\n--b\nContent-Type: text/plain; charset=utf-8\n\n{body}\n-- \nzqplainx@harbour.example\n"
        '--b\nContent-Type: text/plain; name="zqfilex@harbour.example.txt"\n'
        'Content-Disposition: attachment; filename="zqfilex@harbour.example.txt"\n\nwhale\n--b--\n',
        sender="zqsenderx@harbour.example",
        subject="whale for zqsubjectx@harbour.example" if not number else "Re: whale",
        references="<m0@example.org>" if number else "",
        headers="Content-Type: multipart/mixed; boundary=b\n"
        "To: Tom <zqtox@harbour.example>\nCc: zqccx@harbour.example\n"
        "Reply-To: zqreplyx@harbour.example",
    ).replace(b"From: Ann", b'From: "zqnamex@harbour.example via harbor"')


def crawl(client: httpx.Client, seeds: Iterable[str], most: int) -> dict[str, str]:
    """Return the responses of up to `most` paths that are reached from the seeds, by path."""
    waiting = deque(dict.fromkeys(seeds))
    found: dict[str, str] = {}
    while waiting and len(found) < most:
        path = waiting.popleft()
        if path not in found:
            found[path] = read_response(client.get(path))
            waiting.extend(find_links(found[path], BASE_URL))
    return found


def seeds() -> list[str]:
    ids = [f"m{number}@example.org" for number in range(2)]
    pages = ["", "lists", "lists.json", "openapi.json", "robots.txt", "nowhere", "message"]
    pages += [f"{name}/{id}" for id in ids for name in ("message", "message.json", "thread")]
    pages += [f"thread{kind}/{ids[0]}" for kind in (".json", ".atom", ".mbox.gz")]
    pages += [f"{name}/{ids[0]}" for name in ("message.mbox", "similar", "similar.json")]
    pages += [f"{name}/m9@example.org" for name in ("message.json", "thread", "similar.json")]
    asked = ["whale", '"whale ballast"', "ballast sort:date", "from:tom", "file:zq", "subject:for"]
    asked += ["has:attachment", "list:nowhere", "zq*", "harbour"]
    pages += [
        f"search{kind}?q={quote(query)}&mode=fulltext&group=message"
        for query in asked
        for kind in ("", ".json", ".atom", ".mbox.gz")
    ]
    return [f"/{page}" for page in pages]


def ask_tools(client: httpx.Client) -> dict[str, str]:
    id = "m0@example.org"
    calls: list[tuple[str, dict[str, object]]] = [
        ("semantic_search", {"query": "whale mode:fulltext"}),
        ("explain_search", {"query": "whale mode:fulltext from:ann"}),
        ("get_message", {"message_id": id, "tokens": 8000}),
        ("get_thread", {"message_id": id, "tokens": 8000}),
        ("similar", {"message_id": id}),
        ("list_lists", {}),
        ("get_message", {"message_id": "nobody@example.org"}),
    ]
    return {
        f"{name} {arguments}": read_response(ask_tool(client, name, **arguments))
        for name, arguments in calls
    }


def find_users(responses: dict[str, str]) -> dict[str, set[str]]:
    """Return the local parts of addresses in responses, by path."""
    leaked = {}
    for where, text in responses.items():
        every = "\n".join(readings(text))
        if users := {user for user in (*USERS, *SPELLED) if user in every}:
            leaked[where] = users
    return leaked


world = standing_world(lambda world: fill(world, *(attached(n, BODY) for n in range(2))))


def test_crawler_finds_no_address(world: World) -> None:
    with serving_world(world) as client:
        responses = crawl(client, seeds(), MOST) | ask_tools(client)
    assert len(responses) > 60
    assert find_users(responses) == {}


def test_crawler_finds_addresses_that_are_shown(world: World) -> None:
    with serving_world(world, SHOWN) as client:
        responses = crawl(client, seeds(), len(seeds())) | ask_tools(client)
    found = find_users(responses)
    assert set().union(*found.values()) == {*USERS, *SPELLED}
    for kind in ("/search", "/message/", "/thread.atom", "/thread.mbox.gz", "get_message"):
        assert [where for where in found if where.startswith(kind)], kind


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "evil.example"},
        {"x-forwarded-host": "evil.example"},
        {"x-forwarded-proto": "gopher", "x-forwarded-prefix": "/evil.example"},
        {"forwarded": "host=evil.example;proto=gopher"},
        {"x-original-url": "/evil.example", "x-rewrite-url": "/evil.example"},
    ],
)
def test_forged_host_is_in_no_response(public: httpx.Client, headers: dict[str, str]) -> None:
    for path in (
        "/",
        "/lists.json",
        "/search?q=evil",
        "/message-id/x@y",
        "/thread/x@y/",
        "/static",
    ):
        text = read_response(public.get(path, headers=headers))
        assert "evil.example" not in text, path
        assert "gopher" not in text, path
