"""Lists and months as mailboxes and feeds are complete, ordered, and read only their rows."""

import gzip
import re
from collections.abc import Iterator
from email.message import Message
from pathlib import Path

import httpx
import psycopg
import pytest

from mail_assets.month import ListMonth
from mail_assets.postgres.statements import statement
from mail_assets.reading.exports import NEWEST, list_month, list_newest_of, read_rows
from mail_assets.tables.lists import show_lists
from mail_assets.web import documents, exports, feeds
from mail_assets.web.privacy import SHOWN
from mail_assets_tests.kept_worlds import kept_world, standing_world
from mail_assets_tests.sample_corpus import ROOT, Corpus
from mail_assets_tests.web.conftest import serving_world
from mail_assets_tests.web.readings import follow_feed, split_mailbox
from mail_assets_tests.world import APRIL, MARCH, PIER, World, mail


def dated(name: str, day: int, month: int = 3, **fields: str) -> bytes:
    return mail(name, date=f"{day} {'Mar' if month == 3 else 'Apr'} 2024 09:00:00 +0000", **fields)


def fill(world: World) -> None:
    """Fill two months of a list: an id with two texts, a message of two lists, an address."""
    march = [dated("b", 9), dated("a", 2), dated("c", 2), dated("c", 5, body="From another text.")]
    world.archive(MARCH, *march, dated("x", 7, body="From jo@example.org\nFrom the quay.\n"))
    world.archive(APRIL, dated("e", 3, 4), dated("d", 1, 4))
    world.archive(MARCH, dated("b", 9), list_name=PIER)
    for month in (MARCH, APRIL):
        world.chain(month, last="messages")
    world.chain(MARCH, list_name=PIER, last="messages")
    world.threads()


filled = kept_world(fill)
standing = standing_world(fill)


@pytest.fixture(scope="module")
def client(standing: World) -> Iterator[httpx.Client]:
    with serving_world(standing) as client:
        yield client


def read_mailbox(client: httpx.Client, url: str, folder: Path) -> list[Message]:
    response = client.get(url)
    assert response.headers["content-type"] == "application/gzip"
    return split_mailbox(response.content, folder)


def ids_of(messages: list[Message]) -> str:
    return "".join(one["message-id"].strip("<>").partition("@")[0] for one in messages)


@pytest.mark.parametrize(
    ("path", "ids"), [("harbor", "accxbde"), ("harbor/2024-03", "accxb"), ("harbor/2024-04", "de")]
)
def test_mailbox_has_the_messages_that_the_json_counts(
    client: httpx.Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, ids: str
) -> None:
    monkeypatch.setattr(exports, "MESSAGES_AT_A_TIME", 2)
    document = client.get(f"/lists.json/{path}").json()
    assert document["mbox_url"] == f"/lists.mbox.gz/{path}"
    messages = read_mailbox(client, document["mbox_url"], tmp_path)
    assert ids_of(messages) == ids
    assert document["messages"] == len(ids)
    assert messages[-1]["x-export-messages"] == str(len(ids))
    assert [one["x-list"] for one in messages] == ["harbor"] * len(ids)


def test_mailbox_hides_addresses_and_quotes_from(client: httpx.Client, tmp_path: Path) -> None:
    messages = read_mailbox(client, "/lists.mbox.gz/harbor/2024-03", tmp_path)
    [text] = [str(one.get_payload()) for one in messages if one["message-id"].startswith("<x@")]
    assert "jo@" not in text
    assert "\nFrom the quay." in text
    assert all("hidden@addresses.invalid" in one["from"] for one in messages)


def test_mailbox_shows_addresses_if_the_archive_does(standing: World, tmp_path: Path) -> None:
    with serving_world(standing, SHOWN) as client:
        messages = read_mailbox(client, "/lists.mbox.gz/harbor/2024-03", tmp_path)
    assert all("ann@example.org" in one["from"] for one in messages)


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("nowhere", 404, "unknown_list"),
        ("harbor/2024-09", 404, "unknown_month"),
        ("harbor/2024-13", 400, "bad_request"),
    ],
)
@pytest.mark.parametrize("kind", ["mbox.gz", "atom"])
def test_unknown_list_or_month_is_an_error(
    client: httpx.Client, kind: str, path: str, status: int, code: str
) -> None:
    response = client.get(f"/lists.{kind}/{path}")
    assert (response.status_code, response.json()["error"]["code"]) == (status, code)


def test_mailbox_is_sent_again_only_if_its_month_changed(filled: World) -> None:
    paths = [f"/lists.mbox.gz/harbor{one}" for one in ("", "/2024-03", "/2024-04")]
    with serving_world(filled) as client:
        tags = {path: client.get(path).headers["etag"] for path in paths}
        known = [client.get(one, headers={"If-None-Match": tags[one]}) for one in paths]
        assert [one.status_code for one in known] == [304] * 3
        assert [one.content for one in known] == [b""] * 3
        filled.load(dated("e", 3, 4), dated("d", 1, 4), dated("f", 4, 4), month=APRIL)
        after = [client.get(one, headers={"If-None-Match": tags[one]}) for one in paths]
    assert [one.status_code for one in after] == [200, 304, 200]


