"""The live index of each bucket, and manifests: a key is known until its vector is deleted."""

import psycopg
import pytest

from mail_assets.month import ListMonth
from mail_assets.tables.indexes import (
    Entry,
    IndexMonth,
    Manifest,
    NewIndex,
    count_written,
    drop_keys,
    list_indexes,
    live_index,
    make_first_live,
    mark_intended,
    mark_written,
    read_manifest,
    record_index,
    remove_index,
    switch_live,
)

HERE, THERE = "lance:/here", "pgvector:"
MARCH = ListMonth("dev", "2024-03")


def record(connection: psycopg.Connection, name: str, bucket: str = HERE) -> None:
    record_index(connection, bucket, NewIndex(name, "minilm", "int8", f"print of {name}"))


def test_no_index_is_live_before_one_is_filled(migrated: psycopg.Connection) -> None:
    record(migrated, "one")
    assert live_index(migrated, HERE) is None
    assert [(one.name, one.live) for one in list_indexes(migrated, HERE)] == [("one", False)]


def test_first_filled_index_stays_live(migrated: psycopg.Connection) -> None:
    for name in ("one", "two", "one"):
        record(migrated, name)
        make_first_live(migrated, HERE, name)
    live = live_index(migrated, HERE)
    assert live is not None
    assert live[:4] == ("one", "minilm", "int8", "print of one")
    assert [(one.name, one.live) for one in list_indexes(migrated, HERE)] == [
        ("one", True),
        ("two", False),
    ]


def test_each_bucket_has_a_live_index_of_its_own(migrated: psycopg.Connection) -> None:
    for bucket, name in ((HERE, "one"), (THERE, "two")):
        record(migrated, name, bucket)
        make_first_live(migrated, bucket, name)
    assert [live.name for b in (HERE, THERE) if (live := live_index(migrated, b))] == ["one", "two"]


def test_every_switch_is_recorded(migrated: psycopg.Connection) -> None:
    for name in ("one", "two"):
        record(migrated, name)
    assert switch_live(migrated, HERE, "one", False, {"missing": 0}) is None
    assert switch_live(migrated, HERE, "two", True, {"missing": 7}) == "one"
    live = live_index(migrated, HERE)
    assert live is not None
    assert live.name == "two"
    rows = migrated.execute(
        "select name, replaced, forced, report from promotions order by at"
    ).fetchall()
    assert rows == [("one", None, False, {"missing": 0}), ("two", "one", True, {"missing": 7})]


def test_unrecorded_index_cannot_be_live(migrated: psycopg.Connection) -> None:
    with pytest.raises(psycopg.errors.ForeignKeyViolation):
        switch_live(migrated, HERE, "nobody's", True, {})


def test_removing_an_index_drops_its_manifest(migrated: psycopg.Connection) -> None:
    for name in ("one", "two"):
        record(migrated, name)
        part = IndexMonth(Manifest("vectors", f"{HERE} {name}"), MARCH)
        mark_intended(migrated, part, {"a#0": b"1", "b#0": b"2"})
        mark_written(migrated, part)
    make_first_live(migrated, HERE, "one")
    with pytest.raises(psycopg.errors.ForeignKeyViolation):
        remove_index(migrated, HERE, "one", Manifest("vectors", f"{HERE} one"))
    remove_index(migrated, HERE, "two", Manifest("vectors", f"{HERE} two"))
    assert [one.name for one in list_indexes(migrated, HERE)] == ["one"]
    assert count_written(migrated, Manifest("vectors", f"{HERE} one")) == 2
    removed = IndexMonth(Manifest("vectors", f"{HERE} two"), MARCH)
    assert read_manifest(migrated, removed) == {}


PART = IndexMonth(Manifest("vectors", "lance:here index"), MARCH)
ELSEWPART = [
    IndexMonth(Manifest("vectors", "lance:here index"), ListMonth("dev", "2024-04")),
    IndexMonth(Manifest("vectors", "lance:here index"), ListMonth("users", "2024-03")),
    IndexMonth(Manifest("vectors", "lance:there index"), MARCH),
]
ONE, TWO = b"1" * 32, b"2" * 32


def test_key_is_intended_then_written_then_forgotten(migrated: psycopg.Connection) -> None:
    assert read_manifest(migrated, PART) == {}
    mark_intended(migrated, PART, {"a": ONE, "b": TWO})
    assert read_manifest(migrated, PART) == {"a": Entry(ONE, False), "b": Entry(TWO, False)}
    mark_written(migrated, PART)
    assert read_manifest(migrated, PART) == {"a": Entry(ONE, True), "b": Entry(TWO, True)}
    drop_keys(migrated, PART.manifest, ["a"])
    assert read_manifest(migrated, PART) == {"b": Entry(TWO, True)}


def test_key_that_will_be_rewritten_is_not_written(migrated: psycopg.Connection) -> None:
    mark_intended(migrated, PART, {"a": ONE, "b": ONE})
    mark_written(migrated, PART)
    mark_intended(migrated, PART, {"a": TWO})
    assert read_manifest(migrated, PART) == {"a": Entry(TWO, False), "b": Entry(ONE, True)}


def test_other_partitions_and_indexes_are_never_touched(migrated: psycopg.Connection) -> None:
    for number, part in enumerate(ELSEWPART):
        mark_intended(migrated, part, {"a" if part.manifest != PART.manifest else f"{number}": ONE})
    mark_intended(migrated, PART, {"a": ONE})
    mark_written(migrated, PART)
    drop_keys(migrated, PART.manifest, ["a"])
    assert read_manifest(migrated, PART) == {}
    for part in ELSEWPART:
        assert [*read_manifest(migrated, part).values()] == [Entry(ONE, False)]


def test_empty_changes_do_nothing(migrated: psycopg.Connection) -> None:
    mark_intended(migrated, PART, {})
    mark_written(migrated, PART)
    drop_keys(migrated, PART.manifest, [])
    assert read_manifest(migrated, PART) == {}
