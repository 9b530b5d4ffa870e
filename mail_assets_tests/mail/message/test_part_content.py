"""The text of a part: its charset, flowed lines, limits."""

import pytest

from mail_assets.mail.message.mime import parse_mime
from mail_assets.mail.message.part_content import MAX_TEXT, decode_part_text


def test_text_is_decoded_and_unflowed() -> None:
    raw = b"Content-Type: text/plain; charset=latin1; format=flowed\n\n\x93a \nb\x94\n"
    assert decode_part_text(parse_mime(raw).parts[0]) == ("“a b”\n", False)


@pytest.mark.parametrize("letter", ["é", "\U0001f44d"])
def test_text_is_cut_at_the_limit_and_never_inside_a_character(letter: str) -> None:
    raw = b"Content-Type: text/plain\n\n" + f"{letter}\n".encode() * MAX_TEXT
    text, capped = decode_part_text(parse_mime(raw).parts[0])
    assert capped
    assert len(text) == MAX_TEXT
    assert set(text) == {letter, "\n"}


def test_an_html_part_without_a_charset_is_read_by_its_own_meta_tag() -> None:
    raw = b'Content-Type: text/html\n\n<meta charset="koi8-r">' + "Привет".encode("koi8-r")
    assert decode_part_text(parse_mime(raw).parts[0])[0].endswith("Привет")
