"""Find the MIME parts of a raw message (RFC 2045, RFC 2046) as offsets into its bytes.

Tolerant and bounded everywhere: a missing or unclosed boundary or a thousand nested multiparts give
parts and flags, never an exception. Nothing recurses.
"""

import re
from itertools import islice
from typing import NamedTuple

from mail_assets.mail.message.beginning import find_header, read_beginning
from mail_assets.mail.message.decoding import decode_transfer
from mail_assets.mail.message.embedded import find_inline_files, is_smime, open_smime
from mail_assets.mail.message.headers import (
    Headers,
    first_value,
    parse_header_block,
    parse_parameters,
    unfold,
)
from mail_assets.mail.message.part import Entity, Part, find_declared_charset, make_part

MAX_DEPTH = 50
MAX_OPENED = 32 << 20  # bytes of all encoded containers of a message

# A header block in quoted-printable: the beginning of an encoded word or of a From field.
_QUOTED_HEADER = re.compile(rb"=3D\?|^=46rom:", re.M)
_MESSAGE_TYPES = frozenset({"message/rfc822", "message/global", "message/news"})
_ENCRYPTED = frozenset({"multipart/encrypted", "application/pgp-encrypted"})

MAX_PARTS = 2_000  # of a message
MAX_TYPES = 10  # Content-Type fields of one header
MAX_DELIMITERS = 100_000  # of one multipart, lookalikes included

_BOUNDARY = re.compile(rb'[;\s]boundary[ \t]*=[ \t]*("(?:[^"\\]|\\.)*+"|[^;\s]*)', re.I)
# A line of dashes alone is a rule. Outlook, Java and Mozilla begin a boundary with dashes.
_DELIMITER = re.compile(
    rb"^--(?=-{0,68}[^\s-])([^\r\n]{1,70}?)[ \t]{0,20}\r?\n"
    rb"(?P<header>(?:content|x)-[a-z-]{1,40}+:|mime-version:)?",
    re.I | re.M,
)
_PART_HEADER = re.compile(rb"[ \t]{0,20}\r?\ncontent-[a-z-]{1,40}+:", re.I)
MAX_GUESSES = 100  # lines that look like a delimiter
# Only a mail program's MIME preamble may stand above the first delimiter.
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
    body_start: int  # in source
    flags: set[str]
    declared: str  # charset that encoded words of the header name; see find_declared_charset
    attached: list[Headers]  # of the attached messages; Part.message counts them from 1


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
    """Collects the leaves of one message."""

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
        """Return the message in a message part, which may be encoded against RFC 2046, 5.2.1."""
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
    """Return whether a message/partial (RFC 2046 section 5.2.2) has the header of its message."""
    value = unfold(first_value(here.headers, "content-type"))
    return parse_parameters(value).get("number", "").strip() == "1"


def _read_boundary(content_type: bytes) -> bytes:
    value = unfold(content_type)
    found = _BOUNDARY.search(value)
    if found:
        return _ESCAPED.sub(rb"\1", found[1].strip(b'"')).rstrip()
    return parse_parameters(value).get("boundary", "").encode()  # an RFC 2231 continuation


def _guess_boundary(raw: bytes, start: int, end: int) -> bytes:
    """Return the boundary of the first line that looks like a delimiter, b"" without one.

    The header of a part stands below it, or a closing delimiter of the same boundary further down.
    """
    for line in islice(_DELIMITER.finditer(raw, max(0, start - 1), end), MAX_GUESSES):
        if line["header"] or _find_closing(raw, line[1], line.end(1), end):
            return line[1]
    return b""


def _find_closing(raw: bytes, boundary: bytes, start: int, end: int) -> bool:
    return raw.find(b"\n--" + boundary + b"--", start, end) >= 0


def _settle_type(here: Entity) -> Entity:
    """Return the entity with the one of its Content-Type fields that its content confirms.

    That is a multipart whose delimiter is there, else one whose kind is there.
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
    """Return whether a body without a Content-Type is a closed multipart.

    The archives of Mailman before 2.1 keep only From, Date and Subject of a header.
    """
    first = _HEADLESS.match(raw, start, end)
    return first is not None and _find_closing(raw, first[1], first.end(), end)


def _goes_on(raw: bytes, delimiter: bytes, start: int, end: int) -> bool:
    """Return whether the next delimiter line below a closing one begins a part with a header."""
    found = raw.find(b"\n" + delimiter, start, end)
    return found >= 0 and _PART_HEADER.match(raw, found + 1 + len(delimiter), end) is not None


def split_multipart(
    raw: bytes, start: int, end: int, boundary: bytes
) -> list[tuple[int, int]] | None:
    """Return the spans between the delimiter lines of one multipart (RFC 2046 section 5.1.1).

    A delimiter line is the boundary between `--` and white space or the line end; text after the
    white space is ignored. None if no delimiter line begins a part; an empty list if there is only
    the closing one, without text above it. Parts below the closing one count too: a multipart
    inside has the same boundary, against RFC 2046.
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
