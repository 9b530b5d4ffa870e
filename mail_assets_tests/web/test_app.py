"""Pages and JSON over a real server: contents, errors, headers and redirects."""

import json
import re

import httpx
import pytest

from mail_assets.search.searcher import Searcher
from mail_assets.web.app import HEADERS
from mail_assets.web.parameters import SEARCH_PARAMETERS
from mail_assets.web.requests import make_request, page_url
from mail_assets_tests.sample_corpus import QUERY, ROOT
from mail_assets_tests.web.conftest import BASE_URL
from mail_assets_tests.web.readings import Page

PAGES = [
    "/",
    f"/search?q={QUERY}",
    f"/message/{ROOT}",
    f"/thread/{ROOT}",
    f"/similar/{ROOT}",
    "/lists",
]


@pytest.mark.parametrize("path", PAGES)
def test_page_is_complete_and_loads_nothing_foreign(public: httpx.Client, path: str) -> None:
    response = public.get(path)
    assert response.status_code == 200
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    assert {name: response.headers[name] for name in HEADERS} == HEADERS
    page = Page(response.text)
    assert {"main", "h1", "title", "form"} <= {*page.tags}
    assert page.tags.count("script") == 1
    assert not {"style", "iframe", "img"} & {*page.tags}
    assert all(link.startswith(("/", "#", "https://", "http://")) for link in page.links)
    canonical = re.findall(r'<link rel="canonical" href="([^"]*)">', response.text)
    assert [one.startswith(f"{BASE_URL}/") for one in canonical] == [True] * ("similar" not in path)
    assert re.search(r'<meta name="description" content="[^"]{10,}">', response.text)


def test_search_json_has_the_hits_of_the_searcher(
    private: httpx.Client, searcher: Searcher
) -> None:
    parameters = {"q": QUERY, "limit": "5"}
    served = private.get("/search.json", params=parameters).json()
    asked = json.loads(json.dumps(searcher.search(make_request(parameters)).as_json()))
    for hit in served["hits"]:
        assert hit.pop("html_url") == page_url("message", hit["message_id"])
        assert hit.pop("url") == page_url("message.json", hit["message_id"])
        assert hit.pop("namesake") == ""
    assert served["hits"] == asked["hits"]
    assert served["facets"] == asked["facets"]


def test_message_has_its_place_in_the_thread(public: httpx.Client) -> None:
    message = public.get(f"/message.json/{ROOT}").json()
    thread = public.get(f"/thread.json/{ROOT}").json()
    at = [post["message_id"] for post in thread["posts"]].index(ROOT)
    following = next(post for post in thread["posts"][at + 1 :] if not post["is_ghost"])
    assert message["next"] == following["url"]
    assert message["thread_id"] == thread["thread_id"]
    shown = " ".join(" ".join(Page(public.get(f"/message/{ROOT}").text).texts).split())
    assert " ".join(message["body_text"].split())[:200] in shown


@pytest.mark.parametrize(
    "path", ["/message-id/%3C{}%3E", "/message-id/{}/", "/message-id/flat/{}", "/message/?id={}"]
)
def test_links_of_other_archives_are_redirected(public: httpx.Client, path: str) -> None:
    assert public.get(path.format(ROOT), follow_redirects=True).status_code == 200


@pytest.mark.parametrize(
    ("path", "where"),
    [
        ("/lists/", "/lists"),
        ("/lists/harbor-dev/2024-03/?first=1", "/lists/harbor-dev/2024-03?first=1"),
        ("/search/?q=a%20b", "/search?q=a%20b"),
        ("//evil.example/", "/evil.example"),
        ("/%2F%2Fevil.example//", "/evil.example"),
        ("/%5Cevil.example/", "/%5Cevil.example"),
    ],
)
def test_trailing_slash_redirects_within_the_site(
    public: httpx.Client, path: str, where: str
) -> None:
    url = f"{str(public.base_url).rstrip('/')}{path}"
    response = public.get(url, follow_redirects=False)
    assert (response.status_code, response.headers["location"]) == (308, where)


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("/message.json/nobody@example.org", 404, "not_found"),
        ("/thread.json/nobody@example.org", 404, "not_found"),
        ("/similar.json/nobody@example.org", 404, "not_found"),
        ("/message.json", 400, "bad_request"),
        ("/message.json/a%00b", 400, "bad_request"),
        ("/message.json/%E2%28%A1", 404, "not_found"),
        ("/search.json?q=a&q=b", 400, "bad_request"),
        (f"/search.json?{'q=a&' * 10_000}", 400, "bad_request"),
        ("/search.json?q=a&colour=red", 400, "bad_request"),
        ("/search.json?q=a&list=nowhere", 400, "bad_request"),
        ("/search.json?q=a&after=2024&before=2023", 400, "bad_request"),
        ("/search.json?q=a+after:2024+before:2023", 400, "bad_request"),
        ("/search.json?q=list:nowhere", 400, "bad_request"),
        ("/search.json?q=a%00b", 400, "bad_request"),
        ("/search.json?q=a&offset=99999999999", 400, "bad_request"),
    ],
)
def test_errors_have_one_shape(public: httpx.Client, path: str, status: int, code: str) -> None:
    response = public.get(path)
    assert (response.status_code, response.json()["error"]["code"]) == (status, code)
    assert set(response.json()["error"]) == {"code", "message", "allowed"}
    assert response.headers["cache-control"] == "no-store"
    page = public.get(path.replace(".json", "", 1))
    assert page.status_code == status
    assert page.headers["content-type"].startswith("text/html")


