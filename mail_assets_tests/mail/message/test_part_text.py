"""The text of a part: charset, flowed lines, limits."""

import base64

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mail_assets.mail.message.mime import parse_mime
from mail_assets.mail.message.part_text import MAX_TEXT, decode_part, decode_part_text, unflow


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


def test_text_is_decoded_and_unflowed() -> None:
    raw = b"Content-Type: text/plain; charset=latin1; format=flowed\n\n\x93a \nb\x94\n"
    assert decode_part_text(parse_mime(raw).parts[0])[:2] == ("“a b”\n", False)


@pytest.mark.parametrize("letter", ["é", "\U0001f44d"])
def test_text_is_cut_at_the_limit_and_never_inside_a_character(letter: str) -> None:
    raw = b"Content-Type: text/plain\n\n" + f"{letter}\n".encode() * MAX_TEXT
    text, capped, _ = decode_part_text(parse_mime(raw).parts[0])
    assert capped
    assert len(text) == MAX_TEXT
    assert set(text) == {letter, "\n"}


def test_html_without_a_charset_uses_its_meta_tag() -> None:
    raw = b'Content-Type: text/html\n\n<meta charset="koi8-r">' + "Привет".encode("koi8-r")
    assert decode_part_text(parse_mime(raw).parts[0])[0].endswith("Привет")


@pytest.mark.parametrize("text", ["Grüße, das ist ein Text", "Grüße, das ist ein Tex", "Grüße\n"])
@pytest.mark.parametrize("charset", ["utf-8", "utf-16"])
@pytest.mark.parametrize(
    "footer",
    ["_______________\nharbor mailing list\n", "-- \nTo unsubscribe: x\n", "To leave, write\n"],
)
def test_plain_footer_after_base64_is_kept(text: str, charset: str, footer: str) -> None:
    head = f"Content-Type: text/plain; charset={charset}\nContent-Transfer-Encoding: base64\n\n"
    raw = head.encode() + base64.encodebytes(text.encode(charset)) + footer.encode()
    [part] = parse_mime(raw).parts
    assert decode_part_text(part)[0] == f"{text}\n{footer}"
    assert decode_part(part) == text.encode(charset)


def test_text_that_is_not_base64_as_its_header_says_stays() -> None:
    text = "Grüße, hier steht Text.\n" * 400
    head = "Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: base64\n\n"
    [part] = parse_mime((head + text).encode()).parts
    assert decode_part_text(part)[:2] == (text, False)


@pytest.mark.parametrize(
    "head",
    [
        '<meta http-equiv="Content-Type" content="text/html; charset=koi8-r">',
        "<META CHARSET = 'KOI8_R'>",
        '<?xml version="1.0" encoding="koi8-r"?>',
    ],
)
@pytest.mark.parametrize("label", ["", "; charset=us-ascii", "; charset=unknown-8bit"])
def test_html_names_its_charset_if_its_header_names_none(head: str, label: str) -> None:
    raw = f"Content-Type: text/html{label}\n\n{head}".encode() + "Привет".encode("koi8-r")
    assert decode_part_text(parse_mime(raw).parts[0])[0].endswith("Привет")
