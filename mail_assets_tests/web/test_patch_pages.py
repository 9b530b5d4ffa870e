"""Pages and documents of commits, patch series, and the patches of a list."""

import gzip
import importlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit
from xml.etree import ElementTree

import httpx
import pytest

from mail_assets.web.pages import name_missing, view_open_patches
from mail_assets.web.privacy import HIDDEN, SHOWN
from mail_assets_tests.crane import Crane
from mail_assets_tests.databases import Databases
from mail_assets_tests.steps.test_group_series import BOB, EVE, LINES, patch, post
from mail_assets_tests.web.chromium import CHROMIUM, browsing
from mail_assets_tests.web.conftest import BASE_URL, serving
from mail_assets_tests.web.readings import ATOM
from mail_assets_tests.web.test_accessibility import (
    INTERACTIVE,
    OPEN,
    START,
    WIDEST,
    WIDTHS,
    evaluate,
    press_tab,
    show,
)
from mail_assets_tests.web.test_closed_lists import close
from mail_assets_tests.web.test_openapi import check, read_api
from mail_assets_tests.web.test_web_developer import generate_client
from mail_assets_tests.world import APRIL, HARBOR, MARCH, PIER, World

SHUT_TITLE = "pier: Close the gate for good"
TRAILERS = "Reviewed-by: Bo Pier <bo@harbour.example>\n"


class Yard(NamedTuple):
    """A world with a commit that was mailed in two versions, and other patches."""

    world: World
    crane: Crane
    sha: str


def versions() -> Iterator[bytes]:
    """Yield five versions of a patch; the fourth is by another person, the fifth has an answer."""
    for number in range(1, 6):
        tag = "[PATCH]" if number == 1 else f"[PATCH v{number}]"
        sender = EVE if number == 4 else "Ann <ann@example.org>"
        note = f"\nv{number}: lift {number} tons; ask zqlog@harbour.example" if number > 1 else ""
        yield patch(
            f"w{number}",
            f"{tag} winch: Turn <b>faster</b> now",
            [*LINES[20 : 30 + number], f'puts("<script>alert({number})</script>");'],
            note,
            sender=sender,
            day=4 + number,
        )
    yield post("no", "Re: winch", "Nacked-by: Bob <zqsaid@harbour.example>\n", BOB, 20, "w5")


@pytest.fixture
def yard(world: World) -> Yard:
    """A yard that the test may change."""
    return build_yard(world)


@pytest.fixture(scope="module")
def standing(mail_databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yard]:
    """A yard that no test changes."""
    dsn = mail_databases.take()
    yield build_yard(World(tmp_path_factory.mktemp("yard"), dsn))
    mail_databases.give_back(dsn)


def build_yard(world: World) -> Yard:
    crane = Crane(world)
    sha = crane.commit(f"crane: know the limit\n\nIt <i>must</i>, says zqbody@harbour.example.\n\n"
                       f"{TRAILERS}Link: https://x.example/r/p2@example.org\n"
                       "Link: https://x.example/r/ghost@example.org\n")  # fmt: skip
    subject = "crane: know the limit"
    world.load(
        post("p1", f"[PATCH] {subject}", f"It must.\n---\n{crane.diff(sha)}", day=4),
        post("p2", f"[PATCH v2] {subject}", f"It must.\n---\n{crane.diff(sha)}", day=5),
        post("thanks", "Re: limits", f"Applied as {sha[:12]}, thanks.\n", BOB, 7, "p2"),
        post("seven", "[ANNOUNCE] crane v7", f"Ann (1):\n      {subject}\n", day=21),
        patch("o", "[PATCH] pier: Stay open", LINES[50:58], day=14),
        *versions(),
        last="patches",
    )
    world.load(
        patch("hush-1", f"[PATCH] {SHUT_TITLE}", LINES[40:50], day=6),
        post("hush-3", f"[PATCH v3] {subject}", f"It must.\n---\n{crane.diff(sha)}", day=6),
        list_name=PIER,
        last="patches",
    )
    crane.read()
    world.threads()
    crane.link()
    world.series()
    world.summaries()
    return Yard(world, crane, sha)


