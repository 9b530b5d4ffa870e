"""Header blocks: which fields they hold, and where the body begins."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mail_assets.mail.message import headers
from mail_assets.mail.message.headers import (
    MAX_BLOCK,
    MAX_VALUE,
    decode_field,
    decode_fields,
    first_value,
    parse_header_block,
)
from mail_assets_tests.mail.message.values import VALUES


def block(raw: bytes) -> tuple[dict[str, list[bytes]], bytes]:
    headers, body, _ = parse_header_block(raw, 0, len(raw))
    return headers, raw[body:]


@pytest.mark.parametrize(
    ("raw", "subject", "body"),
    [
        (b"Subject: s\n\nbody", "s", b"body"),
        (b"Subject: s\r\n\r\nbody", "s", b"body"),
        (b"SUBJECT : s\n\nbody", "s", b"body"),
        (b"Subject:\n s\n\nbody", "s", b"body"),
        (b"Subject: a\r\n\tb\r\n c\r\n\r\nbody", "a b c", b"body"),
        (b"Subject: only", "only", b""),
        (b"Subject: s\n", "s", b""),
        (b" lead: x\nSubject: y\n\nz", "y", b"z"),
        (b">From a Mon Jan 5\nSubject: y\n\nz", "y", b"z"),
        (b"\nSubject: not a field\n", "", b"Subject: not a field\n"),
        (b"\r\nbody", "", b"body"),
        (b"no headers at all\nSubject: x\n\ny", "", b"no headers at all\nSubject: x\n\ny"),
        (b"X: y\nSubject: s\nnot a field\nTo: x\n\nb", "s", b"b"),
        (b"", "", b""),
    ],
)
def test_a_block_ends_at_its_blank_line(raw: bytes, subject: str, body: bytes) -> None:
    headers, rest = block(raw)
    assert (decode_field(headers, "subject"), rest) == (subject, body)


def test_repeated_fields_stand_in_order() -> None:
    headers, _ = block(b"References: <a>\nX: y\nreferences: <b>\n\n")
    assert decode_fields(headers, "references") == ["<a>", "<b>"]
    assert first_value(headers, "to") == b""


@pytest.mark.parametrize(
    "raw", [b"Subject: " + b"x" * (MAX_VALUE + 1), b"X: y\n" * (MAX_BLOCK // 5 + 1) + b"Subject: s"]
)
def test_oversized_blocks_are_cut_and_say_so(raw: bytes) -> None:
    headers, _, cut = parse_header_block(raw, 0, len(raw))
    assert cut
    assert len(first_value(headers, "subject")) <= MAX_VALUE


@settings(max_examples=200)
@given(VALUES)
def test_any_bytes_have_a_body_behind_their_block(raw: bytes) -> None:
    headers, body, _ = parse_header_block(raw, 0, len(raw))
    assert 0 <= body <= len(raw)
    assert not headers or body > 0


LINES = [
    b"To: a",
    b"TO : b",
    b"subject:c",
    b" d",
    b"\te: f",
    b"Date:",
    b"X: y",
    b"",
    b"to:\r",
]
EVERY_FIELD = re.compile(
    rb"^(" + headers._KEPT + rb")[ \t]*:[ \t]*([^\n]*(?:\n[ \t][^\n]*)*)", re.I | re.M
)


@settings(max_examples=300)
@given(st.lists(st.sampled_from(LINES), min_size=1, max_size=10))
def test_fields_are_those_that_begin_a_line(lines: list[bytes]) -> None:
    raw = b"From: x\n" + b"\n".join(lines)
    found, _, _ = parse_header_block(raw, 0, len(raw))
    end = re.search(rb"\n\r?\n", raw)
    expected: dict[str, list[bytes]] = {}
    for field in EVERY_FIELD.finditer(raw, 0, end.start() if end else len(raw)):
        expected.setdefault(field[1].lower().decode(), []).append(field[2])
    assert found == expected


@pytest.mark.parametrize(
    ("raw", "names", "body"),
    [
        (
            b"Subject: s\nText at once.\nMore\n\nthe rest",
            ["subject"],
            b"Text at once.\nMore\n\nthe rest",
        ),
        (b"Subject: s\r\nText at once.\r\n\r\nrest", ["subject"], b"Text at once.\r\n\r\nrest"),
        (b"Subject: s\nText, and that is all", ["subject"], b"Text, and that is all"),
        (b"Subject: s\nTo: a@example.org\n", ["subject", "to"], b""),
        # folded without a space: no text, since a field is close below
        (b"To: a@example.org,\nb@example.org\nSubject: s\n\nbody", ["to", "subject"], b"body"),
        (b"To: a\n__\n <b@example.org>\nX-Y: z\n\nbody", ["to"], b"body"),
        (b"From: x\nto\n d\nTo: a@example.org\n\nbody", ["from", "to"], b"body"),
        (b">From x\nSubject: s\n>From y\nTo: a@example.org\n\nbody", ["subject", "to"], b"body"),
    ],
)
def test_a_line_that_can_be_no_field_ends_the_header(
    raw: bytes, names: list[str], body: bytes
) -> None:
    headers, start, _ = parse_header_block(raw, 0, len(raw))
    assert list(headers) == names
    assert raw[start:] == body
