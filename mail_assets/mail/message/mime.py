"""Find the MIME parts of a raw message (RFC 2045, RFC 2046) as offsets into its bytes.

Tolerant and bounded everywhere. A missing or unclosed boundary, or a thousand nested multiparts,
give parts and flags, never an exception. Nothing recurses.

Other formats contain parts too:

* Files in the text from before MIME (uuencode, yEnc, BinHex). The text around a file stays text.
  The file becomes an attachment, decoded except for BinHex, which Macintosh programs open.
* S/MIME (RFC 8551, RFC 5652). The BER elements before the signed content are skipped one by one.
  No certificate is read and no signature is verified.
"""

import re
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from mail_assets.mail.message.decoding import decode_transfer
from mail_assets.mail.message.headers import (
    Headers,
    find_header,
    first_value,
    parse_header_block,
    parse_parameters,
    read_beginning,
    unfold,
)
from mail_assets.mail.message.message import (
    Entity,
    Part,
    clean_filename,
    find_declared_charset,
    make_part,
)

MAX_DEPTH = 50
MAX_OPENED = 32 << 20  # total bytes of the encoded containers of a message

# A header block in quoted-printable: the beginning of an encoded word or of a From field.
_QUOTED_HEADER = re.compile(rb"=3D\?|^=46rom:", re.M)
_MESSAGE_TYPES = frozenset({"message/rfc822", "message/global", "message/news"})
_ENCRYPTED = frozenset({"multipart/encrypted", "application/pgp-encrypted"})

MAX_PARTS = 2_000  # parts of a message
MAX_TYPES = 10  # Content-Type fields of one header
MAX_DELIMITERS = 100_000  # delimiters in one multipart, including lookalikes

_BOUNDARY = re.compile(rb'[;\s]boundary[ \t]*=[ \t]*("(?:[^"\\]|\\.)*+"|[^;\s]*)', re.I)
# A line of dashes alone is a rule, not a delimiter. Outlook, Java and Mozilla begin boundaries with
# dashes.
_DELIMITER = re.compile(
    rb"^--(?=-{0,68}[^\s-])([^\r\n]{1,70}?)[ \t]{0,20}\r?\n"
    rb"(?P<header>(?:content|x)-[a-z-]{1,40}+:|mime-version:)?",
    re.I | re.M,
)
_PART_HEADER = re.compile(rb"[ \t]{0,20}\r?\ncontent-[a-z-]{1,40}+:", re.I)
MAX_GUESSES = 100  # lines that look like a delimiter
# Only the MIME preamble of a mail program may be above the first delimiter.
_HEADLESS = re.compile(
    rb"\s{0,20}+(?:This is an? [^\n]{0,60}MIME[^\n]{0,60}\n\s{0,20}+)?--([^\s]{1,70}+)"
    rb"[ \t]{0,20}+\r?\ncontent-[a-z-]{1,40}+:",
    re.I,
)
_ESCAPED = re.compile(rb"\\(.)")


class MimeTree(NamedTuple):
    """Parts of a message in order, and the names of its faults."""

    source: bytes  # the message; see Beginning
    headers: Headers
    parts: list[Part]
    body_start: int  # offset in source
    flags: set[str]
    declared: str  # charset named by encoded words of the header, see find_declared_charset
    attached: list[Headers]  # headers of attached messages; Part.message counts them from 1


def parse_mime(raw: bytes) -> MimeTree:
    """Return headers and leaf parts of a raw message; never raises."""
    source, headers, body_start, cut, repaired, in_utf_8 = read_beginning(raw)
    walker = _Walker()
    declared = find_declared_charset(headers)
    walker.walk(Entity(headers, source, body_start, len(source), fallback=declared))
    parts = walker.parts
    if in_utf_8:
        parts = [_in_utf_8(part) if part.source is source else part for part in parts]
    if cut:
        walker.flags.add("headers_capped")
    if not headers:
        walker.flags.add("no_headers")
    if repaired:
        walker.flags.add("header_repaired")
    return MimeTree(source, headers, parts, body_start, walker.flags, declared, walker.attached)


def _in_utf_8(part: Part) -> Part:
    is_plain = part.encoding not in ("base64", "quoted-printable")
    if is_plain and not part.source[part.start : part.end].isascii():
        return part._replace(charset="utf-8")
    return part


