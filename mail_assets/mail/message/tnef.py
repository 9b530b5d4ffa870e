"""Read the text of a message in TNEF, the container that Outlook sends as winmail.dat.

[MS-OXTNEF] for the container, [MS-OXCDATA] for its properties. Attachments in it stay in it.
"""

import struct
from collections.abc import Iterator
from typing import NamedTuple

from mail_assets.mail.message.decoding import decode_text, is_blank
from mail_assets.mail.message.part import Part

_TYPES = frozenset({"application/ms-tnef", "application/vnd.ms-tnef"})
_NAMES = frozenset({"winmail.dat", "win.dat"})
_SIGNATURE = b"\x78\x9f\x3e\x22"
_MAX_ITEMS = 10_000  # attributes of a container, properties of a message

# Attributes of the message; an attachment's have another level.
_MESSAGE_LEVEL = 1
_BODY, _PROPERTIES, _CODE_PAGE = 0x0002800C, 0x00069003, 0x00069007
# Properties: text and HTML, and the code page of the latter
_TEXT, _HTML, _INTERNET_CODE_PAGE = 0x1000, 0x1013, 0x3FDE
_STRING, _UNICODE, _MANY = 0x001E, 0x001F, 0x1000
_LENGTHS = {
    **dict.fromkeys([0x0002, 0x0003, 0x0004, 0x000A, 0x000B], 4),
    **dict.fromkeys([0x0005, 0x0006, 0x0007, 0x0014, 0x0040], 8),
    0x0048: 16,
}
_VARIABLE = frozenset({_STRING, _UNICODE, 0x000D, 0x0102})


class TnefText(NamedTuple):
    """Text of a message in TNEF, plain or HTML; "" without any."""

    text: str
    is_html: bool


class _Property(NamedTuple):
    id: int
    type: int
    value: bytes


def is_tnef(part: Part) -> bool:
    """Return whether a part says that it is TNEF."""
    return part.type in _TYPES or part.filename.lower() in _NAMES


def read_tnef(data: bytes) -> TnefText:
    """Return the plain text of the message, else its HTML; never raises."""
    if not data.startswith(_SIGNATURE):
        return TnefText("", False)
    attributes = dict(_list_attributes(data))
    properties = {one.id: one for one in _list_properties(attributes.get(_PROPERTIES, b""))}
    page = attributes.get(_CODE_PAGE, b"")[:4]
    label = f"cp{int.from_bytes(page, 'little')}" if page else ""
    texts = [_decode(properties.get(_TEXT), label)]
    texts.append(decode_text(attributes.get(_BODY, b""), label))
    for text in texts:
        if not is_blank(text):
            return TnefText(text, False)
    if internet := properties.get(_INTERNET_CODE_PAGE):
        label = f"cp{int.from_bytes(internet.value, 'little')}"
    html = _decode(properties.get(_HTML), label)
    return TnefText(html, bool(html))


def _decode(found: _Property | None, label: str) -> str:
    if found is None:
        return ""
    return decode_text(found.value, "utf-16le" if found.type == _UNICODE else label)


def _list_attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = len(_SIGNATURE) + 2
    for _ in range(_MAX_ITEMS):
        if at + 9 > len(data):
            return
        level, name, length = struct.unpack_from("<BII", data, at)
        at += 9
        if level == _MESSAGE_LEVEL:
            yield name, data[at : at + length]
        elif level != 2:
            return
        at += length + 2  # a checksum follows


def _list_properties(data: bytes) -> Iterator[_Property]:
    try:
        (count,) = struct.unpack_from("<I", data, 0)
        at = 4
        for _ in range(min(count, _MAX_ITEMS)):
            kind, name = struct.unpack_from("<HH", data, at)
            at += 4
            if name >= 0x8000:
                at = _skip_name(data, at)
            base, values = kind & ~_MANY, 1
            if kind & _MANY or base in _VARIABLE:
                (values,) = struct.unpack_from("<I", data, at)
                at += 4
            value = b""
            for _ in range(min(values, _MAX_ITEMS)):
                if base in _VARIABLE:
                    (length,) = struct.unpack_from("<I", data, at)
                    at += 4
                else:
                    length = _LENGTHS[base]
                value = data[at : at + length]
                at += length + -length % 4
            yield _Property(name, base, value)
    except (struct.error, KeyError):  # the rest is cut, or of an unknown type
        return


def _skip_name(data: bytes, at: int) -> int:
    kind, length = struct.unpack_from("<16xII", data, at)
    return at + 24 + (length + -length % 4 if kind else 0)
