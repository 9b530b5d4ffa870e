"""What is made of halves of characters, wherever a text is cut, can be written as UTF-8."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mail_assets.openai.client import join_halves, replace_halves


@pytest.mark.parametrize(
    ("texts", "joined"),
    [
        (["a duck \ud83e", "\udd86 [1]"], "a duck \U0001f986 [1]"),
        (["\ud83e", "", "\udd86"], "\U0001f986"),
        (["a \ud83e b [1]"], "a \ufffd b [1]"),
        (["a \ud83e", " b"], "a \ufffd b"),
        (["\udd86", "\ud83e"], "\ufffd\ufffd"),
        (["\ud83e\ud83e", "\udd86"], "\ufffd\U0001f986"),
    ],
)
def test_halves_are_joined_and_one_alone_is_replaced(texts: list[str], joined: str) -> None:
    assert "".join(join_halves(texts)) == joined


@given(st.lists(st.text(st.characters(codec=None, exclude_categories=()))))
def test_pieces_make_what_the_whole_makes(texts: list[str]) -> None:
    joined = "".join(join_halves(texts))
    assert joined == replace_halves("".join(texts))
    assert joined.encode().decode() == joined


@given(st.text())
def test_whole_characters_stay(text: str) -> None:
    assert replace_halves(text) == text
