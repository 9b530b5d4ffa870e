"""Counts of a backfill, and its ranges of months."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mail_assets.defs.backfill.report import (
    MonthRange,
    Report,
    calendar_year_ranges,
    contiguous_ranges,
)
from mail_assets.defs.partitions import MONTHLY
from mail_assets.month import ListMonth
from mail_assets_tests.world import HARBOR

MARCH, APRIL = ListMonth("dev", "2024-03"), ListMonth("dev", "2024-04")


def test_month_recorded_twice_counts_once_its_work_twice() -> None:
    report = Report()
    report.add("mbox_archives", MARCH, {"found": 7, "bytes": 70, "fetched": 1})
    report.add("mbox_archives", MARCH, {"found": 7, "bytes": 70, "fetched": 0})
    report.add("mbox_archives", APRIL, {"found": 5, "bytes": 50, "fetched": 1})
    assert report.counts_of("mbox_archives") == {"found": 12, "bytes": 120, "fetched": 2}


def test_texts_that_an_earlier_attempt_encoded_are_not_reused() -> None:
    report = Report()
    report.add("embeddings", MARCH, {"texts": 9, "encoded": 6})
    report.add("embeddings", MARCH, {"texts": 9, "encoded": 0})
    assert report.counts_of("embeddings") == {"texts": 9, "encoded": 6, "reused": 3}


def test_asset_without_a_record_counts_zero_of_everything() -> None:
    report = Report()
    report.expect(MONTHLY)
    assert report.assets == MONTHLY
    assert not report.changed
    for asset in MONTHLY:
        counts = report.counts_of(asset)
        assert counts
        assert not any(counts.values())


@pytest.mark.parametrize(
    ("held", "written", "deleted", "much"),
    [
        (1, 1, 0, True),
        (100, 1, 0, True),
        (100, 0, 1, True),
        (101, 1, 0, False),
        (1_000_000, 999, 0, False),
        (1_000_000, 999, 1, True),
    ],
)
def test_much_changed_begins_at_1_percent_or_1000_entries(
    held: int, written: int, deleted: int, much: bool
) -> None:
    report = Report()
    report.add("words", MARCH, {"documents": held, "written": written, "deleted": deleted})
    assert report.changed_much_in("words") is much


MONTHS = st.sets(
    st.builds("{:04}-{:02}".format, st.integers(2020, 2023), st.integers(1, 12)), max_size=30
)


def of_harbor(*months: str) -> list[ListMonth]:
    return [ListMonth(HARBOR, month) for month in months]


def ranges_of(*ranges: tuple[str, str]) -> list[MonthRange]:
    return [MonthRange(*of_harbor(*one)) for one in ranges]


Ranges = list[tuple[str, str]]


@pytest.mark.parametrize(
    ("months", "years", "contiguous"),
    [
        ([], [], []),
        (["2024-03", "2024-02"], [("2024-02", "2024-03")], [("2024-02", "2024-03")]),
        (["2024-11", "2024-02"], [("2024-02", "2024-11")], [("2024-02",) * 2, ("2024-11",) * 2]),
        (["2023-12", "2024-01"], *[[("2023-12", "2023-12"), ("2024-01", "2024-01")]] * 2),
    ],
)
def test_range_ends_with_its_year_or_before_a_gap(
    months: list[str], years: Ranges, contiguous: Ranges
) -> None:
    assert calendar_year_ranges(of_harbor(*months)) == ranges_of(*years)
    assert contiguous_ranges(of_harbor(*months)) == ranges_of(*contiguous)


def test_contiguous_range_has_one_list() -> None:
    months = [ListMonth("harbor", "2024-03"), ListMonth("pier", "2024-04")]
    assert contiguous_ranges(months) == [MonthRange(month, month) for month in months]


@given(MONTHS)
def test_contiguous_ranges_hold_the_months_and_no_others(months: set[str]) -> None:
    ranges = contiguous_ranges(of_harbor(*months))
    assert [month for one in ranges for month in one.months] == of_harbor(*sorted(months))
    assert all(one.first.year == one.last.year for one in ranges)


def test_range_is_written_for_people() -> None:
    [one] = ranges_of(("2024-02", "2024-04"))
    assert str(one) == f"{HARBOR} 2024-02 to 2024-04"
    assert one.months == of_harbor("2024-02", "2024-03", "2024-04")
