"""The rows of threads: touched threads are found, and the difference is written."""

import psycopg
import pytest

from mail_assets.mail.threads import Alias, build_trees, choose_copies
from mail_assets.tables.partitions import RowChanges
from mail_assets.tables.threads import (
    Threads,
    read_references,
    read_threads,
    replace_threads,
    take_changes,
    touched_threads,
)
from mail_assets_tests.tables.rows import NEXT_MONTH, OTHER_LIST, Stored, load, stored

NONE = Threads([], {})
REPLY = "In-Reply-To: <1@example.org>\n"


def rebuild(connection: psycopg.Connection) -> RowChanges:
    with connection.transaction():
        old = read_threads(connection, None)
        return replace_threads(
            connection, old, Threads(build_trees(read_references(connection)), {}), ""
        )


def parents(connection: psycopg.Connection) -> dict[str, tuple[str | None, bool]]:
    rows = connection.execute("select message_id, parent_message_id, is_ghost from threads")
    return {name: (parent, ghost) for name, parent, ghost in rows.fetchall()}


def test_references_are_read_as_the_message_gives_them(migrated: psycopg.Connection) -> None:
    headers = "References: <a@x> <b@x>\nIn-Reply-To: <b@x>\n"
    load(migrated, [stored("1@example.org", headers=headers)])
    for found in ([*read_references(migrated)], [*read_references(migrated, ["1@example.org"])]):
        assert [one[:4] for one in found] == [
            ("1@example.org", ("a@x", "b@x"), ("b@x",), 1709287200.0)
        ]
    assert [*read_references(migrated, ["2@example.org"])] == []


def arrived(name: str, day: int, parent: str, variant: int = 0) -> Stored:
    headers = (
        f"Received: from a by b; Fri, {day} Mar 2024 10:00:00 +0000\n"
        f"Received: from c by a; Fri, 1 Mar 2024 10:00:00 +0000\nReferences: <{parent}>\n"
    )
    return stored(name, f"Text of {parent}.\n", headers=headers, variant=variant, ordinal=variant)


def test_copy_that_arrived_first_counts(migrated: psycopg.Connection) -> None:
    load(migrated, [arrived("1@x", 9, "a@x"), arrived("1@x", 8, "b@x", variant=1)])
    load(migrated, [arrived("1@x", 7, "c@x")], OTHER_LIST)
    found = choose_copies(read_references(migrated))["1@x"]
    chosen = migrated.execute("select refs from first_copy('1@x')").fetchone()
    assert chosen == ([*found.references],) == (["c@x"],)
    migrated.execute("delete from messages where list = %s", (OTHER_LIST.list_name,))
    assert choose_copies(read_references(migrated))["1@x"].references == ("b@x",)


@pytest.mark.parametrize(("text", "lists"), [("One.\n", 2), ("Another.\n", 1)])
def test_copy_has_lists_of_its_own_text(
    migrated: psycopg.Connection, text: str, lists: int
) -> None:
    load(migrated, [stored("1@x", "One.\n")])
    load(migrated, [stored("1@x", text)], OTHER_LIST)
    migrated.execute("select find_contested('{1@x}')")
    assert len(choose_copies(read_references(migrated))["1@x"].lists) == lists


@pytest.mark.parametrize(("what", "counts"), [
    ("refs = '{1@example.org}'", True),
    ("in_reply_to = '{1@example.org}'", True),
    ("sent_at = sent_at + interval '1 day'", True),
    ("topic = 'another'", True),
    ("is_answer = not is_answer", True),
    ("arrived_at = arrived_at + interval '1 day'", True),
    ("subject = 'another', body_text = 'another'", False),
    ("refs = refs", False),
])  # fmt: skip
def test_other_references_are_a_change(
    migrated: psycopg.Connection, what: str, counts: bool
) -> None:
    load(migrated, [stored("1@example.org"), stored("2@example.org", ordinal=1)])
    take_changes(migrated, 100)
    migrated.execute(f"update messages set {what} where message_id = '2@example.org'".encode())
    assert {*take_changes(migrated, 100)} == ({"2@example.org"} if counts else set())


