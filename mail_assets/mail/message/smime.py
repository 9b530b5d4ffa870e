"""Open the signed data of S/MIME (RFC 8551, RFC 5652), and tell what is encrypted.

A walk over the BER elements in front of the content, forwards only: no certificate is read and
no signature verified.
"""

from typing import NamedTuple

from mail_assets.mail.message.part import Part

_TYPES = frozenset({"application/pkcs7-mime", "application/x-pkcs7-mime"})
_SIGNED = b"\x2a\x86\x48\x86\xf7\x0d\x01\x07\x02"
_ENCRYPTED = frozenset(
    [
        b"\x2a\x86\x48\x86\xf7\x0d\x01\x07\x03",  # enveloped-data
        b"\x2a\x86\x48\x86\xf7\x0d\x01\x07\x06",  # encrypted-data
        b"\x2a\x86\x48\x86\xf7\x0d\x01\x09\x10\x01\x17",  # authEnveloped-data
    ]
)
_OID, _SEQUENCE, _EXPLICIT, _OCTETS, _OCTET_PIECES, _END = 0x06, 0x30, 0xA0, 0x04, 0x24, 0x00
_MAX_ELEMENTS = 100_000  # pieces of one content; OpenSSL writes 1,000 bytes and more in each


def is_smime(part: Part) -> bool:
    """Tell whether the part says that it is an S/MIME container."""
    return part.type in _TYPES or (
        part.type == "application/octet-stream" and part.filename.lower().endswith(".p7m")
    )


def open_smime(data: bytes) -> tuple[bytes | None, bool]:
    """The signed content, None where there is none; and whether the content is encrypted."""
    try:
        at = _enter(data, 0, _SEQUENCE)
        name = _read(data, at)
        kind = data[name.start : name.end]
        if name.tag != _OID or kind != _SIGNED:
            return None, kind in _ENCRYPTED
        at = _enter(data, _enter(data, name.end, _EXPLICIT), _SEQUENCE)
        at = _skip(data, _skip(data, at))  # version and digest algorithms
        at = _enter(data, at, _SEQUENCE)
        at = _enter(data, _skip(data, at), _EXPLICIT)  # behind the type of the content
        return _read_octets(data, at), False
    except (IndexError, ValueError):
        return None, False


class _Element(NamedTuple):
    tag: int
    start: int  # of the content
    end: int  # -1 where an end-of-contents element ends it


def _read(data: bytes, at: int) -> _Element:
    """The element at data[at]; raises IndexError or ValueError where there is none."""
    tag, length = data[at], data[at + 1]
    at += 2
    if length == 0x80:
        return _Element(tag, at, -1)
    if length > 0x80:
        width = length & 0x7F
        if width > 8:
            raise ValueError("a length of more than 8 bytes")
        length = int.from_bytes(data[at : at + width], "big")
        at += width
    return _Element(tag, at, min(at + length, len(data)))


def _enter(data: bytes, at: int, tag: int) -> int:
    """Where the content of the element begins, which has to have the tag."""
    element = _read(data, at)
    if element.tag != tag:
        raise ValueError(f"tag {element.tag:#x} where {tag:#x} was expected")
    return element.start


def _skip(data: bytes, at: int) -> int:
    """Where the element at data[at] ends."""
    depth = 0
    for _ in range(_MAX_ELEMENTS):
        element = _read(data, at)
        if element.end < 0:
            depth, at = depth + 1, element.start
            continue
        depth, at = depth - (element.tag == _END), element.end
        if depth <= 0:
            return at
    raise ValueError("an element of too many elements")


def _read_octets(data: bytes, at: int) -> bytes:
    """An octet string, whole or in pieces."""
    first = _read(data, at)
    if first.tag == _OCTETS:
        return data[first.start : first.end]
    if first.tag != _OCTET_PIECES:
        raise ValueError("no octet string")
    pieces: list[bytes] = []
    at, stop = first.start, first.end if first.end >= 0 else len(data)
    while at < stop and len(pieces) < _MAX_ELEMENTS:
        piece = _read(data, at)
        if piece.tag == _OCTETS:
            pieces.append(data[piece.start : piece.end])
        elif piece.tag not in (_OCTET_PIECES, _END):
            break
        at = piece.start if piece.tag == _OCTET_PIECES else piece.end
    return b"".join(pieces)
