"""Content transfer encodings undone: base64, quoted-printable, uuencode (RFC 2045 section 6)."""

import binascii
import re

_NOT_BASE64 = re.compile(rb"[^A-Za-z0-9+/]+")
_UU_BEGIN = re.compile(rb"^begin [0-7]{3,4} [^\n]*\n", re.M)


def decode_transfer(data: bytes, encoding: str) -> bytes:
    """The data with its transfer encoding undone; an unknown encoding leaves them as they are."""
    if encoding == "quoted-printable":
        return binascii.a2b_qp(data)
    if encoding == "base64":
        return decode_base64(data)
    if encoding in ("x-uuencode", "uuencode", "x-uue", "uue"):
        return _decode_uuencode(data)
    return data


def decode_base64(data: bytes) -> bytes:
    """Tolerant base64: junk is skipped, missing padding added, a lone last character dropped."""
    try:
        return binascii.a2b_base64(data)
    except binascii.Error:
        data = _NOT_BASE64.sub(b"", data)
        data = data[: len(data) - (len(data) % 4 == 1)]
        return binascii.a2b_base64(data + b"=" * (-len(data) % 4))


def _decode_uuencode(data: bytes) -> bytes:
    """Tolerant uuencode: the lines between `begin` and `end`, broken ones left out."""
    begin = _UU_BEGIN.search(data)
    if begin is None:
        return data
    out = bytearray()
    for line in data[begin.end() :].split(b"\n"):
        if line.rstrip() == b"end":
            break
        try:
            out += binascii.a2b_uu(line.rstrip(b"\r"))
        except binascii.Error:
            continue
    return bytes(out)
