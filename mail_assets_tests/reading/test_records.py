"""Messages and chunks as records: in the order of archives, wherever a message was posted."""

import psycopg

from mail_assets.month import ListMonth
from mail_assets.reading.browsing import list_messages, show_message
from mail_assets_tests.tables.rows import OTHER_LIST, load, stored


def test_messages_are_listed_in_the_order_of_their_archives(migrated: psycopg.Connection) -> None:
    load(migrated, [stored("b@example.org"), stored("a@example.org", ordinal=1)])
    load(migrated, [stored("c@example.org")], ListMonth("dev", "2024-01"))
    load(migrated, [stored("d@example.org")], OTHER_LIST)
    listed = [*list_messages(migrated, "dev", None)]
    assert [row["message_id"][0] for row in listed] == ["c", "b", "a"]
    assert {row["sent_at"] for row in listed} == {"2024-03-01T10:00:00Z"}
    assert [row["message_id"][0] for row in list_messages(migrated, "dev", "2024-03")] == ["b", "a"]


def test_message_is_shown_wherever_it_was_posted(migrated: psycopg.Connection) -> None:
    load(migrated, [stored("1@example.org")], OTHER_LIST)
    load(migrated, [stored("1@example.org")])
    shown = show_message(migrated, "1@example.org")
    assert [row["list"] for row in shown] == ["users", "dev"]
    assert show_message(migrated, "2@example.org") == []
