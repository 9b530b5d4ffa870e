"""Feeds are valid Atom (RFC 4287), with ids that do not depend on the client."""

from xml.etree import ElementTree

import httpx
import pytest

from mail_assets_tests.sample_corpus import QUERY, ROOT
from mail_assets_tests.web.conftest import BASE_URL, fill, serving_world
from mail_assets_tests.web.readings import ATOM
from mail_assets_tests.world import World, mail

FEEDS = ["/search.atom?q=lease", "/search.atom?list=harbor-dev&limit=3", f"/thread.atom/{ROOT}"]


def read_feed(response: httpx.Response) -> ElementTree.Element:
    assert response.headers["content-type"].startswith("application/atom+xml")
    feed = ElementTree.fromstring(response.content)
    for element in (feed, *feed.iter(f"{ATOM}entry")):
        for name in ("id", "title", "updated"):
            assert len(element.findall(f"{ATOM}{name}")) == 1
        assert [link for link in element.iter(f"{ATOM}link") if link.get("rel") == "alternate"]
    return feed


def texts(feed: ElementTree.Element, name: str) -> list[str]:
    return [entry.findtext(f"{ATOM}{name}") or "" for entry in feed.iter(f"{ATOM}entry")]


@pytest.mark.parametrize("path", FEEDS)
def test_feed_is_valid_atom(public: httpx.Client, path: str) -> None:
    feed = read_feed(public.get(path))
    entries = [*feed.iter(f"{ATOM}entry")]
    assert entries
    for entry in entries:
        assert entry.findtext(f"{ATOM}author/{ATOM}name")
        assert entry.find(f"{ATOM}author/{ATOM}email") is None
        link = entry.find(f"{ATOM}link")
        assert link is not None
        page = (link.get("href") or "").removeprefix(BASE_URL)
        assert public.get(page).status_code == 200
    assert feed.findtext(f"{ATOM}updated") == max(texts(feed, "updated"))
    # the newest first
    assert texts(feed, "updated") == sorted(texts(feed, "updated"), reverse=True)


@pytest.mark.parametrize("path", FEEDS)
def test_feed_ids_do_not_depend_on_the_client(
    public: httpx.Client, private: httpx.Client, path: str
) -> None:
    named = {"Host": "localhost:1", "X-Forwarded-Host": "evil.example"}
    asked = public.get(path, headers=named)
    assert not {"evil.example", "localhost"} & {*asked.text.split("/")}
    one, other = read_feed(asked), read_feed(private.get(path))
    assert one.findtext(f"{ATOM}id") == other.findtext(f"{ATOM}id")
    assert (one.findtext(f"{ATOM}id") or "").startswith(f"{BASE_URL}/")
    assert texts(one, "id") == texts(other, "id")
    assert all(id.startswith("mid:") for id in texts(one, "id"))


def test_feed_of_a_semantic_search_keeps_its_order(public: httpx.Client) -> None:
    parameters = {"q": QUERY, "mode": "semantic", "sort": "relevance", "limit": "5"}
    feed = read_feed(public.get("/search.atom", params=parameters))
    hits = public.get("/search.json", params={**parameters, "group": "message"}).json()["hits"]
    assert texts(feed, "title") == [hit["subject"] for hit in hits]


@pytest.mark.parametrize(
    "parameters", [{"q": "sort:oldest lease"}, {"q": "lease", "sort": "oldest"}]
)
def test_feed_of_the_oldest_has_the_newest(
    public: httpx.Client, parameters: dict[str, str]
) -> None:
    newest = read_feed(public.get("/search.atom", params={"q": "lease"}))
    feed = read_feed(public.get("/search.atom", params=parameters | {"limit": "25"}))
    assert texts(feed, "id") == texts(newest, "id") != []


@pytest.mark.parametrize(
    ("asked", "title"),
    [
        ("", "The newest messages of the archive"),
        ("?q=&list=&limit=3", "The newest messages of the archive"),
        ("?q=lease", "Search: lease"),
        ("?list=harbor-dev", "Search: harbor-dev"),
        ("?list=harbor-dev&q=lease", "Search: lease, harbor-dev"),
    ],
)
def test_feed_title_names_the_search(public: httpx.Client, asked: str, title: str) -> None:
    assert read_feed(public.get(f"/search.atom{asked}")).findtext(f"{ATOM}title") == title


def test_feed_of_a_search_leads_to_its_last_message(public: httpx.Client) -> None:
    whole = read_feed(public.get("/search.atom?list=harbor-users&limit=100"))
    path, found = "/search.atom?list=harbor-users&limit=7", list[str]()
    while path:
        feed = read_feed(public.get(path))
        found += texts(feed, "id")
        links = {one.get("rel"): one.get("href") or "" for one in feed.findall(f"{ATOM}link")}
        path = links.get("next", "").removeprefix(BASE_URL)
    assert found == texts(whole, "id")
    assert len({*found}) == len(found) > 20


def test_search_without_hits_is_an_empty_feed(public: httpx.Client) -> None:
    feed = read_feed(public.get("/search.atom?q=nothingofthekind&mode=fulltext"))
    assert not [*feed.iter(f"{ATOM}entry")]
    assert public.get("/search.atom?q=has:pach").status_code == 400
    assert public.get("/thread.atom/nobody@example.org").status_code == 404


def test_hostile_mail_does_not_break_the_feed(world: World) -> None:
    hostile = "]]></content></entry>\x0b\x1b\ufffe\U0001f986 &amp; <b onclick='x'>"
    fill(world, mail("a", f"whale {hostile}", subject=hostile.replace("\x0b", "")))
    with serving_world(world) as client:
        for path in ("/search.atom?q=whale&mode=fulltext", "/thread.atom/a@example.org"):
            feed = read_feed(client.get(path))
            [text] = texts(feed, "content")
            assert "]]></content></entry>" in text
            assert len([*feed.iter(f"{ATOM}entry")]) == 1
