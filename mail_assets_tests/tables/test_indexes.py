"""Which index is live: the first filled, until another is promoted; one in each bucket."""

import psycopg
import pytest

from mail_assets.month import ListMonth
from mail_assets.tables.indexes import (
    IndexMonth,
    Manifest,
    NewIndex,
    count_written,
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


def record(connection: psycopg.Connection, name: str, bucket: str = HERE) -> None:
    record_index(connection, bucket, NewIndex(name, "minilm", "int8", f"print of {name}"))


def test_no_index_is_live_before_one_is_filled(migrated: psycopg.Connection) -> None:
    record(migrated, "one")
    assert live_index(migrated, HERE) is None
    assert [(one.name, one.live) for one in list_indexes(migrated, HERE)] == [("one", False)]


def test_the_first_filled_index_stays_live(migrated: psycopg.Connection) -> None:
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


def test_an_unrecorded_index_cannot_be_live(migrated: psycopg.Connection) -> None:
    with pytest.raises(psycopg.errors.ForeignKeyViolation):
        switch_live(migrated, HERE, "nobody's", True, {})


def test_removing_an_index_drops_its_manifest(
    migrated: psycopg.Connection,
) -> None:
    for name in ("one", "two"):
        record(migrated, name)
        part = IndexMonth(Manifest("vectors", f"{HERE} {name}"), ListMonth("dev", "2024-03"))
        mark_intended(migrated, part, {"a#0": b"1", "b#0": b"2"})
        mark_written(migrated, part)
    make_first_live(migrated, HERE, "one")
    with pytest.raises(psycopg.errors.ForeignKeyViolation):
        remove_index(migrated, HERE, "one", Manifest("vectors", f"{HERE} one"))
    remove_index(migrated, HERE, "two", Manifest("vectors", f"{HERE} two"))
    assert [one.name for one in list_indexes(migrated, HERE)] == ["one"]
    assert count_written(migrated, Manifest("vectors", f"{HERE} one")) == 2
    assert (
        read_manifest(
            migrated, IndexMonth(Manifest("vectors", f"{HERE} two"), ListMonth("dev", "2024-03"))
        )
        == {}
    )
