"""Parameters of Content-Type and Content-Disposition."""

import pytest
from hypothesis import given, settings

from mail_assets.mail.message.headers import MAX_VALUE, parse_parameters
from mail_assets_tests.mail.message.values import HOSTILE_VALUES, VALUES


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (b"text/plain; charset=utf-8", {"charset": "utf-8"}),
        (b"text/plain charset=us-ascii", {"charset": "us-ascii"}),
        (b'a/b; Name="a \\"b\\"; c.txt" ; x=1', {"name": 'a "b"; c.txt', "x": "1"}),
        (b'a/b; name="never closed.txt', {"name": "never closed.txt"}),
        (b"a/b; name*=utf-8'de'%e2%82%ac.txt", {"name": "€.txt"}),
        (b"a/b; name*0*=utf-8''%e2%82%ac; name*1=\".patch\"", {"name": "€.patch"}),
        (b"a/b; name*0*=utf-8''%e2%82; name*1*=utf-8''%ac.txt", {"name": "€.txt"}),
        (b"a/b; name*0*=utf-8''Jo; name*1*=O''Doe", {"name": "JoO''Doe"}),
        (b"a/b; name==?utf-8?q?x?=", {"name": "x"}),
        (b'a/b; name*1="b"; name*0="a"', {"name": "ab"}),
        (b'a/b; name="=?utf-8?b?4oKs?=.txt"', {"name": "€.txt"}),
        (b"a/b; name=a\r\n b", {"name": "a"}),
        (b"", {}),
        (b"a/b", {}),
        (b"; = ;;", {}),
    ],
)
def test_parameters_are_read(value: bytes, expected: dict[str, str]) -> None:
    assert parse_parameters(value) == expected


@settings(max_examples=200)
@given(VALUES)
def test_any_parameter_is_one_clean_line(value: bytes) -> None:
    for found in parse_parameters(value).values():
        assert not set(found) & set("\0\r\n")
        assert found.encode().decode() == found


@pytest.mark.parametrize("value", HOSTILE_VALUES)
def test_hostile_parameters_stay_within_the_limit(value: bytes) -> None:
    assert sum(map(len, parse_parameters(value).values())) <= MAX_VALUE
