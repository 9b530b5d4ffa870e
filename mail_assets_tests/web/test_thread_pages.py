"""Pages of threads are made again only after changes."""

import threading

import pytest

from mail_assets.web.pages import Pages
from mail_assets.web.thread_pages import KeptPage, KeptPages, ThreadState
from mail_assets_tests.waits import LONG
from mail_assets_tests.web.conftest import fill, serving_world
from mail_assets_tests.world import World, mail


def make_page(tag: str, packed: bytes) -> KeptPage:
    return KeptPage(tag, packed, ThreadState(""))


def test_kept_pages_hold_only_so_many_bytes() -> None:
    pages = KeptPages(most=5_000)
    for number in range(10):
        pages.keep(f"{number}", make_page(f"tag {number}", b"x" * 1_000))
    assert pages.find("0") is None
    assert pages.find("9") == make_page("tag 9", b"x" * 1_000)
    pages.keep("9", make_page("new", b""))
    assert pages.find("9") == make_page("new", b"")
    pages.keep("large", make_page("tag", b"x" * 6_000))
    assert pages.find("large") is None


def test_page_is_made_by_one_thread_at_a_time() -> None:
    pages, made = KeptPages(), []
    begun = threading.Barrier(8)

    def ask() -> None:
        begun.wait(LONG)
        with pages.making("key"):
            if pages.find("key") is None:
                made.append("key")
                pages.keep("key", make_page("tag", b""))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(LONG)
    assert made == ["key"]
    assert not pages._making


THREAD = "/thread/a@example.org"


def fill_thread(world: World) -> None:
    first = "<a@example.org>"
    fill(
        world,
        mail("a", "whale", subject="Whale"),
        mail("b", "See <z@example.org> on it.", references=first, subject="Re: Whale"),
        last="messages",
    )


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The ids of threads whose pages were rendered."""
    filled: list[str] = []
    thread = Pages.thread

    def count(pages: Pages, document: dict[str, object]) -> str:
        filled.append(str(document["thread_id"]))
        return thread(pages, document)

    monkeypatch.setattr(Pages, "thread", count)
    return filled


def test_thread_is_made_once_for_all_its_addresses(world: World, counted: list[str]) -> None:
    fill_thread(world)
    with serving_world(world) as client:
        first = client.get(THREAD)
        for path in (THREAD, "/thread/b@example.org", f"{THREAD}?x=1"):
            again = client.get(path)
            assert (again.text, again.headers["etag"]) == (first.text, first.headers["etag"])
        known = {"if-none-match": first.headers["etag"]}
        assert client.get(THREAD, headers=known).status_code == 304
    assert len(counted) == 1


@pytest.mark.parametrize(("change", "gone"), [
    ("delete from messages where message_id = 'b@example.org'", "on it."),
    ("update messages set subject = 'Squid', subject_base = 'Squid', checksum = 1", ">Whale<"),
    ("update threads set depth = 7 where message_id = 'b@example.org'", "level 1"),
    ("delete from threads where message_id = 'b@example.org'", "on it."),
])  # fmt: skip
def test_changed_thread_is_made_again(
    world: World, counted: list[str], change: str, gone: str
) -> None:
    fill_thread(world)
    with serving_world(world) as client:
        first = client.get(THREAD)
        with world.connect() as connection:
            connection.execute(change)
        again = client.get(THREAD, headers={"if-none-match": first.headers["etag"]})
    assert again.status_code == 200
    assert again.headers["etag"] != first.headers["etag"]
    assert [gone in page.text for page in (first, again)] == [True, False]
    assert len(counted) == 2


def test_thread_links_a_message_that_came_later(world: World, counted: list[str]) -> None:
    fill_thread(world)
    with serving_world(world) as client:
        assert "z@example.org" not in client.get(THREAD).text
        fill_more(world)
        assert '<a href="/message/z@example.org"' in client.get(THREAD).text
        with world.connect() as connection:
            connection.execute("delete from messages where message_id = 'z@example.org'")
        assert "z@example.org" not in client.get(THREAD).text
    assert len(counted) == 3


def fill_more(world: World) -> None:
    fill(
        world,
        mail("a", "whale", subject="Whale"),
        mail("b", "See <z@example.org> on it.", references="<a@example.org>", subject="Re: Whale"),
        mail("z", "squid", subject="Squid"),
        last="messages",
    )
