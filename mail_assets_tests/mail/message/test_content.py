"""Decoded parts: transfer encodings, charsets, flowed text."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mail_assets.mail.message.content import MAX_TEXT, content, text_of, unflow
from mail_assets.mail.message.mime import parse


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
    assert content(raw, parse(raw).parts[0]) == expected


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


def test_text_is_decoded_and_unflowed() -> None:
    raw = b"Content-Type: text/plain; charset=latin1; format=flowed\n\n\x93a \nb\x94\n"
    assert text_of(raw, parse(raw).parts[0]) == ("“a b”\n", False)


@pytest.mark.parametrize("letter", ["é", "\U0001f44d"])
def test_text_is_cut_at_the_limit_and_never_inside_a_character(letter: str) -> None:
    raw = b"Content-Type: text/plain\n\n" + f"{letter}\n".encode() * MAX_TEXT
    text, capped = text_of(raw, parse(raw).parts[0])
    assert capped
    assert len(text) == MAX_TEXT
    assert set(text) == {letter, "\n"}


def test_an_html_part_without_a_charset_is_read_by_its_own_meta_tag() -> None:
    raw = b'Content-Type: text/html\n\n<meta charset="koi8-r">' + "Привет".encode("koi8-r")
    assert text_of(raw, parse(raw).parts[0])[0].endswith("Привет")


@settings(deadline=None, max_examples=100, derandomize=True)
@given(st.text("ab >\n-", max_size=60))
def test_unflowing_loses_no_letter(text: str) -> None:
    assert [c for c in unflow(text) if c in "ab-"] == [c for c in text if c in "ab-"]