@pytest.fixture(scope="module")
def yard_client(standing: Yard) -> Iterator[httpx.Client]:
    with open_yard(standing) as client:
        yield client


@contextmanager
def open_yard(yard: Yard, addresses: str = HIDDEN) -> Iterator[httpx.Client]:
    """Serve a yard whose second list is not published."""
    with serving(close(yard.world.settings(), PIER), addresses) as client:
        yield client


def test_commit_has_its_mail_evidence_and_people(standing: Yard, yard_client: httpx.Client) -> None:
    found = yard_client.get(f"/commits.json/{standing.sha}").json()
    page = yard_client.get(f"/commits/{standing.sha}").text
    assert found["message_ids"][0] == "p2@example.org"
    first, *others = found["links"]
    assert first["kind"] == "applied"
    assert first["words"].startswith(
        "applied from this mail: the commit names it in its trailer"
        if "trailer Link" in first["evidence"]
        else "applied from"
    )
    assert {one["kind"] for one in others} == {"version", "missing"}
    missing = next(one for one in others if one["kind"] == "missing")
    assert (missing["message_id"], missing["mail"]) == ("ghost@example.org", None)
    assert found["credits"] == [{"role": "reviewed", "from_name": "Bo Pier", "namesake": ""}]
    assert [(one["path"], one["added"], one["removed"]) for one in found["files"]] == [
        ("crane.c", 2, 1)
    ]
    assert found["patch"]["words"] == f"v2 of 2, applied as {standing.sha[:12]} on 2024-03-06"
    assert found["thread_url"] == "/thread.json/p2@example.org"
    assert [(one["message_id"], one["names_commit"]) for one in found["thanks"]] == [
        ("thanks@example.org", True)
    ]
    assert found["named_in"] == []
    assert [one["message_id"] for one in found["released_in"]] == ["seven@example.org"]
    assert 'href="/message/seven@example.org"' in page.partition("Listed in announcements")[2]
    assert "named by the commit, and not in this archive" in page.lower()
    assert "It &lt;i&gt;must&lt;/i&gt;" in page
    assert 'href="/message/p2@example.org"' in page


def test_commit_without_certain_mail_says_why(standing: Yard, yard_client: httpx.Client) -> None:
    sha = standing.crane.first
    found = yard_client.get(f"/commits.json/{sha}").json()
    assert (found["abstained"], found["message_ids"]) == (True, [])
    assert found["reason"].startswith("no mail has its patch-id, and none has its title")
    assert "No mail is certain: no mail has its patch-id" in yard_client.get(f"/commits/{sha}").text


