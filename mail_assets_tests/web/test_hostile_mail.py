"""Hostile mail is shown as text on every page."""

import html
import re
from html.parser import HTMLParser
from urllib.parse import quote

import httpx
from click.testing import CliRunner

from mail_assets.cli import main
from mail_assets.web.privacy import HIDDEN, SHOWN
from mail_assets.web.responses import static_url
from mail_assets_tests.forgetting.test_forget_messages import forget
from mail_assets_tests.web.assistants import ask
from mail_assets_tests.web.conftest import fill, serving_world
from mail_assets_tests.web.readings import Page
from mail_assets_tests.world import World, mail

ATTACKS = [
    "</script><script>alert(1)</script>", "<img src=x onerror=alert(1)>", '"><svg onload=alert(1)>',
    "' autofocus onfocus='alert(1)", "{{ 1234 * 4321 }}", "javascript:alert(1)",
    "\u2028</title><script>alert(1)</script>",
]  # fmt: skip
KEYS = f'<script src="{static_url("keys.js")}" defer>'
#: Control character that shows the rest of a line from right to left.
TURN = "\u202e"


def check(response: httpx.Response) -> None:
    page = Page(response.text)
    assert not {"img", "iframe", "object", "style"} & {*page.tags}
    # one script, of this site, for keyboard shortcuts
    assert re.findall(r"<script[^>]*>", response.text) == [KEYS]
    assert not [one for one in page.attributes if one.startswith("on") or one == "style"]
    assert all(url.startswith(("/", "#", "http://", "https://")) for url in page.links)
    assert "5332114" not in response.text


def test_mail_is_never_markup(world: World) -> None:
    fill(
        world,
        *(
            mail(
                f"m{n}",
                body=f"{attack}\n> {attack}\n\nwhale {attack}\n-- \n{attack}",
                subject=attack.replace("\u2028", " "),
                headers=f"Reply-To: {attack!r} <x@example.org>",
                references=f"<m{n - 1}@example.org>" if n else "",
            )
            for n, attack in enumerate(ATTACKS)
        ),
    )
    with serving_world(world) as client:
        for n in range(len(ATTACKS)):
            check(client.get(f"/message/m{n}@example.org"))
        check(client.get("/thread/m0@example.org"))
        for attack in [*ATTACKS, "whale"]:
            response = client.get("/search", params={"q": f"{attack} whale", "mode": "fulltext"})
            assert response.status_code in (200, 400)
            check(response)
            check(client.get(f"/message/{attack.replace('/', '%2F')}"))


