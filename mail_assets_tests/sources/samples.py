"""Months of the list that the tests of sources read."""

from mail_assets.month import ListMonth

JANUARY, FEBRUARY, MARCH = (ListMonth("hackers", f"2020-0{number}") for number in (1, 2, 3))
