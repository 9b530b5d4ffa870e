"""Text in winmail.dat, built by hand after [MS-OXTNEF]."""

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mail_assets.mail.message.message import Message
from mail_assets.mail.message.parse import parse_message
from mail_assets.mail.message.part_text import read_tnef
from mail_assets_tests.mail.mails import PLAIN, multipart, raw_message

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
@pytest.mark.parametrize(
    "about",
    [
        b"Content-Type: application/ms-tnef",
        b"Content-Type: application/vnd.ms-tnef; name=x",
        b"Content-Type: application/octet-stream; name=WINMAIL.DAT",
    ],
)
def test_text_of_winmail_dat_is_the_body(content: bytes, text: str, about: bytes) -> None:
    part = about + b"\n\n" + SIGNATURE + content
    found = read(multipart("mixed", part))
    assert found.body_text.strip() == text
    assert len(found.attachments) == 1
    assert ("no_text" in found.flags) is (not text)
    assert read(multipart("mixed", PLAIN, part)).body_text.strip() == "plain"


def read(raw: bytes) -> Message:
    return parse_message(raw_message(b"Subject: s\n" + raw), month="2026-01", dialect="pg")


WHOLE = SIGNATURE + VERSION + CODE_PAGE + properties(NUMBER, property_(0x1000, 0x1E, b"hello\0"))


@settings(max_examples=200)
@given(st.integers(0, len(WHOLE)), st.integers(0, 8), st.binary(max_size=8))
def test_damaged_container_gives_text_or_none(at: int, cut: int, new: bytes) -> None:
    assert "\0" not in read_tnef(WHOLE[:at] + new + WHOLE[at + cut :]).text