class Turned(HTMLParser):
    """Parser of text with bidi controls: counts isolated text, and collects the rest."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.kept = 0
        self.loose: list[str] = []
        self._open: list[tuple[str, bool]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ("input", "link", "meta"):  # these have no end tag
            # an item with its own direction also contains text of the site
            isolates = tag in ("bdi", "title") or (("dir", "auto") in attrs and tag != "li")
            self._open.append((tag, isolates))

    def handle_endtag(self, tag: str) -> None:
        if self._open[-1][0] == tag:
            self._open.pop()

    def handle_data(self, data: str) -> None:
        if TURN in data:
            if any(isolates for _, isolates in self._open):
                self.kept += 1
            else:
                self.loose.append(f"{' '.join(tag for tag, _ in self._open)}: {data}")


def test_bidi_controls_do_not_affect_other_text(world: World) -> None:
    turned = [
        mail(f"{TURN}a", f"> whale {TURN}\n> quoted\n\nwhale {TURN}", subject=f"whale {TURN}"),
        mail("b", "whale", subject=f"other {TURN}", references=f"<{TURN}a@example.org>"),
        mail("c", "whale", references=f"<b@example.org> <{TURN}ghost@example.org>"),
    ]
    fill(world, *(one.replace(b"Ann", f"{TURN}Ann".encode()) for one in turned))
    paths = [
        f"/message/{quote(TURN)}a@example.org",
        "/thread/b@example.org",
        "/lists/harbor/2024-03",
        "/search?q=whale+mode:fulltext",
        "/search?q=whale+mode:fulltext+group:message",
    ]
    for addresses in (HIDDEN, SHOWN):
        with serving_world(world, addresses) as client:
            pages = {path: Turned(client.get(path).text) for path in paths}
        assert {path: page.loose for path, page in pages.items()} == {path: [] for path in paths}
        # bodies keep bidi controls; names and subjects do not
        assert {path for path, page in pages.items() if page.kept} == {*paths[:2]}


def print_mail(world: World, *arguments: str) -> str:
    return CliRunner().invoke(main, arguments, env=world.environ()).stdout


def test_marks_of_direction_in_a_patch_are_written_out(world: World) -> None:
    diff = (
        f"diff --git a/a.c b/a.c\n--- a/a.c\n+++ b/a.c\n@@ -1 +1,2 @@\n int a;\n+/*{TURN} */ b;\n"
    )
    fill(world, mail("p", f"Because.\n---\n{diff}", subject="[PATCH] turn"), last="messages")
    with serving_world(world) as client:
        page = client.get("/message/p@example.org").text
        text = client.get("/message.json/p@example.org").json()["body_text"]
        server = f"{client.base_url}/mcp"
        told = ask(server, "get_message", message_id="p@example.org")
        rest = ask(server, "get_message", message_id="p@example.org", offset=40)
        whole = ask(server, "get_thread", message_id="p@example.org", texts=True, quotes=True)
    printed = print_mail(world, "show", "p@example.org")
    full = print_mail(world, "thread", "--full", "p@example.org")
    assert all("+/*[U+202E] */ b;" in x for x in (told, rest, whole, printed, full))
    assert "+/*[U+202E] */ b;" in page
    assert TURN not in page
    assert TURN in text


def test_question_is_repeated_without_controls(world: World) -> None:
    fill(world, mail("a", "whale"))
    asked = quote("wh\x01ale \x9b\u202e\u2066")
    with serving_world(world) as client:
        for path in ("/search", "/search.json", "/search.atom", "/ask"):
            for query in (f"q={asked}", f"q={asked}&sender={asked}", "q=%01"):
                text = html.unescape(client.get(f"{path}?{query}").text)
                assert not re.search("[\x01\x9b\u202e\u2066]", text), (path, query)


def test_forgotten_message_is_gone(world: World) -> None:
    fill(world, mail("a"), mail("b", references="<a@example.org>"))
    with serving_world(world) as client:
        assert client.get("/message/a@example.org").status_code == 200
        forget(world, "a")
        world.threads()
        assert client.get("/message.json/a@example.org").status_code == 410
        assert client.get("/message.json/a@example.org").json()["error"]["code"] == "forgotten"
        assert client.get("/message.json/c@example.org").status_code == 404
        thread = client.get("/thread/a@example.org")
        assert thread.status_code == 200
        assert "A message that was forgotten" in thread.text
        assert "a@example.org" not in thread.text


def test_ids_like_paths_have_working_links(world: World) -> None:
    names = ["x/attachment/1", "attachment/1", "x/../y", "/x/"]
    attached = 'Content-Type: text/plain\nContent-Disposition: attachment; filename="a.txt"'
    fill(world, *(mail(name, headers=attached) for name in names))
    with serving_world(world) as client:
        posts = client.get("/lists.json/harbor/2024-03").json()["posts"]
        assert len(posts) == len(names)
        for post in posts:
            assert client.get(post["url"]).json()["message_id"] == post["message_id"]
            for url in (post["html_url"], f"/message-id/{quote(post['message_id'], '')}"):
                page = client.get(url)
                assert page.status_code == 200
                assert html.escape(f"<{post['message_id']}>") in page.text
            [thread] = re.findall(r'href="(/thread[/?][^"#]*)', page.text)
            [file] = re.findall(
                r'href="(/message/[^"]*attachment/1[^"]*)"[^>]*><bdi>a.txt', page.text
            )
            assert client.get(html.unescape(thread)).status_code == 200
            assert client.get(html.unescape(file)).text.startswith("What")