def test_messages_that_come_and_go_have_changed_once(migrated: psycopg.Connection) -> None:
    one, two = stored("1@example.org"), stored("2@example.org", ordinal=1)
    load(migrated, [one, two])
    assert {*take_changes(migrated, 100)} == {"1@example.org", "2@example.org"}
    load(migrated, [one])
    load(migrated, [one], OTHER_LIST)
    assert {*take_changes(migrated, 100)} == {"1@example.org", "2@example.org"}
    assert {*take_changes(migrated, 100)} == set()


def test_change_touches_the_threads_that_it_ties_together(migrated: psycopg.Connection) -> None:
    load(migrated, [stored(f"{n}@example.org", ordinal=n) for n in (1, 3, 5)])
    load(migrated, [stored("6@example.org", headers="In-Reply-To: <a@x> <b@x>\n")], OTHER_LIST)
    rebuild(migrated)
    with migrated.transaction():
        old = read_threads(migrated, None)
        led = Threads(old.nodes, {"b@x": Alias("6@example.org", True)})
        replace_threads(migrated, old, led, "")
    bridge = "References: <1@example.org> <b@x>\n"
    load(migrated, [stored("0@example.org", headers=bridge)], NEXT_MONTH)
    assert sorted(touched_threads(migrated, ["0@example.org"])) == [
        "1@example.org",
        "6@example.org",
    ]
    assert touched_threads(migrated, ["3@example.org"]) == ["3@example.org"]
    assert touched_threads(migrated, ["unheard@example.org"]) == []


def test_threads_are_read_with_what_leads_to_them(migrated: psycopg.Connection) -> None:
    load(migrated, [stored("2@example.org", headers=REPLY), stored("3@example.org", ordinal=1)])
    nodes = build_trees(read_references(migrated))
    two, three = Alias("2@example.org", False), Alias("3@example.org", True)
    with migrated.transaction():
        replace_threads(migrated, NONE, Threads(nodes, {"x": two, "y": three}), "")
    assert read_threads(migrated, None) == (nodes, {"x": two, "y": three})
    assert read_threads(migrated, ["1@example.org"]) == (nodes[:2], {"x": two})
    assert read_threads(migrated, []) == NONE
    with migrated.transaction():
        moved = Threads(nodes, {"x": three, "z": two})
        replace_threads(migrated, read_threads(migrated, None), moved, "")
    assert read_threads(migrated, None).aliases == {"x": three, "z": two}


@pytest.mark.parametrize(("field", "value"), [
    ("thread_id", "x@example.org"),
    ("parent_id", None),
    ("parent_message_id", "x@example.org"),
    ("root_id", "x@example.org"),
    ("depth", 7),
    ("position", 7),
    ("is_ghost", True),
    ("by_subject", True),
])  # fmt: skip
def test_change_of_any_column_is_a_difference(
    migrated: psycopg.Connection, field: str, value: object
) -> None:
    load(migrated, [stored("1@example.org"), stored("2@example.org", headers=REPLY, ordinal=1)])
    nodes = build_trees(read_references(migrated))
    with migrated.transaction():
        first = replace_threads(migrated, NONE, Threads(nodes, {}), "")
    changed = next(node for node in nodes if node.message_id == "2@example.org")
    assert getattr(changed, field) != value
    setattr(changed, field, value)
    with migrated.transaction():
        old = read_threads(migrated, None)
        second = replace_threads(migrated, old, Threads(nodes, {}), first.digest)
    assert (second.written, second.deleted) == (1, 0)
    assert second.digest != first.digest
    query = "select to_jsonb(t) -> %s from threads t where message_id = '2@example.org'"
    assert migrated.execute(query, (field,)).fetchone() == (value,)
    with migrated.transaction():
        again = replace_threads(migrated, read_threads(migrated, None), Threads(nodes, {}), "")
    assert again.digest == second.digest, "a digest of differences is that of the rows"