def test_digits_lead_to_the_commit_or_list_several(yard: Yard) -> None:
    with yard.world.connect() as connection:
        [[names]] = connection.execute(
            "select string_agg(quote_ident(attname), ', ') from pg_attribute"
            " where attrelid = 'commits'::regclass and attnum > 0 and attgenerated = ''"
        )
        others = names.replace("sha", "left(sha, 12) || repeat('0', 28)", 1)
        connection.execute(
            f"insert into commits ({names}) select {others} from commits where sha = %s",
            (yard.sha,),
        )
    with open_yard(yard) as client:
        for digits in (yard.sha[:13], yard.sha[:20].upper()):
            for kind in ("", ".json"):
                moved = client.get(f"/commits{kind}/{digits}", follow_redirects=False)
                assert moved.status_code == 303
                assert moved.headers["location"] == f"/commits{kind}/{yard.sha}"
        described = read_api(client)["paths"]["/commits.json/{sha}"]["get"]["responses"]
        assert {*described["303"]["headers"]} == {"Location"}
        several = client.get(f"/commits.json/{yard.sha[:10]}")
        assert several.status_code == 404
        error = several.json()["error"]
        assert (error["code"], len(error["allowed"])) == ("ambiguous", 2)
        assert yard.sha in error["allowed"]
        assert f'href="/commits/{yard.sha}"' in client.get(f"/commits/{yard.sha[:10]}").text


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("/commits.json/abc", 400, "bad_request"),
        ("/commits.json/zzzz", 400, "bad_request"),
        ("/commits.json/%00%00%00%00", 400, "bad_request"),
        ("/commits.json/abcd%25", 400, "bad_request"),
        (f"/commits.json/{'0' * 65}", 400, "bad_request"),
        (f"/commits.json/{'0' * 40}", 404, "not_found"),
        ("/commits.json", 404, "not_found"),
        ("/series.json", 400, "bad_request"),
        ("/series.json/nobody@example.org", 404, "not_found"),
        ("/series.json/thanks@example.org", 404, "not_found"),
        ("/series.json/a%00b", 400, "bad_request"),
        ("/series.json/hush-1@example.org", 410, "closed"),
        ("/series.json/w1@example.org?new=0", 404, "not_found"),
        ("/series.json/w1@example.org?old=0&new=x", 400, "bad_request"),
        ("/series.json/w1@example.org?old=0&new=-1", 400, "bad_request"),
        ("/series.json/w1@example.org?old=0&new=9", 404, "not_found"),
        ("/series.json/w1@example.org?old=1&new=1", 404, "not_found"),
        ("/series.json/w1@example.org?old=0&old=1&new=2", 400, "bad_request"),
        ("/patches.json/pier/open", 410, "closed"),
        ("/patches.json/pier/applied", 410, "closed"),
        ("/patches.json/nowhere/open", 404, "unknown_list"),
        ("/patches.json/harbor/closed", 404, "not_found"),
        ("/patches.json/harbor/open?cursor=x", 404, "not_found"),
        ("/patches.json/harbor", 404, "not_found"),
    ],
)
def test_bad_addresses_give_the_usual_error(yard_client: httpx.Client, path: str, status: int,
                                            code: str) -> None:  # fmt: skip
    response = yard_client.get(path)
    assert (response.status_code, response.json()["error"]["code"]) == (status, code)
    assert response.headers["cache-control"] == "no-store"
    page = yard_client.get(path.replace(".json", "", 1))
    assert page.status_code == status
    assert page.headers["content-type"].startswith("text/html")


def test_series_has_versions_side_by_side(yard_client: httpx.Client) -> None:
    found = yard_client.get("/series.json/w3@example.org").json()
    assert found["series_id"] == "w1@example.org"
    assert [one["version"] for one in found["postings"]] == [1, 2, 3, 4, 5]
    [change] = found["changes"]
    assert [one["label"] for one in change["versions"]] == ["v1", "v2", "v3", "v4", "v5"]
    assert [one["posting"] for one in change["versions"]] == [0, 1, 2, 3, 4]
    assert change["versions"][1]["evidence_words"] == "the same title, changed lines in common"
    assert "lift 3 tons" in change["versions"][2]["changelog"][0]
    assert [one["is_taken_over"] for one in change["versions"]][3]
    assert change["state"] == "rejected"
    assert change["reason"]["message_id"] == "no@example.org"
    assert change["reason"]["text"].startswith("Nacked-by: Bob <")
    page = yard_client.get("/series/w3@example.org").text
    assert page.count('data-version="v') == 5
    assert "<b>faster</b>" not in page
    assert '<link rel="canonical" href="' + BASE_URL + '/series/w1@example.org">' in page


def test_two_versions_are_compared_line_by_line(yard_client: httpx.Client) -> None:
    path = "/series.json/w1@example.org?old=0&new=2"
    found = yard_client.get(path).json()["comparison"]
    [one] = found["changes"]
    assert (one["state"], one["old_id"], one["new_id"]) == (
        "changed",
        "w1@example.org",
        "w3@example.org",
    )
    [file] = one["files"]
    assert f"++{LINES[31]}" in file["lines"]
    assert '-+puts("<script>alert(1)</script>");' in file["lines"]
    page = yard_client.get(path.replace(".json", ""))
    assert '<meta name="robots" content="noindex">' in page.text
    assert "&lt;script&gt;alert(1)" in page.text
    assert "<script>alert" not in page.text
    assert f'<span class="added">++{LINES[31]}</span>\n' in page.text


