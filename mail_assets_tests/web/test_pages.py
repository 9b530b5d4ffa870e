"""Pages have the expected content in each state; templates allow no scripts."""

import re
from html import unescape

import httpx
import pytest

from mail_assets.web import browse, page_documents, pages
from mail_assets.web.requests import place_url
from mail_assets.web.responses import STATIC
from mail_assets_tests.sample_corpus import QUERY, ROOT
from mail_assets_tests.web.conftest import fill, serving_world
from mail_assets_tests.web.readings import ask_tool
from mail_assets_tests.world import World, mail

MONTH = "/lists/harbor-dev/2024-03"


def text_of(response: httpx.Response) -> str:
    """Return the text of a page, without tags."""
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", response.text)).split())


@pytest.mark.parametrize(("path", "status", "said"), [
    ("/", 200, "The query language"),
    (f"/search?q={QUERY}", 200, "conversations 1 to 10"),
    (f"/search?q={QUERY}", 200, ", first message"),
    (f"/search?q={QUERY}", 200, " more found in it"),
    (f"/search?q={QUERY}&group=message", 200, "; words, rank"),
    (f"/search?q={QUERY}&group=message", 200, "of 12 in its thread"),
    (f"/search?q={QUERY}&sort=date", 200, "Best first"),
    (f"/search?q={QUERY}&group=message", 200, "Why Score 0."),
    ("/search?q=lease&sort=date&group=message", 200, "Why words: lease; date (it has all that"),
    (f"/search?q=<{ROOT}>&group=message", 200, "Score 1.00; its id."),
    ("/search?q=lease&mode=fulltext", 200, "Newest first"),
    ("/search?q=zzgarble&mode=fulltext", 200, "Nothing was found"),
    ("/search?q=zzgarble&mode=fulltext", 200, "No message has zzgarble. Is the spelling"),
    ("/search?q=zzgarble&mode=fulltext", 200, "By words and by meaning"),
    ("/search?q=zzgarble&mode=fulltext&list=harbor-es", 200, "Without the filters"),
    ('/search?q="lease zzgarble"', 200, "Without the quotes"),
    ('/search?q=lease "zzgarble"', 200, 'Nothing was found with "zzgarble": searched'),
    ("/search?q=subject:lease list:harbor-es", 200, "What to try"),
    ("/search?q=from:someone list:harbor-es", 200, "These are all"),
    ("/search?q=has:pach", 400, "allowed are"),
    ("/search?q=x&mode=y", 400, "mode 'y': allowed are hybrid, semantic, fulltext"),
    ("/commits/xyz", 400, "This cannot be read"),
    (f"/message/{ROOT}", 200, "Message-ID"),
    (f"/message/{ROOT}", 200, " of 12 Message that it replies to"),
    (f"/message/{ROOT}", 200, "3 answers"),
    (f"/message/{ROOT}", 200, "Message before"),
    (f"/thread/{ROOT}", 200, "12 messages by 7 people, 2024-03-04 to 2024-04-29"),
    (f"/thread/{ROOT}", 200, "in reply to Daniel Okonkwo , level 1"),
    (f"/similar/{ROOT}", 200, "Messages like"),
    ("/lists", 200, "58 messages in 2 months, 2024-03 to 2024-04"),
    ("/lists/harbor-dev", 200, "58 messages in 2 months"),
    (MONTH, 200, "thread by thread"),
    ("/lists/nowhere", 404, "there is no list 'nowhere' There are: harbor-dev"),
    ("/lists/harbor-dev/1999-01", 404, "nearest: 2024-03"),
    ("/lists/harbor-dev/yesterday", 400, "write YYYY-MM"),
    (f"{MONTH}?first=x", 400, "must be a number"),
    (f"{MONTH}?first=1&first=2", 400, "parameter 'first' is given 2 times"),
    (f"/message?id={ROOT}&id=other", 400, "parameter 'id' is given 2 times"),
    (f"/thread/{ROOT}.invalid", 404, "The nearest ids"),
    ("/nowhere", 404, "there is no such page"),
    ("/nowhere", 404, "Not found - Mail archive"),
])  # fmt: skip
def test_page_has_the_expected_words(
    public: httpx.Client, path: str, status: int, said: str
) -> None:
    response = public.get(path)
    assert response.status_code == status
    assert said in text_of(response)


