"""Messages inside other forms: files in the text from before MIME, and the signed data of S/MIME.

uuencode, yEnc and BinHex: the text around a file stays text; the file becomes an attachment,
decoded except for BinHex, a format of its own that Macintosh programs open.

S/MIME (RFC 8551, RFC 5652): a walk forwards over the BER elements before the content. No
certificate is read and no signature verified.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from mail_assets.mail.message.part import Part, clean_filename

# --- uuencode, yEnc, BinHex ---

MAX_FILES = 100  # of one part; the rest stays text

# Every _BEGIN has one of these; yEnc's has the first.
_UU_MARK, _BINHEX_MARK = b"begin ", b"(This file must be converted with BinHex"
_PLAIN_ENCODINGS = frozenset({"", "7bit", "8bit", "binary"})
# A first line, then a full line of data, or the only one of a short file and its `end`.
_BEGIN = re.compile(
    rb"^(?:begin[ ]{1,9}+[0-7]{3,4}[ ]{1,9}+(?P<uu>[^\r\n]{1,255}+)\r?\n"
    rb"(?=M[ -`]{58,64}+\r?\n|[!-L][ -`]{1,64}+\r?\n[` \r\n]{0,9}end\b)"
    rb"|=ybegin[ ][^\r\n]{0,200}?name=(?P<yenc>[^\r\n]{1,255}+)\r?\n"
    rb"|\(This file must be converted with BinHex[^\n]{0,80}+\n(?:\r?\n){0,3}"
    rb"(?P<binhex>:)(?=[!-,\-0-9@A-Z\[`a-r]{1,100}+\r?\n))",
    re.M,
)
# The first line that is no data; an `end` belongs to the file.
_UU_END = re.compile(
    rb"^(?![!-`][ -`]{0,90}\r?\n)(?:[` ]?\r?\n)?(?:end[ \t]{0,9}(?:\r?\n|\Z))?", re.M
)
_BINHEX_END = re.compile(
    rb"^(?![!-,\-0-9@A-Z\[`a-r]{1,100}\r?\n)(?:[^\s:]{0,100}:\r?(?:\n|\Z))?", re.M
)


class InlineFile(NamedTuple):
    """A file at source[start:end]."""

    format: str  # uu, yenc or binhex
    name: str
    start: int
    end: int


def find_inline_files(part: Part) -> list[Part]:
    """Return the part itself; or its pieces in order, if it is a text with files."""
    if part.encoding not in _PLAIN_ENCODINGS or part.type != "text/plain":
        return [part]
    source, start, end = part.source, part.start, part.end
    if source.find(_UU_MARK, start, end) < 0 and source.find(_BINHEX_MARK, start, end) < 0:
        return [part]
    pieces: list[Part] = []
    at = part.start
    for file in _list_files(part.source, part.start, part.end):
        pieces += _text_between(part, at, file.start)
        pieces.append(_make_file(part, file))
        at = file.end
    if not pieces:
        return [part]
    pieces += _text_between(part, at, part.end)
    return [piece._replace(number=part.number + at) for at, piece in enumerate(pieces)]


def _list_files(source: bytes, start: int, end: int) -> Iterator[InlineFile]:
    at = start
    for _ in range(MAX_FILES):
        begin = _BEGIN.search(source, at, end)
        if begin is None:
            return
        kind = begin.lastgroup or ""
        name = "" if kind == "binhex" else begin[kind].decode("utf-8", "replace")
        at = _find_end(kind, source, begin.end(), end)
        yield InlineFile(kind, clean_filename(name.strip().strip('"')), begin.start(), at)


def _find_end(kind: str, source: bytes, start: int, end: int) -> int:
    if kind == "yenc":
        last = source.find(b"\n=yend ", start - 1, end)
        line_end = source.find(b"\n", last + 1, end) if last >= 0 else -1
        return line_end + 1 or end
    if kind == "binhex":
        start = source.find(b"\n", start, end) + 1  # its first line begins with the colon
    found = (_UU_END if kind == "uu" else _BINHEX_END).search(source, start, end)
    return found.end() if found else end


def _make_file(part: Part, file: InlineFile) -> Part:
    media = "application/mac-binhex40" if file.format == "binhex" else "application/octet-stream"
    return part._replace(
        type=media,
        start=file.start,
        end=file.end,
        encoding={"uu": "x-uuencode", "yenc": "x-yenc", "binhex": ""}[file.format],
        disposition="attachment",
        filename=file.name or "file",
        group=0,
    )


def _text_between(part: Part, start: int, end: int) -> list[Part]:
    has_text = part.source[start:end].strip()
    return [part._replace(start=start, end=end)] if has_text else []


# --- S/MIME ---

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
    """Return whether the part says that it is an S/MIME container."""
    return part.type in _TYPES or (
        part.type == "application/octet-stream" and part.filename.lower().endswith(".p7m")
    )


def open_smime(data: bytes) -> tuple[bytes | None, bool]:
    """Return the signed content or None, and whether the content is encrypted."""
    try:
        at = _enter(data, 0, _SEQUENCE)
        name = _read(data, at)
        kind = data[name.start : name.end]
        if name.tag != _OID or kind != _SIGNED:
            return None, kind in _ENCRYPTED
        at = _enter(data, _enter(data, name.end, _EXPLICIT), _SEQUENCE)
        at = _skip(data, _skip(data, at))  # version and digest algorithms
        at = _enter(data, at, _SEQUENCE)
        at = _enter(data, _skip(data, at), _EXPLICIT)  # after the type of the content
        return _read_octets(data, at), False
    except (IndexError, ValueError):
        return None, False


class _Element(NamedTuple):
    tag: int
    start: int  # of the content
    end: int  # -1 if an end-of-contents element ends it


def _read(data: bytes, at: int) -> _Element:
    """Return the element at data[at]; raises IndexError or ValueError without one."""
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
    """Return the start of the content; raises ValueError for another tag."""
    element = _read(data, at)
    if element.tag != tag:
        raise ValueError(f"tag {element.tag:#x} where {tag:#x} was expected")
    return element.start


def _skip(data: bytes, at: int) -> int:
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