def test_state_stands_on_every_message_and_post(standing: Yard, yard_client: httpx.Client) -> None:
    first = yard_client.get("/message.json/p1@example.org").json()["patch"]
    assert first["words"] == (
        f"v1 of 2, superseded by v2, which was applied as {standing.sha[:12]} on 2024-03-06"
    )
    assert first["series_url"] == "/series.json/p1@example.org"
    page = yard_client.get("/message/p2@example.org").text
    assert f'applied as <a href="/commits/{standing.sha}"><code>{standing.sha[:12]}' in page
    assert 'href="/series/p2@example.org"' in page
    thread = yard_client.get("/thread/w2@example.org").text
    assert "v2 of 5, superseded by v5, which was rejected on 2024-03-20" in thread
    states = yard_client.get("/thread.json/w2@example.org").json()["patch_states"]
    assert [one["message_id"] for one in states] == ["w2@example.org"]
    assert yard_client.get("/message.json/thanks@example.org").json()["patch"] is None
    assert 'class="state"' not in yard_client.get("/message/thanks@example.org").text


def test_state_stands_beside_each_thread_of_a_month(
    standing: Yard, yard_client: httpx.Client
) -> None:
    data = yard_client.get(f"/lists.json/{HARBOR}/{MARCH}").json()
    states = {one["message_id"]: one for one in data["patch_states"]}
    assert states["p2@example.org"]["state"] == "applied"
    assert "thanks@example.org" not in states
    applied = f'applied as <a href="/commits/{standing.sha}">'
    for path in (f"/lists/{HARBOR}/{MARCH}", f"/lists/{HARBOR}"):
        page = yard_client.get(path).text
        assert "v1, open" in page
        assert applied in page


def test_cached_thread_page_follows_patch_states(yard: Yard) -> None:
    with open_yard(yard) as client:
        before = client.get("/thread/o@example.org")
        assert "v1, open" in before.text
        yard.world.load(
            patch("o2", "[PATCH v2] pier: Stay open", LINES[50:59],
                  day=15).replace(b"15 Mar 2024", b"02 Apr 2024"),
            month=APRIL, last="patches",
        )  # fmt: skip
        yard.world.threads()
        yard.world.series()
        after = client.get("/thread/o@example.org")
        assert "superseded by v2" in after.text
        assert before.headers["etag"] != after.headers["etag"]


def test_decision_of_a_thread_leads_to_its_commits(yard: Yard) -> None:
    yard.world.summaries()
    with open_yard(yard) as client:
        page = client.get("/thread/p2@example.org").text
    _, _, decision = page.partition("<h3>Decision</h3>")
    assert f'<a href="/commits/{yard.sha}" rel="nofollow">' in decision.partition("</ul>")[0]


def test_open_patches_are_listed_newest_first(yard_client: httpx.Client) -> None:
    found = yard_client.get("/patches.json/harbor/open").json()
    assert [one["message_id"] for one in found["changes"]] == ["o@example.org"]
    assert found["next"] is None
    assert "pier: Stay open" in yard_client.get("/patches/harbor/open").text


def test_applied_commits_and_their_feed_name_the_mail(
    standing: Yard, yard_client: httpx.Client
) -> None:
    found = yard_client.get("/patches.json/harbor/applied").json()
    [one] = found["commits"]
    assert (one["sha"], one["mail"]["message_id"]) == (standing.sha, "p2@example.org")
    response = yard_client.get("/patches.atom/harbor/applied")
    assert response.headers["content-type"].startswith("application/atom+xml")
    feed = ElementTree.fromstring(response.content)
    [entry] = feed.findall(f"{ATOM}entry")
    links = {link.get("rel"): link.get("href") for link in entry.findall(f"{ATOM}link")}
    assert links == {
        "alternate": f"{BASE_URL}/commits/{standing.sha}",
        "related": f"{BASE_URL}/message/p2@example.org",
    }
    list_page = yard_client.get("/lists/harbor").text
    alternate = re.findall(r'<link rel="alternate" type="([^"]*)" href="([^"]*)"', list_page)
    assert ("application/atom+xml", "/patches.atom/harbor/applied") in alternate
    for kind in ("open", "applied"):
        assert f'href="/patches/harbor/{kind}"' in list_page
    page = yard_client.get("/patches/harbor/applied").text
    assert 'type="application/atom+xml" href="/patches.atom/harbor/applied"' in page


