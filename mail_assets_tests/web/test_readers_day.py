"""The day of a list's maintainer and of its readers: every link of the archive works."""

import re
from collections import deque
from html import unescape
from urllib.parse import urlsplit
from xml.etree import ElementTree

import httpx

from mail_assets_tests.sample_corpus import ROOT
from mail_assets_tests.web.conftest import BASE_URL, fill, serving_world
from mail_assets_tests.web.readings import ask_tool
from mail_assets_tests.world import World, mail

SITEMAP = "{http://www.sitemaps.org/schemas/sitemap/0.9}"
#: Paths with endless links: each search links narrower ones.
ENDLESS = ("/search", "/similar", "/answer")


def find_hrefs(page: str) -> list[str]:
    """Return the paths within the site that a page links, without fragments."""
    links = (unescape(one) for one in re.findall(r'(?:href|src)="([^"]*)"', page))
    inside = (one.removeprefix(BASE_URL).partition("#")[0] for one in links)
    return [one for one in dict.fromkeys(inside) if one.startswith("/")]


def follow(client: httpx.Client, page: str, pattern: str) -> str:
    """Follow the first link whose path matches; return its page."""
    path = next(one for one in find_hrefs(page) if re.fullmatch(pattern, one))
    response = client.get(path)
    assert response.status_code == 200, path
    return response.text


def read_map(client: httpx.Client, path: str) -> list[str]:
    """Return the paths in a sitemap or an index of sitemaps."""
    response = client.get(path)
    assert response.status_code == 200, path
    assert response.headers["content-type"].startswith("application/xml")
    found = [one.text or "" for one in ElementTree.fromstring(response.text).iter(f"{SITEMAP}loc")]
    assert all(url.startswith(f"{BASE_URL}/") for url in found)
    return [url.removeprefix(BASE_URL) for url in found]


def test_reader_gets_from_the_front_page_to_an_answer(public: httpx.Client) -> None:
    home = public.get("/").text
    assert re.search(r"\d+ messages in \d+ lists, 2024-\d\d to 2024-04", home)
    for_list = follow(public, home, r"/lists/harbor-dev")
    month = follow(public, for_list, r"/lists/harbor-dev/2024-03")
    follow(public, month, r"/thread/.*")
    thread = public.get(f"/thread/{ROOT}").text
    assert "<h2>Summary</h2>" in thread
    message = follow(public, thread, rf"/message/{re.escape(ROOT)}")
    answers = message.partition('id="answers"')[2].partition("</section>")[0]
    answer = follow(public, answers, r"/message/.*")
    assert "Message that it replies to" in answer
    assert f'href="/message/{ROOT}"' in answer
    assert "/search?q=thread%3A" in thread


def test_links_of_the_front_page_work(public: httpx.Client) -> None:
    home = public.get("/").text
    examples = [one for one in find_hrefs(home) if one.startswith("/search?")]
    assert len(examples) >= 4
    for path in examples:
        found = public.get(path.replace("/search?", "/search.json?")).json()
        assert found["hits"], path
    threads = [one for one in find_hrefs(home) if one.startswith("/thread")]
    assert len(threads) == 10
    dates = re.findall(r'<time datetime="([^"]*)"', home)
    assert dates == sorted(dates, reverse=True)


def test_every_address_of_the_sitemap_answers(public: httpx.Client) -> None:
    robots = public.get("/robots.txt").text
    indexes = re.findall(r"^Sitemap: (\S+)$", robots, re.MULTILINE)
    assert indexes == [f"{BASE_URL}/sitemap.xml"]
    months = read_map(public, urlsplit(indexes[0]).path)
    pages = {path for month in months for path in read_map(public, month)}
    assert {path: public.get(path).status_code for path in pages} == dict.fromkeys(pages, 200)
    lists = public.get("/lists.json").json()["lists"]
    assert {one["url"].replace(".json", "", 1) for one in lists} <= pages
    for one in lists:
        for month in one["months"]:
            posts = public.get(f"/lists.json/{one['name']}/{month}").json()["posts"]
            urls = (post["url"] for post in posts if not post["contested"])
            assert {one.replace(".json", "", 1) for one in urls} <= pages
    canonical = {
        one
        for path in pages
        for one in re.findall(r'rel="canonical" href="([^"]*)"', public.get(path).text)
    }
    assert {unescape(one) for one in canonical} == {f"{BASE_URL}{path}" for path in pages}


