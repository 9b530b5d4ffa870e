"""When an index lacks so much that it is made anew."""

import datetime as dt

import pytest

from mail_assets.lance.upkeep import IndexState

MINUTE, DAY = dt.timedelta(minutes=1), dt.timedelta(days=1)


def state(unindexed: int, age: dt.timedelta | None = MINUTE) -> IndexState:
    """Return that of an index which lacks so many rows."""
    made_at = None if age is None else dt.datetime.now(dt.UTC) - age
    return IndexState("fts", 1_000, unindexed, 1, made_at)


@pytest.mark.parametrize(
    ("unindexed", "rows", "lacks"),
    [
        (999, 1_000, False),
        (1_000, 3_001, False),
        (1_000, 3_000, True),
        (333_333, 1_000_000, False),
        (333_334, 1_000_000, True),
    ],
)
def test_an_index_lacks_a_share_of_the_table_and_no_fewer_than_a_number(
    unindexed: int, rows: int, lacks: bool
) -> None:
    assert state(unindexed).lacks(rows, 1 / 3, least=1_000) is lacks


@pytest.mark.parametrize(
    ("unindexed", "age", "outdated"),
    [
        (999, DAY, False),
        (1_000, DAY - MINUTE, False),
        (1_000, DAY, True),
        (1_000, None, True),
        (999, None, False),
    ],
)
def test_an_old_index_that_lacks_many_rows_is_outdated(
    unindexed: int, age: dt.timedelta | None, outdated: bool
) -> None:
    assert state(unindexed, age).is_outdated(DAY, least=1_000) is outdated