def test_list_without_repository_has_no_links(standing: Yard) -> None:
    with serving(standing.world.settings()) as client:
        assert "/patches/pier" not in client.get("/lists/pier").text
        assert client.get("/patches.json/pier/applied").json()["commits"] == []


def patch_paths(sha: str) -> list[str]:
    ids = ("w1@example.org", "w5@example.org", "p2@example.org")
    return [
        *(f"/{door}/{sha}" for door in ("commits", "commits.json")),
        *(f"/{door}/{id}" for door in ("series", "series.json") for id in ids),
        *(f"/{door}/w1@example.org?old=0&new=3" for door in ("series", "series.json")),
        *(f"/patches{kind}/harbor/open" for kind in ("", ".json")),
        *(f"/patches{kind}/harbor/applied" for kind in ("", ".json", ".atom")),
        *(f"/{door}/{id}" for door in ("message", "message.json", "thread") for id in ids),
    ]


def test_patch_pages_show_no_address_and_no_closed_mail(standing: Yard) -> None:
    users = ("zqlog", "zqsaid", "zqbody", "bo@harbour", "bob@", "eve@", "ann@")
    with open_yard(standing) as client:
        for path in patch_paths(standing.sha):
            response = client.get(path)
            assert response.status_code == 200, path
            told = [one for one in (*users, "hush-", "Close the gate") if one in response.text]
            assert not told, (path, told)
    with open_yard(standing, SHOWN) as client:
        assert "bo@harbour.example" in client.get(f"/commits.json/{standing.sha}").text
        assert client.get(f"/commits.json/{standing.sha}").json()["author"]["from_email"]


def test_commit_of_a_closed_list_is_gone(standing: Yard) -> None:
    settings = close(standing.world.settings(), HARBOR)
    with serving(settings) as client:
        for path in (f"/commits/{standing.sha}", f"/commits.json/{standing.sha[:8]}"):
            assert client.get(path).status_code == 410
        assert client.get("/patches/harbor/applied").status_code == 410
        assert client.get("/series/w1@example.org").status_code == 410


DOCUMENTS = [
    ("CommitDocument", "/commits.json/{sha}"),
    ("CommitDocument", "/commits.json/{first}"),
    ("SeriesDocument", "/series.json/w1@example.org?old=0&new=4"),
    ("SeriesDocument", "/series.json?id=p1@example.org"),
    ("OpenPatchesDocument", "/patches.json/harbor/open"),
    ("AppliedDocument", "/patches.json/harbor/applied"),
    ("MessageDocument", "/message.json/p1@example.org"),
    ("ThreadDocument", "/thread.json/p1@example.org"),
    ("ErrorDocument", "/commits.json/0000"),
]


@pytest.mark.parametrize("addresses", [HIDDEN, SHOWN])
def test_documents_of_patches_match_their_schemas(standing: Yard, addresses: str) -> None:
    with open_yard(standing, addresses) as client:
        api = read_api(client)
        for name, path in DOCUMENTS:
            response = client.get(path.format(sha=standing.sha, first=standing.crane.first))
            check(api, name, response.json())


