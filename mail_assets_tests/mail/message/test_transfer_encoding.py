"""Transfer encodings, whole and broken."""

import pytest

from mail_assets.mail.message.mime import parse_mime
from mail_assets.mail.message.part_text import decode_part


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
    assert decode_part(parse_mime(raw).parts[0]) == expected
