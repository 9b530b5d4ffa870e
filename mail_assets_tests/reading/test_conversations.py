"""A thread is read by any of its ids: each message once, in the order of the tree."""

import json

import psycopg
import pytest

from mail_assets.month import ListMonth
from mail_assets.reading.browsing import list_messages
from mail_assets.reading.conversations import (
    Extent,
    Ordinal,
    Place,
    count_threads,
    find_page_starts,
    find_place,
    measure_thread,
    read_ordinals,
    read_posts,
    read_thread,
)
from mail_assets.steps.build_threads import build_threads
from mail_assets.tables.lists import show_lists
from mail_assets_tests.tables.rows import MONTH, OTHER_LIST, load, stored

QUOTING = "On Friday Jo wrote:\n> It holds.\n\nNot for long.\n"


def build(connection: psycopg.Connection) -> None:
    build_threads(connection, lambda line: None)


@pytest.fixture
def thread(migrated: psycopg.Connection) -> psycopg.Connection:
    """1 <- (ghost 2) <- 3, 1 <- 4 on another list in another month, and 1 cross-posted."""
    one = stored("1@x")
    three = stored("3@x", QUOTING, headers="References: <1@x> <2@x>\n", ordinal=1)
    four = stored("4@x", headers="In-Reply-To: <1@x>\n")
    load(migrated, [one, three])
    load(migrated, [one], OTHER_LIST)
    load(migrated, [four], ListMonth("users", "2024-04"))
    load(migrated, [stored("alone@x")], ListMonth("users", "2024-05"))
    build(migrated)
    return migrated


@pytest.mark.parametrize("id", ["1@x", "2@x", "3@x", "4@x"])
def test_thread_is_read_by_any_of_its_ids(thread: psycopg.Connection, id: str) -> None:
    found = read_thread(thread, id)
    assert found
    assert found.thread_id == "1@x"
    assert [(p.position, p.depth, p.message_id, p.is_ghost) for p in found.posts] == [
        (0, 0, "1@x", False),
        (1, 1, "2@x", True),
        (2, 1, "3@x", False),
        (3, 1, "4@x", False),
    ]
    assert [(p.parent_id, p.parent_message_id) for p in found.posts] == [
        (None, None),
        ("1@x", "1@x"),
        ("1@x", "2@x"),
        ("1@x", "1@x"),
    ]


def test_each_message_appears_once_with_its_places(thread: psycopg.Connection) -> None:
    found = read_thread(thread, "4@x")
    assert found
    assert found.lists == ["dev", "users"]
    assert [len(p.places) for p in found.posts] == [2, 0, 1, 1]
    one, ghost, three, four = found.posts
    assert one.places == (MONTH, OTHER_LIST)
    assert four.places == (ListMonth("users", "2024-04"),)
    assert (one.from_name, one.from_email, one.subject) == ("Jo Berg", "jo@example.org", "Leases")
    assert three.body_text == QUOTING
    assert [kind for _, _, kind in three.segments][:2] == ["attribution", "quote"]
    assert (ghost.sent_at, ghost.body_text, ghost.segments) == (None, "", ())


def test_unknown_id_has_no_thread(thread: psycopg.Connection) -> None:
    assert read_thread(thread, "unheard@x") is None
    assert count_threads(thread) == 2


def test_former_id_reads_the_thread_of_today(thread: psycopg.Connection) -> None:
    load(thread, [stored("0@x", headers="References: <1@x>\n")], ListMonth("dev", "2024-06"))
    build(thread)
    places = [find_place(thread, id) for id in ("0@x", "1@x", "alone@x")]
    assert [place and place.thread_id for place in places] == ["0@x", "0@x", "alone@x"]
    load(thread, [], ListMonth("dev", "2024-06"))
    build(thread)
    found = read_thread(thread, "0@x")
    assert found
    assert found.thread_id == "1@x"


def test_message_gone_since_the_build_is_a_ghost(thread: psycopg.Connection) -> None:
    load(thread, [stored("1@x")])
    found = read_thread(thread, "3@x")
    assert found
    assert [post.is_ghost for post in found.posts] == [False, True, True, False]
    assert all(post.sent_at for post in found.messages)
    assert measure_thread(thread, "1@x").messages == len(found.messages) == 2


