"""Names and subjects keep their letters and lose control characters."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mail_assets.text.untrusted import clean_line, clean_name, strip_invisible

#: Characters that a terminal or a page obeys.
OBEYED = [
    *map(chr, (*range(0x20), *range(0x7F, 0xA0))),
    *"\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u2028\u2029\ufff9\ufffb",
    "\U000e0001",
    "\U000e0041",
    "\U000e007f",
]


@pytest.mark.parametrize("mark", OBEYED, ids=ascii)
def test_line_loses_control_characters(mark: str) -> None:
    cleaned = clean_line(f"Re: a{mark}b{mark}")
    assert cleaned in ("Re: ab", "Re: a b")
    assert mark not in strip_invisible(f"a{mark}b") or mark in "\t\n"


@pytest.mark.parametrize("name", [
    "می\u200cخواهم", "क्\u200dष", "👩\u200d🚀 Ann", "❤\ufe0f",
    "🏴\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f", "Jörg\u00a0Weiß", "עברית",
    "日本\u3000太郎", "soft\u00adhyphen",
])  # fmt: skip
def test_letters_joiners_and_emoji_stay(name: str) -> None:
    assert clean_line(name) == name


@pytest.mark.parametrize(
    ("name", "seen"),
    [
        *((f"Tom{mark} Lane{mark}", "Tom Lane") for mark in "\u200b\u2060\u00ad\ufeff\u034f\u180e"),
        *((f"{mark}Tom L{mark * 2}ane", "Tom Lane") for mark in "\u200c\u200d\ufe0f\u3164\u2800"),
        ("Tom \u2060 Lane", "Tom Lane"),
        ("\u3164", ""),
        ("T\u043em Lane", "T\u043em Lane"),
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("क्\u200dष", "क्\u200dष"),
        ("क्\u200d\u200bष", "क्\u200dष"),
        ("👩\u200d🚀 Ann", "👩\u200d🚀 Ann"),
        ("❤\ufe0f", "❤\ufe0f"),
        ("Jörg\u00a0Weiß", "Jörg Weiß"),
    ],
    ids=ascii,
)
def test_names_that_look_the_same_are_the_same(name: str, seen: str) -> None:
    assert clean_name(name) == seen


@given(st.text())
def test_cleaned_line_is_one_and_clean_already(text: str) -> None:
    cleaned = clean_line(text)
    assert len(cleaned.splitlines()) <= 1
    assert clean_line(cleaned) == cleaned
