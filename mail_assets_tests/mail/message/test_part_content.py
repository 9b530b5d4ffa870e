"""Decoded parts: transfer encodings, charsets, limits."""

import pytest

from mail_assets.mail.message.mime import parse_mime
from mail_assets.mail.message.part_content import MAX_TEXT, decode_part, decode_part_text


@pytest.mark.parametrize(
    ("encoding", "data", "expected"),
    [
        (b"quoted-printable", b"na=EFve=\n! =XX", b"na\xefve! =XX"),
        (b"QUOTED-PRINTABLE ", b"=41", b"A"),
        (b"base64", b"aGVs\nbG8=", b"hello"),
        (b"base64;", b"aGVs*bG8", b"hello"),
        (b"base64", b"a", b""),
        (b"base64", b"aGk\x00=x", b"hi"),
        (b"7-bit", b"=41", b"=41"),
        (b"text/html", b"=41", b"=41"),
        (b"", b"=41", b"=41"),
        (b"x-uuencode", b"begin 644 a.txt\n#0V%T\n`\nend\n", b"Cat"),
        (b"x-uuencode", b"no such thing", b"no such thing"),
    ],
)
def test_transfer_encodings_are_undone_as_far_as_they_hold(
    encoding: bytes, data: bytes, expected: bytes
) -> None:
    raw = b"Content-Transfer-Encoding: " + encoding + b"\n\n" + data
    assert decode_part(raw, parse_mime(raw).parts[0]) == expected


def test_text_is_decoded_and_unflowed() -> None:
    raw = b"Content-Type: text/plain; charset=latin1; format=flowed\n\n\x93a \nb\x94\n"
    assert decode_part_text(raw, parse_mime(raw).parts[0]) == ("“a b”\n", False)


@pytest.mark.parametrize("letter", ["é", "\U0001f44d"])
def test_text_is_cut_at_the_limit_and_never_inside_a_character(letter: str) -> None:
    raw = b"Content-Type: text/plain\n\n" + f"{letter}\n".encode() * MAX_TEXT
    text, capped = decode_part_text(raw, parse_mime(raw).parts[0])
    assert capped
    assert len(text) == MAX_TEXT
    assert set(text) == {letter, "\n"}


def test_an_html_part_without_a_charset_is_read_by_its_own_meta_tag() -> None:
    raw = b'Content-Type: text/html\n\n<meta charset="koi8-r">' + "Привет".encode("koi8-r")
    assert decode_part_text(raw, parse_mime(raw).parts[0])[0].endswith("Привет")
