"""Header values decoded: encoded words, raw 8-bit bytes, folding."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mail_assets.mail.message import headers
from mail_assets.mail.message.headers import MAX_VALUE, decode_value
from mail_assets_tests.mail.message.values import HOSTILE_VALUES, VALUES


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (b"plain", "plain"),
        (b"=?utf-8?b?0KPQt9C9?= =?utf-8?b?0LDQ?=\r\n =?utf-8?b?udGC0LU=?= !", "Узнайте !"),
        (b'"=?iso-8859-1?q?J=F6rg?=" <j@example.org>', "Jörg <j@example.org>"),
        (b"=?utf-8?Q?a_b=3F?=", "a b?"),
        (b"x =?utf-8?q?y?= z", "x y z"),
        (b"=?utf-8?q?a?= =?iso-8859-1?q?b?=", "ab"),
        (b"=?nope?q?a=80?= =?y?q?b?=", "a€b"),
        (b"=?utf-8*en?q?=C3=A9?=", "é"),
        (b"=?utf-8?b?w6k?=", "é"),
        (b"=?utf-8?q?regularizaci=F3n?=", "regularización"),
        (b"=?iso-8859-1?q?why??= x", "why? x"),
        (b"=?utf-8?q?open =?utf-8?q?a?=", "=?utf-8?q?open a"),
        (b"name==?utf-8?q?x?=", "name=x"),
        (b"=?utf-8?b?!!!?=", ""),
        (b"=?utf-8?x?abc?=", "=?utf-8?x?abc?="),
        (b"wins \xa37,000", "wins £7,000"),
        ("wins £".encode(), "wins £"),
        (b"a\0b\r\n c", "ab c"),
        (b"=?utf-8?q?line=0Abreak=0D?=", "line break"),
        (b"=?iso-2022-jp?b?GyRCRnxLXBsoQg==?=", "日本"),
    ],
)
def test_values_are_decoded_to_one_line(value: bytes, expected: str) -> None:
    assert decode_value(value) == expected


def test_raw_8_bit_values_are_read_by_the_body_s_charset() -> None:
    assert decode_value("Привет".encode("koi8-r"), "koi8-r") == "Привет"


@settings(max_examples=200)
@given(VALUES)
def test_any_value_decodes_to_one_clean_line(value: bytes) -> None:
    found = decode_value(value)
    assert not set(found) & set("\0\r\n")
    assert found.encode().decode() == found


@pytest.mark.parametrize("value", HOSTILE_VALUES)
def test_hostile_values_stay_within_the_limit(value: bytes) -> None:
    assert len(decode_value(value[:MAX_VALUE])) <= MAX_VALUE


@settings(max_examples=300)
@given(
    st.lists(
        st.sampled_from(
            [b"a", b" ", b"\t", b"=", b"?", b"\0", b"\x1b$B", b"\x1c", b"\xc3\xb6", b"\r"]
        )
        | st.binary(max_size=3),
        max_size=8,
    ).map(b"".join)
)
def test_a_plain_value_is_what_decoding_would_give(value: bytes) -> None:
    assert decode_value(value) == headers._decode(headers.unfold(value), "")
