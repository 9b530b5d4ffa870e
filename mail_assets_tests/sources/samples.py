"""Months of the list in the tests of sources."""

from mail_assets.month import ListMonth

JANUARY, FEBRUARY, MARCH = (ListMonth("hackers", f"2020-0{number}") for number in (1, 2, 3))