class _Walker:
    """Collects the leaf parts of one message."""

    def __init__(self) -> None:
        self.parts: list[Part] = []
        self.attached: list[Headers] = []
        self.flags: set[str] = set()
        self._groups = 0
        self._room = MAX_OPENED

    def walk(self, entity: Entity) -> None:
        stack = [entity]
        while stack:
            if len(self.parts) >= MAX_PARTS:
                self.flags.add("too_many_parts")
                break
            stack += self._open(stack.pop())

    def _open(self, here: Entity) -> list[Entity]:
        """Add the entity if it is a leaf; else return its content, the last part first."""
        if len(here.headers.get("content-type", ())) > 1:
            here = _settle_type(here)
        content = here.content
        media = content.type or here.default
        if not (content.type or here.depth) and _is_headless_multipart(*here[1:4]):
            media = "multipart/mixed"
        if media == "message/partial" and _is_first_part(here):
            media = "message/rfc822"
        if media in _ENCRYPTED and not here.message:
            self.flags.add("encrypted")
        if media.startswith("multipart/"):
            inside = self._split(here, media) if here.depth < MAX_DEPTH else None
            if inside is not None:
                return inside
            if here.depth >= MAX_DEPTH or self._is_out_of_room(here):
                self.flags.add("too_deep")
                self.parts.append(make_part(here, content, media, len(self.parts)))
                return []
            self.flags.add("no_boundary")
            media = "text/plain"
        part = make_part(here, content, media, len(self.parts))
        if is_smime(part) and (signed := self._open_smime(here)) is not None:
            return [signed]
        if media.startswith("text/"):
            self.parts += find_inline_files(part)
            return []
        self.parts.append(part)
        if media not in _MESSAGE_TYPES:
            return []
        if here.depth >= MAX_DEPTH:
            self.flags.add("too_deep")
            return []
        return self._attach(here)

    def _split(self, here: Entity, media: str) -> list[Entity] | None:
        boundary = _read_boundary(first_value(here.headers, "content-type"))
        spans = split_multipart(here.source, here.start, here.end, boundary)
        if spans is None and (decoded := self._decode(here)):
            here = decoded
            spans = split_multipart(here.source, here.start, here.end, boundary)
        if spans is None and (boundary := _guess_boundary(here.source, here.start, here.end)):
            self.flags.add("no_boundary")
            spans = split_multipart(here.source, here.start, here.end, boundary)
        if spans is None:
            return None
        if len(spans) > MAX_PARTS:
            self.flags.add("too_many_parts")
        if media == "multipart/alternative" and not here.group:
            self._groups += 1
            here = here._replace(group=self._groups)
        default = "message/rfc822" if media == "multipart/digest" else "text/plain"
        inside = here._replace(default=default)
        return [_enter(inside, *span) for span in reversed(spans[:MAX_PARTS])]

    def _attach(self, here: Entity) -> list[Entity]:
        """Return the message in a part; it may be encoded, against RFC 2046 section 5.2.1."""
        here = here._replace(group=0, default="text/plain")
        inside = _enter_message(here, here.start, here.end)
        encoded = not inside.headers or _QUOTED_HEADER.search(here.source, here.start, inside.start)
        if encoded and (decoded := self._decode(here)):
            inside = _enter_message(decoded, decoded.start, decoded.end)
        elif encoded and self._is_out_of_room(here):
            return []
        self.attached.append(inside.headers)
        fallback = find_declared_charset(inside.headers) or here.fallback
        return [inside._replace(message=len(self.attached), fallback=fallback)]

    def _open_smime(self, here: Entity) -> Entity | None:
        if here.depth >= MAX_DEPTH or not self._take(here):
            return None
        data = decode_transfer(here.source[here.start : here.end], here.encoding)
        signed, encrypted = open_smime(data)
        if encrypted and not here.message:
            self.flags.add("encrypted")
        if signed is None:
            return None
        return _enter(here._replace(source=signed), 0, len(signed))

    def _decode(self, here: Entity) -> Entity | None:
        if here.encoding not in ("base64", "quoted-printable") or not self._take(here):
            return None
        data = decode_transfer(here.source[here.start : here.end], here.encoding)
        return here._replace(source=data, start=0, end=len(data))

    def _is_out_of_room(self, here: Entity) -> bool:
        """Return whether the content stays encoded and must not be read as text."""
        return self._room < 0 and here.encoding == "base64"

    def _take(self, here: Entity) -> bool:
        self._room -= here.end - here.start
        if self._room < 0:
            self.flags.add("too_deep")
        return self._room >= 0


