"""The manifest: a key is known before its vector is written and until it is deleted."""

import psycopg

from mail_assets.month import ListMonth
from mail_assets.tables.indexes import (
    Entry,
    IndexMonth,
    Manifest,
    drop_keys,
    mark_intended,
    mark_written,
    read_manifest,
)

HERE = IndexMonth(Manifest("vectors", "lance:here index"), ListMonth("dev", "2024-03"))
ELSEWHERE = [
    IndexMonth(Manifest("vectors", "lance:here index"), ListMonth("dev", "2024-04")),
    IndexMonth(Manifest("vectors", "lance:here index"), ListMonth("users", "2024-03")),
    IndexMonth(Manifest("vectors", "lance:there index"), ListMonth("dev", "2024-03")),
]
ONE, TWO = b"1" * 32, b"2" * 32


def test_a_key_is_intended_then_written_then_forgotten(migrated: psycopg.Connection) -> None:
    assert read_manifest(migrated, HERE) == {}
    mark_intended(migrated, HERE, {"a": ONE, "b": TWO})
    assert read_manifest(migrated, HERE) == {
        "a": Entry(ONE, False),
        "b": Entry(TWO, False),
    }
    mark_written(migrated, HERE)
    assert read_manifest(migrated, HERE) == {
        "a": Entry(ONE, True),
        "b": Entry(TWO, True),
    }
    drop_keys(migrated, HERE.manifest, ["a"])
    assert read_manifest(migrated, HERE) == {"b": Entry(TWO, True)}


def test_a_key_that_will_be_rewritten_is_not_written(migrated: psycopg.Connection) -> None:
    mark_intended(migrated, HERE, {"a": ONE, "b": ONE})
    mark_written(migrated, HERE)
    mark_intended(migrated, HERE, {"a": TWO})
    assert read_manifest(migrated, HERE) == {
        "a": Entry(TWO, False),
        "b": Entry(ONE, True),
    }


def test_other_partitions_and_indexes_are_never_touched(migrated: psycopg.Connection) -> None:
    for number, part in enumerate(ELSEWHERE):
        mark_intended(migrated, part, {"a" if part.manifest != HERE.manifest else f"{number}": ONE})
    mark_intended(migrated, HERE, {"a": ONE})
    mark_written(migrated, HERE)
    drop_keys(migrated, HERE.manifest, ["a"])
    assert read_manifest(migrated, HERE) == {}
    for part in ELSEWHERE:
        assert [*read_manifest(migrated, part).values()] == [Entry(ONE, False)]


def test_empty_changes_do_nothing(migrated: psycopg.Connection) -> None:
    mark_intended(migrated, HERE, {})
    mark_written(migrated, HERE)
    drop_keys(migrated, HERE.manifest, [])
    assert read_manifest(migrated, HERE) == {}
