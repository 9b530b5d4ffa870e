"""Months in file names and in templates."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mail_assets.month import is_month
from mail_assets.sources.archive_file import fill_template, group_by_month, month_in_name

MONTHS = st.builds(lambda y, m: f"{y:04d}-{m:02d}", st.integers(1970, 2099), st.integers(1, 12))
SUFFIXES = ["", ".mbox", ".txt", ".gz", ".bz2", ".xz", ".zst", ".mbox.gz", ".txt.zst", ".MBOX.GZ"]


@pytest.mark.parametrize(
    ("name", "month"),
    [
        ("pgsql-hackers.202405", "2024-05"),
        ("202405", "2024-05"),
        ("2003-April.txt.gz", "2003-04"),
        ("2003-april", "2003-04"),
        ("2003-APR.txt", "2003-04"),
        ("2003-May.txt", "2003-05"),
        ("list@example.org-2020-01.mbox.gz", "2020-01"),
        ("foo-15-2001-03.mbox", "2001-03"),
        ("v2.197001", "1970-01"),
        ("v2.209912", "2099-12"),
        ("line\nbreak.202405", "2024-05"),
    ],
)
def test_a_month_is_read_from_the_end_of_a_name(name: str, month: str) -> None:
    assert month_in_name(name) == month


@pytest.mark.parametrize(
    "name",
    [
        "",
        "foo.1234567890",  # ten digits are an id
        "20240512",  # a day
        "1202405",
        "12024-05",
        "foo.202413",
        "foo.202400",
        "foo.196912",
        "foo.210001",
        "foo.2024-5",
        "foo.2024-05-17",
        "2003-Apri.txt",
        "2003-Sept.txt",
        "2003April.txt",
        "2003-April.txt.gz.asc",
        "2003-April.gz.txt",
        "2003-April.html",
        "thread.html",
        "foo.202405.tar.gz",
        "foo.202405\n",
        "foo.２０２４０５",  # digits, but not ASCII
        "2003-Auguſt",  # a long s, which ignores case as an s does
        "202405/",
    ],
)
def test_other_names_hold_no_month(name: str) -> None:
    assert month_in_name(name) is None


@given(month=MONTHS, head=st.text(max_size=12), suffix=st.sampled_from(SUFFIXES))
@settings(max_examples=200)
def test_whatever_stands_before_the_month_it_is_read_unless_a_digit_touches_it(
    month: str, head: str, suffix: str
) -> None:
    touched = head[-1:] in set("0123456789")
    for spelled in ("{yyyymm}", "{yyyy-mm}", "{yyyy-Month}"):
        name = head + fill_template(spelled, month) + suffix
        assert month_in_name(name) == (None if touched else month)


@given(st.text(alphabet="0123456789-JanuryMy.gzmbox\n", max_size=24))
@settings(max_examples=200)
def test_any_name_gives_a_real_month_or_none(name: str) -> None:
    month = month_in_name(name)
    assert month is None or is_month(month)


def test_places_are_grouped_by_month_in_order_and_others_left_out() -> None:
    places = ["b/x.202002", "a/x.202001.gz", "a/x.202001", "README", "b/x.202002"]
    assert group_by_month(places, lambda place: place.rpartition("/")[2]) == {
        "2020-01": ["a/x.202001", "a/x.202001.gz"],
        "2020-02": ["b/x.202002"],
    }


def test_every_placeholder_of_a_template_is_filled() -> None:
    template = "https://a.example/{yyyy-mm}/{yyyymm}?{yyyy-Month}&{yyyymm}"
    assert (
        fill_template(template, "2003-04") == "https://a.example/2003-04/200304?2003-April&200304"
    )