def test_no_link_within_the_site_is_broken(public: httpx.Client) -> None:
    waiting, seen, broken = deque(["/"]), {"/"}, {}
    while waiting:
        path = waiting.popleft()
        response = public.get(path)
        if response.status_code != 200:
            broken[path] = response.status_code
        if response.headers["content-type"].startswith("text/html"):
            links = [one for one in find_hrefs(response.text) if one not in seen]
            seen.update(links)
            waiting.extend(one for one in links if not one.startswith(ENDLESS))
    assert broken == {}
    assert len(seen) > 300


def test_month_of_a_sitemap_that_is_unknown_is_404(public: httpx.Client) -> None:
    for path in ("/sitemap/nowhere/2024-03", "/sitemap/harbor-dev/1999-01"):
        assert public.get(path).status_code == 404


def test_browser_gets_a_search_description_and_an_icon(public: httpx.Client) -> None:
    described = public.get("/opensearch.xml")
    assert described.headers["content-type"].startswith("application/opensearchdescription+xml")
    root = ElementTree.fromstring(described.text)
    urls = [one.get("template", "") for one in root.iter() if one.tag.endswith("}Url")]
    assert f"{BASE_URL}/search?q={{searchTerms}}" in urls
    icon = public.get("/favicon.ico")
    assert (icon.status_code, icon.headers["content-type"]) == (200, "image/x-icon")
    assert icon.content.startswith(b"\0\0\1\0")


#: Name, type, and True if the attachment is linked.
ATTACHED = [
    ("whale.png", "image/png", False),
    ("whale.svg", "image/svg+xml", True),
    ("whale.pdf", "application/pdf", False),
    ("whale.png", "application/octet-stream", False),
    ("whale.patch", "application/octet-stream", True),
    ("whale.txt", "text/plain", True),
    ("whale", "application/octet-stream", True),
    ("whale.zip", "application/zip", False),
    ("whale.wav", "audio/x-wav", False),
]


def attach(number: int, name: str, type: str) -> bytes:
    body = (
        "\n--b\nContent-Type: text/plain\n\nwhale\n"
        f'--b\nContent-Type: {type}; name="{name}"\n'
        f'Content-Disposition: attachment; filename="{name}"\n\nwhale\n--b--\n'
    )
    return mail(f"m{number}", body, headers="Content-Type: multipart/mixed; boundary=b")


def test_attachment_that_is_no_text_is_not_linked(world: World) -> None:
    fill(world, *(attach(number, *one[:2]) for number, one in enumerate(ATTACHED)))
    with serving_world(world) as client:
        for number, (name, type, is_linked) in enumerate(ATTACHED):
            for page in ("message", "thread"):
                text = client.get(f"/{page}/m{number}@example.org").text
                assert name in text
                assert ("/attachment/" in text) == is_linked, (name, type)


def test_message_without_readable_text_says_so(world: World) -> None:
    image = "Content-Type: image/png\nContent-Transfer-Encoding: base64"
    fill(world, mail("image", "iVBORw0KGgo=", headers=image), mail("text"), last="messages")
    with serving_world(world) as client:
        for name, is_said in (("image", True), ("text", False)):
            id = f"{name}@example.org"
            assert ("no_text" in client.get(f"/message.json/{id}").json()["flags"]) is is_said
            for said in (
                client.get(f"/message/{id}").text,
                ask_tool(client, "get_message", message_id=id).text,
            ):
                assert ("no readable text" in said) is is_said