def test_answers_that_are_left_out_are_counted(
    public: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_documents, "ANSWERS", 2)
    page = public.get(f"/message/{ROOT}").text
    assert "3 answers" in page
    assert "These are the first 2: <a" in page


def test_answer_with_another_subject_shows_it(world: World) -> None:
    world.load(
        mail("cover", subject="[PATCH 0/1] Mend the pier"),
        mail("part", subject="[PATCH 1/1] pier: Add a plank", references="<cover@example.org>"),
        mail("reply", subject="Re: [PATCH 0/1] Mend the pier", references="<cover@example.org>"),
    )
    world.threads()
    with serving_world(world) as client:
        page = client.get("/message/cover@example.org").text
    answers = page.partition('id="answers"')[2].partition("</section>")[0]
    assert answers.count("pier: Add a plank") == 1
    assert "Mend the pier" not in answers


def test_busy_thread_leaves_room_on_the_front_page(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(browse, "RECENT", 2)
    world.load(
        mail("quiet", subject="Quiet talk", date="Fri, 01 Mar 2024 09:00:00 +0000"),
        mail("busy", subject="Busy talk"),
        *(
            mail(f"b{one}", subject="Re: Busy talk", references="<busy@example.org>")
            for one in "12"
        ),
    )
    world.threads()
    with serving_world(world) as client:
        page = client.get("/").text
    assert page.index("Busy talk") < page.index("Quiet talk")


def test_words_are_marked_in_subjects(public: httpx.Client) -> None:
    page = public.get("/search", params={"q": "nombres subject:nombres"}).text
    assert re.search(r"<h2[^>]*><a[^>]*><mark>Nombres</mark></a></h2>", page)
    page = public.get("/search", params={"q": "primera mode:fulltext list:harbor-es"}).text
    assert "<mark>Primera</mark>" in page


def test_page_has_one_search_box(public: httpx.Client) -> None:
    for path in ("/", f"/message/{ROOT}", f"/thread/{ROOT}", "/lists", MONTH, "/nowhere"):
        page = public.get(path).text
        assert page.count('role="search"') == page.count('name="q"') == 1


def test_lines_of_a_conversation_lead_to_its_thread(public: httpx.Client) -> None:
    found = public.get("/search.json", params={"q": QUERY}).json()
    page = public.get("/search", params={"q": QUERY}).text
    rows = page.split('<ul class="lines">')[1:]
    assert len(rows) == len(found["conversations"]) > 1
    for one, row in zip(found["conversations"], rows, strict=True):
        links = re.findall(r'<p class="about"><a href="([^"]*)"><bdi>', row)
        wanted = [one["first"]["message_id"], *one["best"]]
        assert sorted(links) == sorted(place_url(id) for id in {*wanted})
        more = re.search(r'href="([^"]*)">(\d+) more found in it</a>', row)
        assert bool(more) == bool(one["more"])
        if more:
            inside = public.get(unescape(more[1]).replace("/search?", "/search.json?")).json()
            assert {hit["thread_id"] for hit in inside["hits"]} == {one["thread_id"]}
            assert len(inside["hits"]) >= min(10, int(more[2]))


@pytest.mark.parametrize("page", ["message", "thread"])
def test_box_of_a_page_searches_from_its_thread(public: httpx.Client, page: str) -> None:
    read = public.get(f"/{page}/{ROOT}").text
    found = re.search(r'<input type="checkbox" name="near" value="([^"]*)" checked>', read)
    assert found
    parameters = {"q": "worker", "near": unescape(found[1])}
    document = public.get("/search.json", params=parameters).json()
    thread = public.get(f"/thread.json/{ROOT}").json()
    assert document["near"]["thread_id"] == thread["thread_id"]
    assert thread["thread_id"] not in {one["thread_id"] for one in document["conversations"]}
    shown = public.get("/search", params=parameters)
    assert f"reading: {thread['subject']}" in text_of(shown)
    without = re.search(r'href="([^"]*)">Search without it</a>', shown.text)
    assert without
    alone = public.get(unescape(without[1]).replace("/search?", "/search.json?")).json()
    assert alone["near"] is None
    assert alone["hits"] == public.get("/search.json?q=worker").json()["hits"]


def test_unknown_thread_at_hand_is_an_error_with_the_form(public: httpx.Client) -> None:
    response = public.get("/search", params={"q": "worker", "near": "nobody@example.org"})
    assert response.status_code == 404
    assert "near: no message or thread has the id" in unescape(response.text)


def test_facets_refine_the_search(public: httpx.Client) -> None:
    page = public.get("/search", params={"q": QUERY}).text
    for heading in ("By date", "By list", "By sender", "By year", "By kind"):
        assert f"<h2>{heading}</h2>" in page
    facets = public.get("/search.json", params={"q": QUERY}).json()["facets"]
    name, count = next(iter(facets["senders"].items()))
    refined = public.get("/search.json", params={"q": f'from:"{name}"'}).json()
    assert refined["facets"]["total"] >= count
    assert {hit["from_name"] for hit in refined["hits"]} == {name}


def test_histogram_and_table_agree(public: httpx.Client) -> None:
    page = public.get("/search", params={"q": QUERY}).text
    bars = re.findall(r'<a href="([^"]*)" tabindex="-1"><title>([^<]*): (\d+)</title>', page)
    table = re.findall(r'<td><a rel="nofollow" href="([^"]*)">([^<]*)</a></td><td>(\d+)</td>', page)
    assert table
    assert [bar for bar in bars if bar[2] != "0"] == table


def test_months_reach_all_messages_of_a_list(public: httpx.Client) -> None:
    months = public.get("/lists.json/harbor-dev").json()["months"]
    for month, count in months.items():
        page = public.get(f"/lists.json/harbor-dev/{month}").json()
        assert len(page["posts"]) == page["messages"] == count
        html = public.get(page["html_url"]).text
        assert all(f'href="{post["html_url"]}"' in html for post in page["posts"])


def test_last_page_of_a_month_has_no_next(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(browse, "MESSAGES", 2)
    month = "/lists.json/harbor/2024-03"
    fill(world, mail("a"), mail("b"), mail("b", "Another text."), mail("c"), last="messages")
    with serving_world(world) as client:
        first = client.get(month).json()
        last = client.get(first["next"]).json()
    assert [len(page["posts"]) for page in (first, last)] == [2, 2]
    assert last["next"] is None


def test_neighbours_lead_through_the_whole_list(public: httpx.Client) -> None:
    def follow(id: str, way: str) -> list[str]:
        seen = []
        url: str | None = f"/message.json/{id}"
        while url:
            seen.append(url)
            message = public.get(url).json()
            url = next(one[way] for one in message["in_lists"] if one["list"] == "harbor-users")
        return seen

    posts = public.get("/lists.json/harbor-users/2024-04").json()["posts"]
    last = follow(posts[0]["message_id"], "next")[-1].removeprefix("/message.json/")
    back = follow(last, "previous")
    lists = public.get("/lists.json").json()["lists"]
    assert len({*back}) == len(back)
    assert len(back) == next(one["messages"] for one in lists if one["name"] == "harbor-users")


def test_second_page_numbers_its_hits_and_keeps_options(public: httpx.Client) -> None:
    page = public.get("/search", params={"q": QUERY, "offset": "10", "mode": "fulltext"}).text
    assert '<ol class="hits" start="11">' in page
    assert '<option value="fulltext" selected>' in page


@pytest.mark.parametrize(
    ("path", "formats"),
    [
        (f"/search?q={QUERY}", ["mbox.gz", "atom", "json"]),
        (f"/thread/{ROOT}", ["mbox.gz", "atom", "json"]),
        (f"/message/{ROOT}", ["mbox", "json"]),
        (MONTH, ["mbox.gz", "atom", "json"]),
    ],
)
def test_footer_links_the_other_formats(
    public: httpx.Client, path: str, formats: list[str]
) -> None:
    footer = public.get(path).text.partition("<footer>")[2]
    links = [unescape(link) for link in re.findall(r'href="([^"]*)"', footer)]
    assert [link.split("/")[1].partition("?")[0].partition(".")[2] for link in links] == formats
    assert [public.get(link).status_code for link in links] == [200] * len(links)


def test_feed_and_mailbox_links_have_the_whole_search(public: httpx.Client) -> None:
    def links(**parameters: str) -> dict[str, str]:
        page = public.get("/search", params={"q": QUERY, **parameters}).text
        found = map(unescape, re.findall(r'href="(/search\.[^"]*)"', page))
        return {link.partition("?")[0].partition(".")[2]: link for link in found}

    first, second = links(), links(offset="10")
    assert (second["atom"], second["mbox.gz"]) == (first["atom"], first["mbox.gz"])
    shown = public.get("/search.json", params={"q": QUERY, "offset": "10"}).json()["hits"]
    assert public.get(second["json"]).json()["hits"] == shown


def test_thread_links_its_attachments(public: httpx.Client) -> None:
    found = public.get("/search.json?q=has:attachment").json()["hits"]
    for hit in found:
        page = public.get(f"/thread/{hit['message_id']}").text
        for name in hit["attachments"]:
            named = f"<bdi>{re.escape(name)}<"
            link = re.search(rf'<a href="([^"]*)" rel="nofollow" download>{named}', page)
            assert link
            assert public.get(unescape(link.group(1))).status_code == 200
    assert found


@pytest.mark.parametrize("gone", ["a", "b", "c"])
def test_thread_is_shown_without_a_deleted_message(world: World, gone: str) -> None:
    first, second = "<a@example.org>", "<b@example.org>"
    fill(
        world,
        mail("a"),
        mail("b", references=first),
        mail("c", references=f"{first} {second}"),
        last="messages",
    )
    with world.connect() as connection:
        connection.execute("delete from messages where message_id = %s", [f"{gone}@example.org"])
    with serving_world(world) as client:
        for id in ("a@example.org", "c@example.org"):
            page = client.get(f"/thread/{id}")
            assert page.status_code == 200
            assert f"in none of the archives: <{gone}@example.org>" in text_of(page)
            assert "2 messages by 1 person" in text_of(page)
            assert "unknown sender" not in page.text
            outline = ask_tool(client, "get_thread", message_id=id)
            assert outline.status_code == 200
            assert "a message that is in none of the archives" in outline.text
            assert client.get(f"/thread.mbox.gz/{id}").status_code == 200


@pytest.mark.parametrize(
    "forbidden",
    [
        r"\|\s*safe",
        r"autoescape\s+false",
        r"Markup",
        r"<script(?! src=\"\{\{ static\(\"[a-z]+\.js\"\) \}\}\" defer></script>)",
        r"<style",
        r"\sstyle=",
        r"\son[a-z]+=",
        r"javascript:",
        r"<(img|iframe|object|embed|base)\b",
        r"(href|src|action)=\"https?:",
        r"=\{\{",  # an attribute without quotes
    ],
)
def test_templates_have_no_unsafe_markup(forbidden: str) -> None:
    for path in pages.TEMPLATES.iterdir():
        assert not re.search(forbidden, path.read_text(), re.IGNORECASE), path.name


def test_stylesheet_loads_nothing() -> None:
    style = (STATIC / "style.css").read_text()
    assert not re.search(r"url\(|@import|expression", style)


def test_every_class_in_templates_has_a_style() -> None:
    style = (STATIC / "style.css").read_text()
    used = {
        name
        for path in pages.TEMPLATES.iterdir()
        for value in re.findall(r'class="([^"{]*)"', path.read_text())
        for name in value.split()
    }
    assert used - {*re.findall(r"\.([a-z][a-z0-9-]*)", style)} == set()
