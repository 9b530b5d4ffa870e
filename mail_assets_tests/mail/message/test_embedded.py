"""Files in the text of a message: uuencode, yEnc and BinHex."""

import binascii

import pytest

from mail_assets.mail.message.mime import parse_mime
from mail_assets.mail.message.parse import parse_message
from mail_assets.mail.message.part_text import decode_part
from mail_assets_tests.mail.mails import raw_message

DATA = bytes(range(256)) * 3


def uuencoded(name: str, data: bytes = DATA, end: str = "`\nend\n") -> bytes:
    lines = b"".join(binascii.b2a_uu(data[at : at + 45]) for at in range(0, len(data), 45))
    return f"begin 644 {name}\n".encode() + lines + end.encode()


def yencoded(name: str, data: bytes = DATA) -> bytes:
    special = (0, 10, 13, 61)
    shifted = [(byte + 42) % 256 for byte in data]
    code = b"".join(b"=%c" % ((c + 64) % 256) if c in special else b"%c" % c for c in shifted)
    lines, at = [], 0
    while at < len(code):
        stop = at + 100 + code.startswith(b"=", at + 99)
        lines.append(code[at:stop])
        at = stop
    head = b"=ybegin line=100 size=%d name=%s\n" % (len(data), name.encode())
    return head + b"\n".join(lines) + b"\n=yend size=%d\n" % len(data)


@pytest.mark.parametrize(
    ("block", "name", "data"),
    [
        (uuencoded("a.bin"), "a.bin", DATA),
        (uuencoded("a.bin", b"hi"), "a.bin", b"hi"),
        (uuencoded("a.bin", end=""), "a.bin", DATA),
        (uuencoded("a.bin").replace(b"\n", b"\r\n"), "a.bin", DATA),
        (uuencoded("../../etc/a b.bin"), "a b.bin", DATA),
        (yencoded("y.bin"), "y.bin", DATA),
    ],
)
def test_file_in_the_text_is_an_attachment(block: bytes, name: str, data: bytes) -> None:
    raw = b"Subject: s\n\nHere it is:\n\n" + block + b"\nThat was it.\n"
    found = parse_message(raw_message(raw), month="1996-01", dialect="pg")
    assert found.body_text.split() == ["Here", "it", "is:", "That", "was", "it."]
    [attachment] = found.attachments
    assert (attachment.name, attachment.size) == (name, len(data))
    [part] = [part for part in parse_mime(raw).parts if part.filename]
    assert decode_part(part) == data


def test_binhex_stays_encoded() -> None:
    block = (
        b"(This file must be converted with BinHex 4.0)\n\n"
        b':$f*TEQKPH#jdCA0d,R0TG!"6594%8dP8)3#3!!!\n!!!!!:\n'
    )
    found = parse_message(
        raw_message(b"Subject: s\n\nsee\n" + block + b"end\n"), month="1996-01", dialect="pg"
    )
    assert found.body_text == "see\nend\n"
    [attachment] = found.attachments
    assert (attachment.type, attachment.size) == ("application/mac-binhex40", len(block))


@pytest.mark.parametrize("text", [
    b"begin 644 words\nand then prose follows\n", b"begin 644 WORDS\nUPPER CASE PROSE\n\nMORE\n",
    b"We begin 644 x\n", b"begin 644\n", b"=ybegin\nx\n",
    b"(This file must be converted with BinHex 4.0)\nprose\n",
])  # fmt: skip
def test_words_that_only_look_like_a_file_stay(text: bytes) -> None:
    found = parse_message(raw_message(b"Subject: s\n\n" + text), month="1996-01", dialect="pg")
    assert found.body_text == text.decode()
    assert found.attachments == ()
