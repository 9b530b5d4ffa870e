"""Content transfer encodings undone: base64, quoted-printable, uuencode, yEnc."""

import binascii
import re

MAX_FOOTER = 4 << 10  # bytes

_NOT_BASE64 = re.compile(rb"[^A-Za-z0-9+/]+")
# No line of base64 has a rule or spaces between words.
_FOOTER = re.compile(rb"^(?:[-_*]{2}|[^\s]{1,200}+[ \t]{1,20}+[^\s])", re.M)
_YENC_LINE = re.compile(rb"^=y(?:begin|part|end) [^\n]*\n?|[\r\n]+", re.M)
_YENC = bytes((byte - 42) % 256 for byte in range(256))
# NUL, tab, line ends, full stop, space; the equals sign last, since it begins an escape
_YENC_ESCAPED = b"@IJMn`}"
_UU_BEGIN = re.compile(rb"^begin [0-7]{3,4} [^\n]*\n", re.M)


def decode_transfer(data: bytes, encoding: str) -> bytes:
    """The data with its transfer encoding undone; an unknown encoding leaves them as they are."""
    if encoding == "quoted-printable":
        return binascii.a2b_qp(data)
    if encoding == "base64":
        return decode_base64(data)
    if encoding in ("x-uuencode", "uuencode", "x-uue", "uue"):
        return _decode_uuencode(data)
    if encoding == "x-yenc":
        return _decode_yenc(data)
    return data


def split_off_footer(data: bytes) -> tuple[bytes, bytes]:
    """Encoded base64, and the footer in plain text that a list server added behind it.

    All is plain text where the first line is: some senders name an encoding that they do not use.
    """
    is_plain = _FOOTER.search(data, 0, 200)
    footer = is_plain or _FOOTER.search(data, max(0, len(data) - MAX_FOOTER))
    return (data[: footer.start()], data[footer.start() :]) if footer else (data, b"")


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
        if not line.strip():
            continue  # binascii takes an empty line for 32 bytes
        try:
            out += binascii.a2b_uu(line.rstrip(b"\r"))
        except binascii.Error:
            continue
    return bytes(out)


def _decode_yenc(data: bytes) -> bytes:
    """Content between the lines `=ybegin` and `=yend` (http://www.yenc.org/yenc-draft.1.3.txt)."""
    data = _YENC_LINE.sub(b"", data)
    for escaped in _YENC_ESCAPED:
        data = data.replace(b"=%c" % escaped, b"%c" % (escaped - 64))
    return data.translate(_YENC)