def test_generated_client_walks_archive_and_patches(standing: Yard, tmp_path: Path) -> None:
    def ask(operation: str, *values: str, tag: str = "patches", **options: object) -> Any:
        module = importlib.import_module(f"{name}.api.{tag}.{operation}")
        return module.sync(*values, client=client, **options)

    with open_yard(standing) as server, generate_client(server, tmp_path) as name:
        package = importlib.import_module(name)
        opened = package.Client(
            base_url=str(server.base_url), raise_on_unexpected_status=True, follow_redirects=True
        )
        lists = importlib.import_module(f"{name}.models")
        with opened as client:
            [one] = ask("list_lists", tag="lists").lists
            archive = ask("get_list", lists.GetListList(one.name), tag="lists")
            count = 0
            for month in archive.archives:
                page = ask("get_month", lists.GetMonthList(one.name), month.month, tag="lists")
                count += len(page.posts)
                assert page.next_ is None
                for post in (page.posts[0], page.posts[-1]):
                    message = ask("get_message", post.message_id, tag="messages")
                    assert message.message_id == post.message_id
                    thread = ask("get_thread", post.thread_id, tag="messages")
                    assert post.message_id in [other.message_id for other in thread.posts]
            mailbox = ask("get_list_mailbox", lists.GetListMailboxList(one.name), tag="lists")
            packed = gzip.decompress(mailbox.payload.read())
            assert packed.count(b"\nMessage-ID: ") == archive.messages == count > 0
            found = ask("search", tag="search", q="winch mode:fulltext group:message", limit=1)
            given = {name: value for name, [value] in parse_qs(urlsplit(found.next_).query).items()}
            following = ask("search", tag="search", **given)
            assert {hit.message_id for hit in found.hits}.isdisjoint(
                hit.message_id for hit in following.hits
            )
            [applied] = ask("list_applied", lists.ListAppliedList("harbor")).commits
            commit = ask("get_commit", applied.sha)
            assert ask("get_commit", applied.sha[:12]).to_dict() == commit.to_dict()
            assert commit.message_ids[0] == applied.mail.message_id
            feed = ask("get_applied_feed", lists.GetAppliedFeedList("harbor"))
            assert applied.sha in str(feed)
            [waiting] = ask("list_open_patches", lists.ListOpenPatchesList("harbor")).changes
            series = ask("get_series", waiting.message_id)
            by_id = ask("get_series_by_id", id=waiting.message_id)
            assert by_id.to_dict() == series.to_dict()
            compared = ask("get_series", "w1@example.org", old=0, new=4).comparison
            assert [one.state for one in compared.changes] == ["changed"]
            refused = ask("get_commit", "0000")
            assert refused.error.code == "not_found"


def test_sitemap_leads_to_commits_and_series(yard_client: httpx.Client, standing: Yard) -> None:
    found = re.findall("<loc>([^<]*)", yard_client.get("/sitemap/harbor/2024-03").text)
    paths = [one.removeprefix(BASE_URL) for one in found]
    assert len({*paths}) == len(paths)
    assert [one for one in paths if one.startswith("/commits/")] == [f"/commits/{standing.sha}"]
    series = [one for one in paths if one.startswith("/series/")]
    assert {"/series/w1@example.org", "/series/p1@example.org"} <= {*series}
    for path in series:
        page = yard_client.get(path).text
        assert f'rel="canonical" href="{BASE_URL}{path}"' in page
        assert f'property="og:url" content="{BASE_URL}{path}"' in page


def test_series_page_says_what_changed_between(yard_client: httpx.Client) -> None:
    page = yard_client.get("/series/w1@example.org").text
    links = re.findall(r'href="([^"]*)"[^>]*>What changed</a>', page)
    assert [one.partition("?")[2] for one in links] == [
        f"old={number}&amp;new={number + 1}" for number in range(4)
    ]
    assert "Why these versions are one series" in page
    compared = yard_client.get("/series/w1@example.org?old=0&new=4").text
    assert compared.index("Compare two versions") < compared.index("Versions side by side")


def test_commit_page_shows_the_mail_above_the_message(
    standing: Yard, yard_client: httpx.Client
) -> None:
    page = yard_client.get(f"/commits/{standing.sha}").text
    assert page.index("The mail that decided it") < page.index("Commit message")
    assert 'href="https://x.example/r/p2@example.org"' in page
    assert "it is in the thread" in page or "trailer Link" in page or "the commit names it" in page


@pytest.mark.parametrize(
    ("versions", "missing"),
    [([1], ""), ([1, 2, 3], ""), ([3], "v1 to v2"), ([2, 4, 9], "v1, v3, v5 to v8"),
     ([1, 1, 3], "v2"), ([10**9], "v1 to v999999999")],
)  # fmt: skip
def test_missing_versions_are_named(versions: list[int], missing: str) -> None:
    assert name_missing({"postings": [{"version": one} for one in versions]}) == missing