@pytest.mark.parametrize("size", [1, 2, 3, 50])
@pytest.mark.parametrize(
    ("path", "ids"), [("harbor", "edbxcca"), ("harbor/2024-03", "bxcca"), ("pier/2024-03", "b")]
)
def test_feed_leads_to_the_last_message(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch, path: str, ids: str, size: int
) -> None:
    monkeypatch.setattr(feeds, "ARCHIVE_ENTRIES", size)
    document = client.get(f"/lists.json/{path}").json()
    found = [*follow_feed(client.get, document["atom_url"])]
    assert "".join(one.removeprefix("mid:").partition("@")[0] for one in found) == ids
    assert len({*found}) == len(found)  # the texts of an id have different entries


def test_feed_of_a_thread_leads_to_its_first_message(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feeds, "ENTRIES", 2)
    answers = [dated(name, day, references="<a@example.org>") for day, name in enumerate("bcde", 3)]
    world.load(dated("a", 2), *answers)
    world.threads()
    with serving_world(world) as client:
        url = client.get("/thread.json/a@example.org").json()["atom_url"]
        found = [*follow_feed(client.get, url)]
    assert [one.removeprefix("mid:")[0] for one in found] == [*"edcba"]


@pytest.mark.parametrize("page", ["/lists/harbor", "/lists/harbor/2024-03"])
def test_pages_link_their_mailbox_and_feed(client: httpx.Client, page: str) -> None:
    text = client.get(page).text
    for kind in ("mbox.gz", "atom"):
        assert f'href="{page.replace("/lists", f"/lists.{kind}")}"' in text


def test_search_mailbox_reports_omissions(filled: World, monkeypatch: pytest.MonkeyPatch) -> None:
    filled.chain(MARCH, last="words")
    query = {"q": "list:harbor month:2024-03"}
    with serving_world(filled) as client:
        for most, count, is_cut in ((10_000, 4, "false"), (3, 3, "true")):
            monkeypatch.setattr(exports, "MAX_EXPORTED", most)
            monkeypatch.setattr(documents, "MAX_EXPORTED", most)
            response = client.get("/search.mbox.gz", params=query)
            fields = {"X-Export-Total": "4", "X-Export-Truncated": is_cut}
            assert {name: response.headers[name] for name in fields} == fields
            last = gzip.decompress(response.content).decode().rpartition("\nFrom mboxrd@z")[2]
            for name, value in {**fields, "X-Export-Messages": str(count)}.items():
                assert f"\n{name}: {value}\n" in last
            found = client.get("/search.json", params=query).json()
            assert found["mbox_truncated"] is (is_cut == "true")


def test_list_and_month_are_read_by_index(corpus: Corpus) -> None:
    month = ListMonth("harbor-dev", MARCH)
    with psycopg.connect(corpus.settings.pg_dsn, autocommit=True) as connection:
        # the corpus is so small that its pages cost less than an index
        connection.execute("set enable_seqscan = off")
        show_lists(connection, [month.list_name])
        columns = {**month.columns, "sent_at": NEWEST.sent_at, "message_id": "", "most": 3}
        for name in ("month", "newest_of_list", "newest_of_month"):
            query = b"explain " + statement("exports", name).encode()
            plan = "\n".join(line for (line,) in connection.execute(query, columns))
            assert re.search(r"Index Scan.* on messages.*\n.*Index Cond: .*list = ", plan), plan
            assert "Seq Scan on messages" not in plan


def test_threads_read_no_messages_but_their_own(corpus: Corpus) -> None:
    """The planner expects a thousand nodes in a thread, and would prefer to read all messages."""
    asked = {"thread_id": ROOT, "lists": ["harbor-dev"], "recent": 50, "most": 10}
    with psycopg.connect(corpus.settings.pg_dsn, autocommit=True) as connection:
        show_lists(connection, ["harbor-dev"])
        # the corpus is so small that reading all of it costs less than an index
        connection.execute("set random_page_cost = 0.001; set cpu_index_tuple_cost = 0")
        for file, name in (
            ("conversations", "extent"),
            ("conversations", "conversation"),
            ("conversations", "state"),
            ("browsing", "newest_threads"),
        ):
            parameters = {"first": 0, "characters": 100, **asked}
            query = b"explain " + statement(file, name).encode()
            plan = "\n".join(line for (line,) in connection.execute(query, parameters))
            assert re.search(r"Index Scan using messages_message_id on messages", plan), plan
            assert "Hash Cond" not in plan, plan


def test_month_has_only_its_own_rows(corpus: Corpus) -> None:
    month = ListMonth("harbor-dev", MARCH)
    with psycopg.connect(corpus.settings.pg_dsn, autocommit=True) as connection:
        assert list_month(connection, month) == []  # nothing is shown yet
        show_lists(connection, [month.list_name])
        keys = list_month(connection, month)
        rows = read_rows(connection, month, keys)
        assert [one.message_id for one in rows] == [one.message_id for one in keys]
        assert all([*one.lists] == ["harbor-dev"] for one in rows)
        of_month = list_newest_of(connection, month.list_name, month.month, NEWEST, 1_000)
        assert {one.message_id for one in of_month} == {one.message_id for one in keys}
        times = [one.sent_at for one in of_month]
        assert times == sorted(times, reverse=True)
