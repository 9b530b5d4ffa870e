"""Months cut into the ranges of runs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mail_assets.defs.backfill.report import MonthRange, calendar_year_ranges, contiguous_ranges
from mail_assets.month import ListMonth
from mail_assets_tests.world import HARBOR

MONTHS = st.sets(
    st.builds("{:04}-{:02}".format, st.integers(2020, 2023), st.integers(1, 12)), max_size=30
)


def of_harbor(*months: str) -> list[ListMonth]:
    return [ListMonth(HARBOR, month) for month in months]


def ranges_of(*ranges: tuple[str, str]) -> list[MonthRange]:
    return [MonthRange(*of_harbor(*one)) for one in ranges]


@pytest.mark.parametrize(
    ("months", "ranges"),
    [
        ([], []),
        (["2024-03"], [("2024-03", "2024-03")]),
        (["2024-11", "2024-02", "2025-01"], [("2024-02", "2024-11"), ("2025-01", "2025-01")]),
        (["2023-12", "2024-01"], [("2023-12", "2023-12"), ("2024-01", "2024-01")]),
    ],
)
def test_a_run_is_a_calendar_year(months: list[str], ranges: list[tuple[str, str]]) -> None:
    assert calendar_year_ranges(of_harbor(*months)) == ranges_of(*ranges)


@pytest.mark.parametrize(
    ("months", "ranges"),
    [
        ([], []),
        (["2024-03", "2024-02"], [("2024-02", "2024-03")]),
        (["2024-02", "2024-04"], [("2024-02", "2024-02"), ("2024-04", "2024-04")]),
        (["2023-12", "2024-01"], [("2023-12", "2023-12"), ("2024-01", "2024-01")]),
    ],
)
def test_a_contiguous_range_has_no_gap(months: list[str], ranges: list[tuple[str, str]]) -> None:
    assert contiguous_ranges(of_harbor(*months)) == ranges_of(*ranges)


@given(MONTHS)
def test_contiguous_ranges_hold_the_months_and_no_others(months: set[str]) -> None:
    ranges = contiguous_ranges(of_harbor(*months))
    assert [month for one in ranges for month in one.months] == of_harbor(*sorted(months))
    assert all(one.first.year == one.last.year for one in ranges)


def test_a_range_is_written_as_people_read_it() -> None:
    [one] = ranges_of(("2024-02", "2024-04"))
    assert str(one) == f"{HARBOR} 2024-02 to 2024-04"
    assert one.months == of_harbor("2024-02", "2024-03", "2024-04")
