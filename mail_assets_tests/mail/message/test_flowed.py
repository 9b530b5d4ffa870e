"""format=flowed (RFC 3676)."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mail_assets.mail.message.part_text import unflow


@pytest.mark.parametrize(
    ("text", "delsp", "expected"),
    [
        ("a \nb", False, "a b"),
        ("ab \ncd", True, "abcd"),
        ("> q \n> r\nnew", False, "> q r\nnew"),
        (">> q \n> r", False, ">> q \n> r"),
        (">q", False, "> q"),
        (">", False, ">"),
        (" >not a quote", False, ">not a quote"),
        (" From here", False, "From here"),
        ("a \n-- \nsig", False, "a \n-- \nsig"),
        ("-- \nsig \nmore", False, "-- \nsig more"),
        ("> -- \n> sig", False, "> -- \n> sig"),
        ("para \n\nnext", False, "para \n\nnext"),
        ("a\n", False, "a\n"),
        ("a ", False, "a "),
        ("", False, ""),
    ],
)
def test_flowed_text_becomes_logical_lines(text: str, delsp: bool, expected: str) -> None:
    assert unflow(text, delsp=delsp) == expected


@settings(max_examples=100)
@given(st.text("ab >\n-", max_size=60))
def test_unflowing_loses_no_letter(text: str) -> None:
    assert [c for c in unflow(text) if c in "ab-"] == [c for c in text if c in "ab-"]
