"""The rows of threads: the difference is written, whatever month a message is in."""

import psycopg
import pytest

from mail_assets.mail.threads import Node, build
from mail_assets.store.threads import Rebuilt, count_threads, read_references, replace_threads
from mail_assets_tests.store.rows import load, stored


def rebuild(connection: psycopg.Connection) -> Rebuilt:
    with connection.transaction():
        return replace_threads(connection, build(read_references(connection)))


def parents(connection: psycopg.Connection) -> dict[str, tuple[str | None, bool]]:
    rows = connection.execute("select message_id, parent_message_id, is_ghost from threads")
    return {name: (parent, ghost) for name, parent, ghost in rows.fetchall()}


REPLY = "In-Reply-To: <1@example.org>\n"


def test_references_are_read_as_the_message_gives_them(migrated: psycopg.Connection) -> None:
    headers = "References: <a@x> <b@x>\nIn-Reply-To: <b@x>\n"
    load(migrated, [stored("1@example.org", headers=headers)])
    load(migrated, [stored("1@example.org", "Variant.\n", variant=1)], "users")
    assert [*read_references(migrated)] == [
        ("1@example.org", ("a@x", "b@x"), ("b@x",), 1709287200.0)
    ]


def test_a_reply_finds_its_parent_in_another_month_and_list(
    migrated: psycopg.Connection,
) -> None:
    load(migrated, [stored("1@example.org")], "users", "2024-02")
    load(migrated, [stored("2@example.org", headers=REPLY)])
    assert rebuild(migrated)[:2] == (2, 0)
    assert parents(migrated)["2@example.org"] == ("1@example.org", False)
    assert count_threads(migrated) == 1


def test_rebuilding_the_same_writes_nothing(migrated: psycopg.Connection) -> None:
    load(migrated, [stored("2@example.org", headers=REPLY), stored("3@example.org", ordinal=1)])
    first = rebuild(migrated)
    again = rebuild(migrated)
    assert again == (0, 0, first.digest)
    assert parents(migrated)["1@example.org"] == (None, True)


def test_only_the_difference_is_written(migrated: psycopg.Connection) -> None:
    load(migrated, [stored("2@example.org", headers=REPLY), stored("3@example.org", ordinal=1)])
    first = rebuild(migrated)
    load(migrated, [stored("1@example.org")], "users")
    arrived = rebuild(migrated)
    assert (arrived.written, arrived.deleted) == (2, 0)  # the ghost, and the reply to it
    assert parents(migrated)["1@example.org"] == (None, False)
    load(migrated, [], "users")
    assert rebuild(migrated)[:2] == (2, 0)
    load(migrated, [stored("3@example.org")])
    gone = rebuild(migrated)
    assert gone.deleted == 2
    assert [*parents(migrated)] == ["3@example.org"]
    assert len({first.digest, arrived.digest, gone.digest}) == 3


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("thread_id", "x@example.org"),
        ("parent_id", None),
        ("parent_message_id", "x@example.org"),
        ("root_id", "x@example.org"),
        ("depth", 7),
        ("position", 7),
        ("is_ghost", True),
    ],
)
def test_a_change_of_any_column_is_a_difference(
    migrated: psycopg.Connection, field: str, value: object
) -> None:
    load(migrated, [stored("1@example.org"), stored("2@example.org", headers=REPLY, ordinal=1)])
    nodes = build(read_references(migrated))
    with migrated.transaction():
        first = replace_threads(migrated, nodes)
    changed = next(node for node in nodes if node.message_id == "2@example.org")
    assert getattr(changed, field) != value
    setattr(changed, field, value)
    with migrated.transaction():
        second = replace_threads(migrated, nodes)
    assert (second.written, second.deleted) == (1, 0)
    assert second.digest != first.digest
    query = "select to_jsonb(t) -> %s from threads t where message_id = '2@example.org'"
    assert migrated.execute(query, (field,)).fetchone() == (value,)


def test_an_error_halfway_leaves_the_old_rows(migrated: psycopg.Connection) -> None:
    load(migrated, [stored("1@example.org")])
    rebuild(migrated)
    twice = Node("2@example.org", "2@example.org", None, None, "2@example.org", 0, 0, False)

    def broken() -> None:
        with migrated.transaction():
            replace_threads(migrated, [twice, twice])

    with pytest.raises(psycopg.errors.CardinalityViolation):
        broken()
    assert [*parents(migrated)] == ["1@example.org"]
