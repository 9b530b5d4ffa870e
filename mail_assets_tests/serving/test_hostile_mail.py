"""Mail that attacks the browser: shown as text, wherever it stands."""

from html.parser import HTMLParser

import httpx

from mail_assets_tests.serving.conftest import serving_world
from mail_assets_tests.steps.test_forget_messages import forget
from mail_assets_tests.world import World, mail

ATTACKS = [
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    '"><svg onload=alert(1)>',
    "' autofocus onfocus='alert(1)",
    "{{ 1234 * 4321 }}",
    "javascript:alert(1)",
    "\u2028</title><script>alert(1)</script>",
]


class Tags(HTMLParser):
    """The tags of a page, with the names of their attributes."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: set[tuple[str, ...]] = set()
        self.urls: set[str] = set()
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found |= {(tag, name) for name, _ in attrs} | {(tag,)}
        self.urls |= {value or "" for name, value in attrs if name in ("href", "src", "action")}


def check(response: httpx.Response) -> None:
    tags = Tags(response.text)
    assert not {"script", "img", "iframe", "object", "style"} & {one[0] for one in tags.found}
    assert not [one for one in tags.found if one[-1].startswith("on") or one[-1] == "style"]
    assert all(url.startswith(("/", "#", "http://", "https://")) for url in tags.urls)
    assert "5332114" not in response.text


def test_nothing_of_a_mail_becomes_markup(world: World) -> None:
    world.archive(
        "2024-03",
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
    world.chain(last="words")
    world.threads()
    with serving_world(world) as client:
        for n in range(len(ATTACKS)):
            check(client.get(f"/message/m{n}@example.org"))
        check(client.get("/thread/m0@example.org"))
        for attack in [*ATTACKS, "whale"]:
            response = client.get("/search", params={"q": f"{attack} whale", "mode": "fulltext"})
            assert response.status_code in (200, 400)
            check(response)
            check(client.get(f"/message/{attack.replace('/', '%2F')}"))


def test_a_forgotten_message_is_gone_and_not_unknown(world: World) -> None:
    world.archive("2024-03", mail("a"), mail("b", references="<a@example.org>"))
    world.chain(last="words")
    world.threads()
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