def test_open_patches_of_one_posting_share_one_line() -> None:
    def row(number: int, words: str, day: str = "01") -> dict[str, str]:
        return {
            "series_url": "/series/a", "series_title": "A", "title": "B",
            "from_name": "Ann", "mark": "abcd",
            "sent_at": f"2024-03-{day}T00:00:0{number}Z", "words": words,
        }  # fmt: skip

    wait = "open, without an answer for 60 days"
    for rows, is_posting, waits in (
        ([row(2, wait), row(1, wait)], True, "without an answer for 60 days"),
        ([row(2, wait), row(1, "open")], True, ""),
        ([row(2, "open"), row(1, "open", "02")], False, ""),
    ):
        [group] = view_open_patches({"changes": rows})
        assert (group["is_posting"], group["waits"]) == (is_posting, waits)
        assert [one["sent_at"] for one in group["patches"]] == [r["sent_at"] for r in rows][::-1]
        assert group["part"] == ""
    for title, part in (("A", ""), ("B", "B")):
        [group] = view_open_patches({"changes": [{**row(1, wait), "title": title}]})
        assert group["part"] == part


def test_known_tag_of_patch_pages_gets_304(standing: Yard, yard_client: httpx.Client) -> None:
    for path in patch_paths(standing.sha):
        first = yard_client.get(path)
        again = yard_client.get(path, headers={"If-None-Match": first.headers["etag"]})
        assert (again.status_code, again.content) == (304, b""), path
        seconds = "60" if path.startswith("/patches") else "300"
        assert first.headers["cache-control"] == f"max-age={seconds}"


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="needs chromium, of Debian's package")
def test_patch_pages_fit_a_phone_and_a_keyboard(standing: Yard, tmp_path: Path) -> None:
    paths = [one for one in patch_paths(standing.sha) if "." not in one.split("/")[1]]
    with open_yard(standing) as client, browsing(tmp_path) as browser:
        site = str(client.base_url).rstrip("/")
        for path in paths:
            for width in (320, 390, 640):
                show(browser, width)
                browser.visit(site + path)
                evaluate(browser, OPEN)
                needed, has = evaluate(browser, WIDTHS)
                assert needed <= has, (path, width, evaluate(browser, WIDEST))
            show(browser, 1280)
            browser.visit(site + path)
            evaluate(browser, f"{OPEN}; {START}")
            reached = [*press_tab(browser, evaluate(browser, INTERACTIVE) + 50)]
            missed = [one["name"] for one in reached if not (one["seen"] and one["before"])]
            assert not missed, (path, missed)
            assert len(reached) >= evaluate(browser, INTERACTIVE), path


def test_pages_of_patches_link_further_pages(yard: Yard, monkeypatch: Any) -> None:
    from mail_assets.reading import patch_pages
    from mail_assets.web import commit_documents, series_documents

    yard.world.load(
        *(
            patch(f"n{number}", f"[PATCH] new: Thing {number * 7919} is here", [
                f"thing {number * 31 + line} of {number * 17}" for line in range(9)
            ]).replace(b"04 Mar 2024", f"{number + 1:02d} Apr 2024".encode())
            for number in range(5)
        ),
        month=APRIL,
        last="patches",
    )  # fmt: skip
    yard.world.threads()
    yard.world.series()
    for module in (commit_documents, series_documents):
        monkeypatch.setattr(module, "ROWS", 2)
    monkeypatch.setattr(patch_pages, "LOOKED_AT", 3)
    with open_yard(yard) as client:
        found: list[str] = []
        path: str | None = "/patches.json/harbor/open"
        while path:
            page = client.get(path).json()
            assert client.get(page["html_url"]).status_code == 200
            found += [one["message_id"].partition("@")[0] for one in page["changes"]]
            path = page["next"]
    assert found == ["n4", "n3", "n2", "n1", "n0", "o"]