def _enter(parent: Entity, start: int, end: int) -> Entity:
    headers, body, _ = parse_header_block(parent.source, start, end)
    return parent._replace(headers=headers, start=body, end=end, depth=parent.depth + 1)


def _enter_message(parent: Entity, start: int, end: int) -> Entity:
    headers, body, _, _ = find_header(parent.source, start, end)
    return parent._replace(headers=headers, start=body, end=end, depth=parent.depth + 1)


def _is_first_part(here: Entity) -> bool:
    """Return whether a message/partial (RFC 2046 section 5.2.2) has its message's header."""
    value = unfold(first_value(here.headers, "content-type"))
    return parse_parameters(value).get("number", "").strip() == "1"


def _read_boundary(content_type: bytes) -> bytes:
    value = unfold(content_type)
    found = _BOUNDARY.search(value)
    if found:
        return _ESCAPED.sub(rb"\1", found[1].strip(b'"')).rstrip()
    return parse_parameters(value).get("boundary", "").encode()  # an RFC 2231 continuation


def _guess_boundary(raw: bytes, start: int, end: int) -> bytes:
    """Return the boundary of the first line that looks like a delimiter, or b"".

    Below the line there is the header of a part or, further down, a closing delimiter with the same
    boundary.
    """
    for line in islice(_DELIMITER.finditer(raw, max(0, start - 1), end), MAX_GUESSES):
        if line["header"] or _find_closing(raw, line[1], line.end(1), end):
            return line[1]
    return b""


def _find_closing(raw: bytes, boundary: bytes, start: int, end: int) -> bool:
    return raw.find(b"\n--" + boundary + b"--", start, end) >= 0


def _settle_type(here: Entity) -> Entity:
    """Return the entity with the one of its Content-Type fields that fits its content.

    That is a multipart whose delimiter occurs. Without one, it is the first field that names a
    multipart exactly if the content looks like one.
    """
    values = here.headers["content-type"]
    fits = next((one for one in values[:MAX_TYPES] if _has_delimiter(here, one)), None)
    if fits is None:
        is_multipart = bool(_guess_boundary(here.source, here.start, here.end))
        kinds = ((one[:10].lower() == b"multipart/", one) for one in values)
        fits = next((one for kind, one in kinds if kind == is_multipart), None)
    if fits is None or fits == values[0]:
        return here
    return here._replace(headers={**here.headers, "content-type": [fits, *values]})


def _has_delimiter(here: Entity, value: bytes) -> bool:
    delimiter = b"--" + _read_boundary(value)
    if delimiter == b"--":
        return False
    at_start = here.source.startswith(delimiter, here.start, here.end)
    return at_start or here.source.find(b"\n" + delimiter, here.start, here.end) >= 0


def _is_headless_multipart(raw: bytes, start: int, end: int) -> bool:
    """Return whether a body without a Content-Type (old Mailman) is a closed multipart."""
    first = _HEADLESS.match(raw, start, end)
    return first is not None and _find_closing(raw, first[1], first.end(), end)


def _goes_on(raw: bytes, delimiter: bytes, start: int, end: int) -> bool:
    """Return whether a part with a header follows the next delimiter line below a closing one."""
    found = raw.find(b"\n" + delimiter, start, end)
    return found >= 0 and _PART_HEADER.match(raw, found + 1 + len(delimiter), end) is not None


def split_multipart(
    raw: bytes, start: int, end: int, boundary: bytes
) -> list[tuple[int, int]] | None:
    """Return the spans between the delimiter lines of one multipart (RFC 2046 section 5.1.1).

    A delimiter line is `--`, the boundary, and white space or the line end. Text after the white
    space is ignored. The result is None if no delimiter line begins a part. It is empty if there is
    only the closing delimiter, without text above it. Parts below the closing delimiter count too:
    an inner multipart may have the same boundary, against RFC 2046.
    """
    spans: list[tuple[int, int]] = []
    delimiter, at, open_at, any_line = b"--" + boundary, start, -1, False
    for seen in range(MAX_DELIMITERS if boundary else 0):
        if len(spans) > MAX_PARTS:
            break
        found = raw.find(delimiter, at, end)
        if found < 0 or seen == MAX_DELIMITERS - 1:
            if open_at >= 0:
                spans.append((open_at, end))  # never closed
            break
        at = found + len(delimiter)
        if found > start and raw[found - 1] != 10:
            continue
        closing = raw.startswith(b"--", at, end)
        after = at + 2 if closing else at
        if after < end and raw[after] not in b" \t\r\n":
            continue  # a longer boundary that begins with this one
        if open_at >= 0:
            line_break = 2 if raw.startswith(b"\r\n", found - 2) else 1
            spans.append((open_at, max(open_at, found - line_break)))
        elif closing and raw[start:found].strip():
            break
        any_line = True
        line_end = raw.find(b"\n", after, end)
        if line_end < 0 or (closing and not _goes_on(raw, delimiter, line_end, end)):
            break
        at = line_end + 1
        open_at = -1 if closing else at
    return spans if any_line else None


