"""S/MIME containers: signed ones are opened, encrypted ones flagged."""

import base64

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mail_assets.mail.message.mime import open_smime
from mail_assets_tests.mail.mails import read_mail

SIGNED = bytes.fromhex("06092a864886f70d010702")
ENVELOPED = bytes.fromhex("06092a864886f70d010703")
DATA = bytes.fromhex("06092a864886f70d010701")
INNER = b"Content-Type: text/plain; charset=utf-8\r\n\r\nSigned text.\r\n"
END = b"\0\0"


def element(tag: int, content: bytes) -> bytes:
    """A DER element with a definite length."""
    size = len(content)
    if size < 0x80:
        return bytes([tag, size]) + content
    width = (size.bit_length() + 7) // 8
    return bytes([tag, 0x80 | width]) + size.to_bytes(width, "big") + content


def signed_data(octets: bytes) -> bytes:
    """SignedData of RFC 5652 section 5.1 with an empty set of signers."""
    content = element(0x30, DATA + element(0xA0, octets))
    fields = b"\x02\x01\x01" + element(0x31, element(0x30, DATA)) + content + element(0x31, b"")
    return element(0x30, SIGNED + element(0xA0, element(0x30, fields)))


#: A container as OpenSSL streams it: with indefinite lengths, and content in pieces.
STREAMED = (
    b"\x30\x80"
    + SIGNED
    + b"\xa0\x80\x30\x80\x02\x01\x01\x31\x80"
    + element(0x30, DATA)
    + END
    + b"\x30\x80"
    + DATA
    + b"\xa0\x80\x24\x80"
    + element(4, INNER[:20])
    + element(4, INNER[20:])
    + END * 3
    + b"\xa0\x80"
    + END
    + element(0x31, b"")
    + END * 3
)
CONTAINERS = {
    "whole": signed_data(element(4, INNER)),
    "long": signed_data(element(4, INNER + b"x" * 70_000)),
    "in pieces": signed_data(element(0x24, element(4, INNER[:20]) + element(4, INNER[20:]))),
    "pieces of pieces": signed_data(
        element(0x24, element(0x24, element(4, INNER[:20])) + element(4, INNER[20:]))
    ),
    "streamed": STREAMED,
}


@pytest.mark.parametrize("name", CONTAINERS)
def test_signed_content_comes_out_whole(name: str) -> None:
    content, encrypted = open_smime(CONTAINERS[name])
    assert content is not None
    assert content.startswith(INNER)
    assert len(content) == len(INNER) + 70_000 * (name == "long")
    assert not encrypted


@pytest.mark.parametrize("media", ["application/pkcs7-mime", "application/x-pkcs7-mime"])
def test_signed_mail_shows_its_text(media: str) -> None:
    raw = (
        f"Content-Type: {media}; smime-type=signed-data; name=smime.p7m\n"
        "Content-Transfer-Encoding: base64\n\n"
    ).encode() + base64.encodebytes(STREAMED)
    found = read_mail(b"Subject: s\n" + raw)
    assert (found.body_kind, found.body_text) == ("plain", "Signed text.\n")
    assert found.attachments == ()
    assert "encrypted" not in found.flags


@pytest.mark.parametrize(
    "raw",
    [
        b"Content-Type: application/pkcs7-mime; smime-type=enveloped-data\n"
        b"Content-Transfer-Encoding: base64\n\n"
        + base64.encodebytes(element(0x30, ENVELOPED + element(0xA0, b""))),
        b"Content-Type: application/octet-stream; name=smime.p7m\n"
        b"Content-Transfer-Encoding: base64\n\n"
        + base64.encodebytes(element(0x30, ENVELOPED + element(0xA0, b""))),
        (
            b"Content-Type: multipart/encrypted; protocol=application/pgp-encrypted; boundary=b\n\n"
            b"--b\nContent-Type: application/pgp-encrypted\n\nVersion: 1\n--b--\n"
        ),
        b"\n\n-----BEGIN PGP MESSAGE-----\n\nhQEMA\n-----END PGP MESSAGE-----\n",
    ],
)
def test_encrypted_message_is_flagged(raw: bytes) -> None:
    found = read_mail(b"Subject: s\n" + raw)
    assert "encrypted" in found.flags


@pytest.mark.parametrize(
    "raw",
    [
        b"\nWhat is this?\n-----BEGIN PGP MESSAGE-----\n\nhQEMA\n",
        b"Content-Type: application/octet-stream; name=smime.bin\n"
        b"Content-Transfer-Encoding: base64\n\n"
        + base64.encodebytes(element(0x30, ENVELOPED + element(0xA0, b""))),
        b"Content-Type: application/pdf; name=smime.p7m\n\nno container\n",
    ],
)
def test_plain_mail_that_looks_encrypted_is_not_flagged(raw: bytes) -> None:
    raw = b"Subject: s\n" + raw
    assert "encrypted" not in read_mail(raw).flags


@settings(max_examples=200)
@given(at=st.integers(0, len(STREAMED) - 1), byte=st.integers(0, 255), cut=st.booleans())
def test_damaged_container_raises_no_error(at: int, byte: int, cut: bool) -> None:
    for data in CONTAINERS["in pieces"], STREAMED:
        place = min(at, len(data) - 1)
        damaged = data[:place] + bytes([byte]) + (b"" if cut else data[place + 1 :])
        content, _ = open_smime(damaged)
        assert content is None or len(content) <= len(data)


@pytest.mark.parametrize("unit", [b"\x24\x80", b"\x04\0", b"\x31\x80", END])
def test_many_elements_give_no_content(unit: bytes) -> None:
    head = STREAMED[: STREAMED.index(b"\x24\x80")]
    content, _ = open_smime(head + b"\x24\x80" + unit * 300_000)
    assert content in (b"", None)
