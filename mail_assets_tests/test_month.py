"""Months of a list: text forms, and counting."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mail_assets.month import ListMonth, months_between, next_month

MONTHS = st.builds(lambda y, m: f"{y:04d}-{m:02d}", st.integers(1970, 2099), st.integers(1, 12))


@given(list_name=st.text(min_size=1), month=MONTHS)
def test_partition_key_is_read_back_as_its_month(list_name: str, month: str) -> None:
    value = ListMonth(list_name, month)
    assert ListMonth.parse(value.key) == value


@pytest.mark.parametrize("key", ["", "|", "|2024-05", "2024-05", "pgsql-hackers", "x|2024-13"])
def test_other_text_than_a_partition_key_is_refused(key: str) -> None:
    with pytest.raises(ValueError, match="written"):
        ListMonth.parse(key)


@pytest.mark.parametrize(
    ("first", "last", "months"),
    [
        ("2019-11", "2020-02", ["2019-11", "2019-12", "2020-01", "2020-02"]),
        ("2020-01", "2020-01", ["2020-01"]),
        ("2020-02", "2020-01", []),
    ],
)
def test_months_are_counted_both_ends_included(first: str, last: str, months: list[str]) -> None:
    assert months_between(first, last) == months


@pytest.mark.parametrize(
    ("month", "following"), [("2024-03", "2024-04"), ("2023-12", "2024-01"), ("2099-12", "2100-01")]
)
def test_next_month_may_be_in_the_next_year(month: str, following: str) -> None:
    assert next_month(month) == following


@pytest.mark.parametrize(
    "month", ["2020", "2020-13", "2020-1", "202001", "1969-12", "2020-01 ", "201\u0661-01"]
)
def test_counting_from_no_month_is_refused(month: str) -> None:
    with pytest.raises(ValueError, match="is not a month"):
        months_between(month, "2021-01")
