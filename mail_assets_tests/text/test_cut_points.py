"""The places where a text may be cut."""

import pytest

from mail_assets.text.chunking import find_cut_points
from mail_assets.text.tokens import tokenise
from mail_assets_tests.text.minilm import minilm

TOKENIZER = minilm()
LINE, SENTENCE, PARAGRAPH = 1, 2, 3


def places(text: str, *seams: int, max_tokens: int = 100, max_chars: int = 1_000) -> dict[str, int]:
    """What stands at each cut, up to the next blank, and how good a place it is."""
    tokens = tokenise(text, TOKENIZER)
    cuts = find_cut_points(tokens, text, seams, max_tokens, max_chars)
    assert cuts.places == sorted(cuts.ranks)
    return {text[tokens.starts[i] :].split()[0]: cuts.ranks[i] for i in cuts.places}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("one two", {}),
        ("one\ntwo", {"two": LINE}),
        ("one. Two! (three)", {"Two!": SENTENCE, "(three)": SENTENCE}),
        ("e.g. this and v1.2 that", {}),
        ("one.\nTwo", {"Two": SENTENCE}),
        ("one\n \t\ntwo\nthree", {"two": PARAGRAPH, "three": LINE}),
        ("漢。字", {"字": SENTENCE}),
        ("\n\none\n", {}),
    ],
)
def test_a_cut_is_as_good_as_the_best_that_ends_there(text: str, expected: dict[str, int]) -> None:
    assert places(text) == expected


def test_a_seam_is_as_good_as_a_paragraph() -> None:
    assert places("one\ntwo three", 4) == {"two": PARAGRAPH}
    assert places("one\ntwo three", 8) == {"two": LINE, "three": PARAGRAPH}


def test_a_block_is_kept_whole_where_it_fits_by_tokens_and_characters() -> None:
    text = "before\nselect a,\n  b\n  from t;\nafter"
    whole = {"select": LINE, "after": LINE}
    assert places(text) == whole
    assert places(text, max_tokens=7) == whole
    assert places(text, max_tokens=6) == {**whole, "b": LINE, "from": LINE}
    assert places(text, max_chars=10) == {**whole, "b": LINE, "from": LINE}
