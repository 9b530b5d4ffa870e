"""The text of a part: charset, flowed lines, limits, and winmail.dat built by hand."""

import base64
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mail_assets.mail.message.message import Message
from mail_assets.mail.message.mime import parse_mime
from mail_assets.mail.message.part_text import (
    MAX_TEXT,
    decode_part,
    decode_part_text,
    read_tnef,
    unflow,
)
from mail_assets_tests.mail.mails import PLAIN, multipart, read_mail


@pytest.mark.parametrize(("text", "delsp", "expected"), [
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
])  # fmt: skip
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


@pytest.mark.parametrize("head", [
    '<meta http-equiv="Content-Type" content="text/html; charset=koi8-r">',
    "<META CHARSET = 'KOI8_R'>",
    '<?xml version="1.0" encoding="koi8-r"?>',
])  # fmt: skip
@pytest.mark.parametrize("label", ["", "; charset=us-ascii", "; charset=unknown-8bit"])
def test_html_names_its_charset_if_its_header_names_none(head: str, label: str) -> None:
    raw = f"Content-Type: text/html{label}\n\n{head}".encode() + "Привет".encode("koi8-r")
    assert decode_part_text(parse_mime(raw).parts[0])[0].endswith("Привет")


SIGNATURE = b"\x78\x9f\x3e\x22\x01\x00"


def attribute(name: int, data: bytes, level: int = 1) -> bytes:
    return struct.pack("<BII", level, name, len(data)) + data + struct.pack("<H", sum(data) % 65536)


def property_(name: int, kind: int, data: bytes) -> bytes:
    padded = data + b"\0" * (-len(data) % 4)
    return struct.pack("<HHII", kind, name, 1, len(data)) + padded


def properties(*ones: bytes) -> bytes:
    return attribute(0x00069003, struct.pack("<I", len(ones)) + b"".join(ones))


NUMBER = struct.pack("<HHI", 0x0003, 0x0E07, 1)
NAMED = struct.pack("<HH16sIII", 0x0003, 0x8001, b"g" * 16, 0, 7, 1)
NAMED_BY_WORDS = struct.pack("<HH16sII8sI", 0x0003, 0x8002, b"g" * 16, 1, 6, b"a\0b\0\0\0xx", 1)
TIMES = struct.pack("<HHIQQ", 0x1040, 0x3007, 2, 1, 2)
VERSION = attribute(0x00089006, struct.pack("<I", 0x10000))
CODE_PAGE = attribute(0x00069007, struct.pack("<II", 1251, 0))
HTML = "<p>Привет</p>".encode("cp1251")


@pytest.mark.parametrize(("content", "text"), [
    (attribute(0x0002800C, b"hello\r\nworld\0"), "hello\nworld"),
    (VERSION + CODE_PAGE + attribute(0x0002800C, "Привет".encode("cp1251")), "Привет"),
    (properties(property_(0x1000, 0x1E, b"hello\0")), "hello"),
    (properties(property_(0x1000, 0x1F, "Grüße\0".encode("utf-16-le"))), "Grüße"),
    (properties(NUMBER, NAMED, NAMED_BY_WORDS, TIMES, property_(0x1000, 0x1E, b"hello\0")),
     "hello"),
    (CODE_PAGE + properties(property_(0x1013, 0x102, HTML)), "Привет"),
    (properties(property_(0x1000, 0x1E, b" \0"), property_(0x1013, 0x102, b"<b>hi</b>")), "hi"),
    (attribute(0x0002800C, b"hello") + attribute(0x0002800C, b"of a file", level=2), "hello"),
    (attribute(0x0006800F, b"a file", level=2), ""),
    (b"\0" * 40 + b"hello", ""),
])  # fmt: skip
@pytest.mark.parametrize("about", [
    b"Content-Type: application/ms-tnef",
    b"Content-Type: application/vnd.ms-tnef; name=x",
    b"Content-Type: application/octet-stream; name=WINMAIL.DAT",
])  # fmt: skip
def test_text_of_winmail_dat_is_the_body(content: bytes, text: str, about: bytes) -> None:
    part = about + b"\n\n" + SIGNATURE + content
    found = read(multipart("mixed", part))
    assert found.body_text.strip() == text
    assert len(found.attachments) == 1
    assert ("no_text" in found.flags) is (not text)
    assert read(multipart("mixed", PLAIN, part)).body_text.strip() == "plain"


def read(raw: bytes) -> Message:
    return read_mail(b"Subject: s\n" + raw)


WHOLE = SIGNATURE + VERSION + CODE_PAGE + properties(NUMBER, property_(0x1000, 0x1E, b"hello\0"))


@settings(max_examples=200)
@given(st.integers(0, len(WHOLE)), st.integers(0, 8), st.binary(max_size=8))
def test_damaged_container_gives_text_or_none(at: int, cut: int, new: bytes) -> None:
    assert "\0" not in read_tnef(WHOLE[:at] + new + WHOLE[at + cut :]).text