# --- uuencode, yEnc, BinHex ---

MAX_FILES = 100  # files in one part; the rest stays text

# Every match of _BEGIN contains one of these; a yEnc line contains the first.
_UU_MARK, _BINHEX_MARK = b"begin ", b"(This file must be converted with BinHex"
_PLAIN_ENCODINGS = frozenset({"", "7bit", "8bit", "binary"})
# A first line, then a full line of data, or the only line of a short file and its `end`.
_BEGIN = re.compile(
    rb"^(?:begin[ ]{1,9}+[0-7]{3,4}[ ]{1,9}+(?P<uu>[^\r\n]{1,255}+)\r?\n"
    rb"(?=M[ -`]{58,64}+\r?\n|[!-L][ -`]{1,64}+\r?\n[` \r\n]{0,9}end\b)"
    rb"|=ybegin[ ][^\r\n]{0,200}?name=(?P<yenc>[^\r\n]{1,255}+)\r?\n"
    rb"|\(This file must be converted with BinHex[^\n]{0,80}+\n(?:\r?\n){0,3}"
    rb"(?P<binhex>:)(?=[!-,\-0-9@A-Z\[`a-r]{1,100}+\r?\n))",
    re.M,
)
# The first line that is not data; an `end` belongs to the file.
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
    """Return the part itself or, if it is a text with files, its pieces in order."""
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
_ENCRYPTED_DATA = frozenset(
    [
        b"\x2a\x86\x48\x86\xf7\x0d\x01\x07\x03",  # enveloped-data
        b"\x2a\x86\x48\x86\xf7\x0d\x01\x07\x06",  # encrypted-data
        b"\x2a\x86\x48\x86\xf7\x0d\x01\x09\x10\x01\x17",  # authEnveloped-data
    ]
)
_OID, _SEQUENCE, _EXPLICIT, _OCTETS, _OCTET_PIECES, _END = 0x06, 0x30, 0xA0, 0x04, 0x24, 0x00
_MAX_ELEMENTS = 100_000  # pieces of one content; OpenSSL writes at least 1,000 bytes in each


def is_smime(part: Part) -> bool:
    """Return whether the type or name of a part is that of an S/MIME container."""
    return part.type in _TYPES or (
        part.type == "application/octet-stream" and part.filename.lower().endswith(".p7m")
    )


def open_smime(data: bytes) -> tuple[bytes | None, bool]:
    """Return the signed content or None, and whether the content is encrypted."""
    try:
        at = _enter_element(data, 0, _SEQUENCE)
        name = _read(data, at)
        kind = data[name.start : name.end]
        if name.tag != _OID or kind != _SIGNED:
            return None, kind in _ENCRYPTED_DATA
        at = _enter_element(data, _enter_element(data, name.end, _EXPLICIT), _SEQUENCE)
        at = _skip(data, _skip(data, at))  # version and digest algorithms
        at = _enter_element(data, at, _SEQUENCE)
        at = _enter_element(data, _skip(data, at), _EXPLICIT)  # skips the type of the content
        return _read_octets(data, at), False
    except (IndexError, ValueError):
        return None, False


class _Element(NamedTuple):
    tag: int
    start: int  # offset of the content
    end: int  # its end, or -1 if an end-of-contents element ends it


def _read(data: bytes, at: int) -> _Element:
    """Return the element at data[at]; raises IndexError or ValueError if there is none."""
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


def _enter_element(data: bytes, at: int, tag: int) -> int:
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
    raise ValueError("too many elements in one element")


def _read_octets(data: bytes, at: int) -> bytes:
    first = _read(data, at)
    if first.tag == _OCTETS:
        return data[first.start : first.end]
    if first.tag != _OCTET_PIECES:
        raise ValueError(f"tag {first.tag:#x} where an octet string was expected")
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