def test_empty_search_shows_form_and_newest_messages(public: httpx.Client) -> None:
    assert public.get("/search?q=&list=").text == public.get("/").text
    found = public.get("/search.json?q=").json()
    sent = {hit["message_id"]: hit["sent_at"] for hit in found["hits"]}
    times = [sent[one["best"][0]] for one in found["conversations"]]
    assert len(times) == 10
    assert times == sorted(times, reverse=True)


def test_wrong_search_keeps_the_filled_form(public: httpx.Client) -> None:
    page = public.get("/search", params={"q": "has:pach ballast", "list": "harbor-dev"})
    assert page.status_code == 400
    assert 'value="has:pach ballast"' in page.text
    assert "<option selected>harbor-dev</option>" in page.text
    assert "kind &#39;pach&#39;: allowed are" in page.text


def test_post_is_not_allowed_on_pages(public: httpx.Client) -> None:
    for path in ("/search", "/search.json", "/message.json/x", "/health"):
        response = public.post(path, data={"q": "x"})
        assert response.status_code == 405
        assert {*response.headers["allow"].split(", ")} == {"GET", "HEAD"}
    assert {*public.post("/search.json").json()["error"]["allowed"]} == {"GET", "HEAD"}


def test_unknown_id_names_the_nearest_ids(public: httpx.Client) -> None:
    for path in (f"/message.json/{ROOT[:-4]}", f"/message.json/{ROOT}x"):
        assert public.get(path).json()["error"]["allowed"][0] == ROOT
    assert f'href="/message/{ROOT}"' in public.get(f"/message/{ROOT[:-4]}").text
    assert not public.get("/message.json/nothing-alike@example.org").json()["error"]["allowed"]


def test_error_of_json_is_json(public: httpx.Client) -> None:
    assert public.get("/nowhere.json").json()["error"]["code"] == "not_found"
    allowed = public.get("/search.json?q=a&colour=red").json()["error"]["allowed"]
    assert allowed == [*SEARCH_PARAMETERS]


@pytest.mark.parametrize("path", [*PAGES[1:], f"/search.json?q={QUERY}", f"/thread.json/{ROOT}"])
def test_known_etag_gets_304(public: httpx.Client, private: httpx.Client, path: str) -> None:
    first = public.get(path)
    tag = first.headers["etag"]
    for known in (tag, tag.removeprefix("W/"), f'"x", {tag}', "*"):
        again = public.get(path, headers={"If-None-Match": known})
        assert (again.status_code, again.content) == (304, b"")
        assert again.headers["etag"] == tag
        assert again.headers["cache-control"] == first.headers["cache-control"]
    assert public.get(path, headers={"If-None-Match": '"x"'}).status_code == 200
    assert private.get(path).headers["etag"] != tag


@pytest.mark.parametrize(
    ("path", "seconds"),
    [
        *((f"/search{kind}?q={QUERY}", 60) for kind in ("", ".json", ".atom", ".mbox.gz")),
        (f"/similar.json/{ROOT}", 60),
        *((f"/thread{kind}/{ROOT}", 300) for kind in ("", ".json", ".atom", ".mbox.gz")),
        (f"/message.mbox/{ROOT}", 300),
        ("/lists", 300),
    ],
)
def test_cache_time_is_short_for_searches(public: httpx.Client, path: str, seconds: int) -> None:
    kept = public.get(path).headers["cache-control"]
    assert kept == f"max-age={seconds}"


def test_page_and_json_have_different_etags(public: httpx.Client) -> None:
    page, data = public.get(f"/thread/{ROOT}"), public.get(f"/thread.json/{ROOT}")
    assert page.headers["etag"] != data.headers["etag"]


@pytest.mark.parametrize("path", [*PAGES, f"/message.json/{ROOT}"])
def test_head_has_the_headers_of_get(public: httpx.Client, path: str) -> None:
    head = public.head(path)
    assert head.content == b""
    whole = public.get(path).headers
    for name in ("content-type", "etag", "cache-control"):
        assert head.headers.get(name) == whole.get(name)


def test_health_and_ready_answer(public: httpx.Client) -> None:
    assert public.get("/health").text == "ok\n"
    assert public.get("/ready").text == "ready\n"
    assert "Disallow: /search" in public.get("/robots.txt").text
