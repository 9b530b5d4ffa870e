"""Hostile mail in a real browser: nothing of it runs, and the browser refuses nothing."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from mail_assets_tests.openai.fake_chat import fake_chat
from mail_assets_tests.openai.fake_server import serving as serving_fake
from mail_assets_tests.sample_corpus import QUERY, Corpus
from mail_assets_tests.web.chromium import CHROMIUM, EXECUTED, REFUSED, Chromium, browsing
from mail_assets_tests.web.conftest import fill, serving_world
from mail_assets_tests.web.test_answers import serving_model
from mail_assets_tests.web.test_connections import listening
from mail_assets_tests.world import World, mail

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="needs chromium, of Debian's package"),
]

ATTACKS = [
    "</script><script>alert(1)</script>", "<img src=x onerror=alert(2)>", '"><svg onload=alert(3)>',
    "' autofocus onfocus='alert(4)", "</title></textarea></style><script>alert(5)</script>",
    "<iframe srcdoc='<script>alert(6)</script>'></iframe>",
    "<a href=javascript:alert(7)>x</a><base href=//evil.example/>",
    "]]><script>alert(8)</script><![CDATA[", "&lt;script&gt;alert(9)&lt;/script&gt;",
    "<p style=background:url(//evil.example)>x</p>",
]  # fmt: skip
ALL = " ".join(ATTACKS)
#: Messages of a browser about a page that is an error.
LOST = "Failed to load resource"


def hostile(number: int, attack: str) -> bytes:
    """Return a message with an attack in every field that a page shows."""
    escaped = attack.replace('"', '\\"')
    attached = (
        f"\n--b\nContent-Type: text/plain\n\nwhale {attack}\n> {attack}\n\n-- \n{attack}\n--b\n"
        f'Content-Type: text/plain; name="{escaped}.txt"\n'
        f'Content-Disposition: attachment; filename="{escaped}.txt"\n\n{attack}\n--b--\n'
    )
    return mail(
        f"m{number}",
        attached,
        subject=f"whale {attack}",
        headers=f'Content-Type: multipart/mixed; boundary=b\nTo: "{escaped}" <x@example.org>\n'
        f'Reply-To: "{escaped}" <y@example.org>',
        references="<m0@example.org>" if number else "",
    ).replace(b"From: Ann <", f'From: "{escaped}" <'.encode())


@contextmanager
def opened(world: World, browser: Chromium) -> Iterator[tuple[Chromium, str]]:
    fill(world, *(hostile(n, attack) for n, attack in enumerate([ALL, *ATTACKS])))
    with serving_world(world) as client:
        yield browser, str(client.base_url)


def of(events: list[dict[str, Any]], method: str) -> list[str]:
    """Return the events of one method."""
    return [str(event["params"]) for event in events if event["method"] == method]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    with browsing(tmp_path_factory.mktemp("chromium")) as started:
        yield started


def test_browser_reports_scripts_and_refusals(browser: Chromium) -> None:
    async def attacked(request: Request) -> Response:
        policy = {"Content-Security-Policy": request.query_params.get("policy", "")}
        return HTMLResponse(f"<p>{ATTACKS[0]} {ATTACKS[1]}", headers=policy)

    with listening(Starlette(routes=[Route("/", attacked)])) as (_, port):
        bare = browser.visit(f"http://127.0.0.1:{port}/")
        assert len(of(bare, EXECUTED)) == 2
        strict = browser.visit(f"http://127.0.0.1:{port}/?policy=default-src%20'none'")
        assert not of(strict, EXECUTED)
        assert of(strict, REFUSED)


def test_nothing_in_mail_runs_in_a_browser(world: World, browser: Chromium) -> None:
    query = quote(f"whale {ALL}"[:1500])
    paths = [
        "/",
        "/lists",
        *(f"/message/m{n}@example.org" for n in range(len(ATTACKS) + 1)),
        "/message.json/m0@example.org",
        "/thread/m0@example.org",
        "/thread.json/m0@example.org",
        "/thread.atom/m0@example.org",
        "/search?q=whale&mode=fulltext&group=message",
        "/search.json?q=whale&mode=fulltext",
        "/search.atom?q=whale&mode=fulltext",
        f"/search?q={query}&mode=fulltext",
        f"/search.atom?q={query}&mode=fulltext",
        f"/search?q=whale&list={quote(ALL)}",
        f"/search?q={quote('has:' + ALL)}",
        f"/search?{quote(ALL)}=x",
        f"/message/{quote(ALL, safe='')}",
        f"/message.json/{quote(ALL, safe='')}",
        f"/{quote(ALL, safe='')}",
    ]
    with opened(world, browser) as (_, site):
        said = {path: browser.visit(site + path) for path in paths}
    assert {path: run for path, one in said.items() if (run := of(one, EXECUTED))} == {}
    refused = {
        path: [text for text in of(one, REFUSED) if LOST not in text] for path, one in said.items()
    }
    assert {path: texts for path, texts in refused.items() if texts} == {}


#: Script that returns the answer above the hits when it is complete.
ANSWER = """new Promise(give => {
  const look = () => document.querySelector("#answer .note")?.textContent.startsWith("Written")
    ? give(document.querySelector("#answer .answer").innerHTML) : setTimeout(look, 10);
  look();
})"""


def test_script_links_citations_but_not_code(corpus: Corpus, browser: Chromium) -> None:
    model = fake_chat("Read `argv[1]` ", "first [1].\n```\nboats[1]\n```\nSo [1].")
    with serving_fake(model) as chat, serving_model(corpus, chat) as client:
        browser.visit(f"{client.base_url}/search?q={quote(QUERY)}")
        found = browser.ask("Runtime.evaluate", expression=ANSWER, awaitPromise=True)
    shown = re.sub(r'<a href="/message/[^"]*">', "<a>", found["result"]["value"])
    assert shown == "Read `argv[1]` first [<a>1</a>].\n```\nboats[1]\n```\nSo [<a>1</a>]."
