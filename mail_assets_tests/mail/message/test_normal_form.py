"""Text in NFC, whatever form it was sent in and however many marks it has."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mail_assets.mail.message.normal_form import compose, compose_body

from mail_assets.mail.message.body import AttachedText

# letters, marks of several classes, singletons, jamo, and what never composes again
ODD = "ae<\n\u0301\u0316\u0323\u0344\u0f71\u2126\u212b\u1100\u1161\u11a8\ufb2c\uf900\U0001d160"


@given(st.text(st.sampled_from(ODD)) | st.text())
def test_text_is_composed_as_unicode_says(text: str) -> None:
    assert compose(text) == unicodedata.normalize("NFC", text)


@pytest.mark.parametrize("marks", ["\u0301\u0316", "\u0316\u0301", "\u0344\u0316", "\u0301"])
def test_marks_without_end_are_put_in_order(marks: str) -> None:
    assert unicodedata.is_normalized("NFC", compose("a" + marks * 250_000))


def test_text_that_is_composed_already_is_not_copied() -> None:
    for text in ("plain", "présidente", "数据库"):
        assert compose(text) is text


def test_attached_messages_are_found_where_they_stand_then() -> None:
    pieces = ["re\u0301union\n\n", "From: Zoe\u0301\n\n", "e\u0301te\u0301\n"]
    first, head, _ = map(len, pieces)
    text, attached = compose_body("".join(pieces), (AttachedText(first, first + head),))
    assert text == unicodedata.normalize("NFC", "".join(pieces))
    [(start, text_start)] = attached
    assert text[start:text_start] == "From: Zoé\n\n"
    assert text[text_start:] == "été\n"
