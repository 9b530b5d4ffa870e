"""Entity tags follow the settings that change a page."""

from dataclasses import replace

import httpx
import pytest

from mail_assets.answers.chat import ChatMaker
from mail_assets.openai import ChatModel, Client, Server
from mail_assets_tests.web import conftest
from mail_assets_tests.web.conftest import fill, serving
from mail_assets_tests.world import HARBOR, World, mail


@pytest.fixture
def whale(world: World) -> World:
    fill(world, mail("a", "whale"))
    return world


def test_etag_changes_with_the_settings(whale: World, monkeypatch: pytest.MonkeyPatch) -> None:
    page, feed = (f"/search{kind}?q=whale+mode:fulltext" for kind in ("", ".atom"))
    settings = whale.settings()
    with serving(settings) as client:
        tags = {path: client.get(path).headers["etag"] for path in (page, feed)}
    server = Server("MAIL_CHAT", "http://127.0.0.1:9/v1", "key")

    def ask(client: httpx.Client, path: str) -> int:
        return client.get(path, headers={"If-None-Match": tags[path]}).status_code

    with serving(settings) as client:
        assert [ask(client, path) for path in tags] == [304, 304]
    with serving(replace(settings, lists={HARBOR: settings.lists[HARBOR]})) as client:
        assert ask(client, page) == 200
    with (
        Client(server) as model,
        serving(settings, maker=ChatMaker(model, ChatModel("small", server.url))) as client,
    ):
        assert ask(client, page) == 200
    monkeypatch.setattr(conftest, "BASE_URL", "https://mail.example.org")
    with serving(settings) as client:
        assert ask(client, feed) == 200
