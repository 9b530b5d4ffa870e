"""Counts of searches are added once, collected once, and dropped when they are old."""

import datetime as dt

import psycopg
import pytest

from mail_assets.tables.search_audit import (
    HITS,
    MILLISECONDS,
    DayPart,
    SearchKind,
    add_searches,
    collect_searches,
    drop_searches,
    read_days,
    round_up,
)

NOON = dt.datetime(2024, 3, 4, 12, tzinfo=dt.UTC)
KIND = SearchKind(NOON, "page", "hybrid", ("from", "list"), ("harbor",), 10, 50, 200)


@pytest.mark.parametrize(
    ("number", "rounded"), [(0, 0), (1, 1), (3, 5), (10, 10), (11, 20), (100, 100), (5_000, 100)]
)
def test_hits_are_rounded_up(number: int, rounded: int) -> None:
    assert round_up(number, HITS) == rounded


def test_times_are_rounded_up_by_less_than_themselves() -> None:
    assert [*MILLISECONDS] == sorted(MILLISECONDS)
    for ms in range(1, 10_000):
        assert ms <= round_up(ms, MILLISECONDS) < 2 * ms + 1


def test_counts_of_a_kind_add_up(migrated: psycopg.Connection) -> None:
    other = KIND._replace(hour=NOON + dt.timedelta(days=1), status=503, hits=0)
    add_searches(migrated, {KIND: 3, other: 1})
    add_searches(migrated, {KIND: 4})
    assert collect_searches(migrated) == 2
    add_searches(migrated, {KIND: 1})
    assert collect_searches(migrated) == 1
    assert collect_searches(migrated) == 0
    assert read_days(migrated, NOON) == [
        DayPart(NOON.date(), "page", 10, 50, 200, 8),
        DayPart(other.hour.date(), "page", 0, 50, 503, 1),
    ]
    assert read_days(migrated, NOON + dt.timedelta(hours=1)) == read_days(migrated, NOON)[1:]


def test_old_counts_are_dropped_collected_or_not(migrated: psycopg.Connection) -> None:
    later = KIND._replace(hour=NOON + dt.timedelta(days=9))
    add_searches(migrated, {KIND: 3})
    collect_searches(migrated)
    add_searches(migrated, {KIND: 2, later: 1})
    border = NOON + dt.timedelta(days=1)
    assert drop_searches(migrated, border, dry_run=True) == 5
    assert drop_searches(migrated, border) == 5
    assert drop_searches(migrated, border) == 0
    collect_searches(migrated)
    assert [part.searches for part in read_days(migrated, NOON)] == [1]


def test_server_only_needs_to_insert(migrated: psycopg.Connection) -> None:
    migrated.execute("create role searches_writer")
    migrated.execute("grant insert on served_searches to searches_writer")
    migrated.execute("set role searches_writer")
    try:
        add_searches(migrated, {KIND: 1})
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            collect_searches(migrated)
    finally:
        migrated.execute("reset role")
        migrated.execute("drop owned by searches_writer")
        migrated.execute("drop role searches_writer")
