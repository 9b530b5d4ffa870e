"""Messages and chunks as records: in the order of archives, wherever a message was posted."""

import psycopg

from mail_assets.month import ListMonth
from mail_assets.reading.browsing import list_messages, read_message_chunks, show_message
from mail_assets_tests.tables.rows import MONTH, OTHER_LIST, load, rechunk, stored


def test_messages_are_listed_in_the_order_of_their_archives(
    migrated: psycopg.Connection,
) -> None:
    load(migrated, [stored("b@example.org"), stored("a@example.org", ordinal=1)])
    load(migrated, [stored("c@example.org")], ListMonth("dev", "2024-01"))
    load(migrated, [stored("d@example.org")], OTHER_LIST)
    listed = [*list_messages(migrated, "dev", None)]
    assert [row["message_id"][0] for row in listed] == ["c", "b", "a"]
    assert {row["sent_at"] for row in listed} == {"2024-03-01T10:00:00Z"}
    assert [row["message_id"][0] for row in list_messages(migrated, "dev", "2024-03")] == ["b", "a"]


def test_a_message_is_shown_wherever_it_was_posted(migrated: psycopg.Connection) -> None:
    load(migrated, [stored("1@example.org")], OTHER_LIST)
    load(migrated, [stored("1@example.org")])
    shown = show_message(migrated, "1@example.org")
    assert [row["list"] for row in shown] == ["users", "dev"]
    assert show_message(migrated, "2@example.org") == []


def test_a_messages_chunks_have_spans_in_pairs(migrated: psycopg.Connection) -> None:
    for month in (OTHER_LIST, MONTH):
        load(migrated, [stored("1@example.org", "Body.\n")], month)
        rechunk(migrated, month)
    chunks = read_message_chunks(migrated, "1@example.org")
    assert [(c["list"], c["spans"]) for c in chunks] == [
        (name, [(0, len(chunks[0]["text"]))]) for name in ("dev", "users")
    ]