#: Lists that a session shows, and the numbers of messages that it may show.
ORDINALS = {
    ("dev", "ops", "users"): {"1@x": (1, 3), "2@x": (1, 3), "3@x": (2, 3), "4@x": (3, 3)},
    ("dev", "ops"): {"1@x": (1, 2), "2@x": (1, 2), "3@x": (2, 2)},
    ("users",): {"1@x": (1, 2), "4@x": (2, 2)},
}
CALLS = "select pg_stat_get_xact_function_calls('shown_thread(text, text[])'::regprocedure)"


@pytest.mark.parametrize("lists", ORDINALS)
def test_thread_is_read_once_for_the_number_of_a_message(
    thread: psycopg.Connection, lists: tuple[str, ...]
) -> None:
    ids = ["1@x", "2@x", "3@x", "4@x", "none@x"]
    with thread.transaction():
        thread.execute("set local track_functions = 'all'")
        show_lists(thread, lists)
        found = read_ordinals(thread, ids)
        calls = thread.execute(CALLS).fetchone()
    assert found == {id: Ordinal(*numbers) for id, numbers in ORDINALS[lists].items()}
    assert calls == (len(ids),)


def test_thread_is_read_once_for_the_messages_of_a_list(thread: psycopg.Connection) -> None:
    with thread.transaction():
        thread.execute("set local track_functions = 'all'")
        show_lists(thread, ("dev", "ops"))
        found = [
            (one["message_id"], one["thread_id"]) for one in list_messages(thread, "dev", None)
        ]
        calls = thread.execute(CALLS).fetchone()
    assert (found, calls) == ([("1@x", "1@x"), ("3@x", "1@x")], (1,))


def test_first_of_two_contents_under_an_id_is_read(migrated: psycopg.Connection) -> None:
    load(migrated, [stored("1@x"), stored("1@x", "Another.\n", variant=1, ordinal=1)])
    build(migrated)
    found = read_thread(migrated, "1@x")
    assert found
    [post] = found.posts
    assert post.body_text == "The worker holds its lease.\n"


def test_json_is_plain_and_says_everything(thread: psycopg.Connection) -> None:
    found = read_thread(thread, "1@x")
    assert found
    said = json.loads(json.dumps(found.as_json()))
    assert [*said] == ["thread_id", "lists", "messages", "posts"]
    assert said["messages"] == 3
    assert [*said["posts"][2]] == [
        *("position", "depth", "message_id", "is_ghost", "parent_id", "parent_message_id"),
        "by_subject",
        *("places", "from_name", "from_email", "sent_at", "subject", "subject_base"),
        *("body_text", "characters", "segments", "attachments", "contested", "flags"),
    ]
    assert said["posts"][2]["sent_at"] == "2024-03-01T10:00:00Z"
    assert said["posts"][2]["segments"][0] == [0, 20, "attribution"]
    assert said["posts"][2]["places"] == [{"list": "dev", "month": "2024-03"}]
    assert said["posts"][1]["sent_at"] is None


def test_part_of_a_thread_is_read_and_of_its_texts(thread: psycopg.Connection) -> None:
    posts = read_posts(thread, "1@x", Extent(first=1, posts=2, characters=40))
    assert [post.position for post in posts] == [1, 2]
    cut = posts[1]
    assert cut.body_text == QUOTING[:40]
    assert cut.characters == len(QUOTING)
    assert [(s, e) for s, e, _ in cut.segments] == [(0, 20), (20, 32), (32, 40)]


def test_threads_size_is_read_without_its_texts(thread: psycopg.Connection) -> None:
    size = measure_thread(thread, "1@x")
    assert (size.positions, size.messages, size.people) == (4, 3, 1)
    assert (size.lists, size.subject) == (("dev", "users"), "Leases")


def test_pages_of_a_thread_begin_at_their_positions(thread: psycopg.Connection) -> None:
    assert find_page_starts(thread, "1@x", 3) == ["1@x", "4@x"]
    assert find_page_starts(thread, "1@x", 50) == ["1@x"]
    assert find_place(thread, "4@x") == Place("1@x", 3)
