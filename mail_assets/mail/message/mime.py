"""MIME structure of a raw message: its leaf parts, as offsets into the bytes.

Tolerant by design and bounded everywhere: a missing or unclosed boundary or a thousand nested
multiparts give parts and flags, never an exception. Nothing recurses.
"""

import re
from typing import NamedTuple

from mail_assets.mail.message.encoded_words import unfold
from mail_assets.mail.message.headers import Headers, first_value, parse_header_block
from mail_assets.mail.message.parameters import parse_parameters

MAX_DEPTH = 50
MAX_PARTS = 2_000
MAX_DELIMITERS = 100_000  # of one multipart, those that only look like one included
MAX_NAME = 255  # characters of a file name

_BOUNDARY = re.compile(rb'[;\s]boundary[ \t]*=[ \t]*("(?:[^"\\]|\\.)*+"|[^;\s]*)', re.I)
_ESCAPED = re.compile(rb"\\(.)")
_TOKEN = re.compile(rb"[^\s;,()\"\x00]*")
_MESSAGE_TYPES = frozenset({"message/rfc822", "message/global"})


class Part(NamedTuple):
    """A leaf of the MIME tree, or an attached message (whose own parts follow it)."""

    type: str  # lower-case media type
    start: int  # of the encoded content in the raw message
    end: int
    encoding: str
    disposition: str
    filename: str
    charset: str
    flowed: bool
    delsp: bool
    group: int  # the outermost multipart/alternative around it, counted from 1; 0 outside of any
    nested: bool  # belongs to an attached message


class MimeTree(NamedTuple):
    """Parts of a message in order, and the names of the faults met on the way."""

    headers: Headers
    parts: list[Part]
    body_start: int
    flags: set[str]


class _Open(NamedTuple):
    """A part still to be looked into."""

    headers: Headers
    start: int
    end: int
    depth: int
    group: int
    nested: bool
    default: str  # media type without a Content-Type field (RFC 2046 section 5.1.5)


def parse_mime(raw: bytes) -> MimeTree:
    """Headers and leaf parts of a raw message; raises nothing, for any bytes."""
    headers, body_start, cut = parse_header_block(raw, 0, len(raw))
    flags = {"headers_capped"} if cut else set()
    if not headers:
        flags.add("no_headers")
    parts: list[Part] = []
    groups = 0
    stack = [_Open(headers, body_start, len(raw), 0, 0, False, "text/plain")]
    while stack:
        here = stack.pop()
        if len(parts) >= MAX_PARTS:
            flags.add("too_many_parts")
            break
        media = _media_type(here)
        if media.startswith("multipart/") and here.depth >= MAX_DEPTH:
            flags.add("too_deep")
        elif media.startswith("multipart/"):
            spans = _children(raw, here.start, here.end, _boundary(here.headers))
            if spans is not None:
                if len(spans) > MAX_PARTS:
                    flags.add("too_many_parts")
                group = here.group
                if media == "multipart/alternative" and not group:
                    groups += 1
                    group = groups
                default = "message/rfc822" if media == "multipart/digest" else "text/plain"
                stack += [
                    _open(raw, start, end, here.depth + 1, group, here.nested, default)
                    for start, end in reversed(spans[:MAX_PARTS])
                ]
                continue
            flags.add("no_boundary")
            media = "text/plain"
        parts.append(_part(here, media))
        if media in _MESSAGE_TYPES and here.depth < MAX_DEPTH:
            stack.append(_open(raw, here.start, here.end, here.depth + 1, 0, True, "text/plain"))
    return MimeTree(headers, parts, body_start, flags)


def _open(
    raw: bytes, start: int, end: int, depth: int, group: int, nested: bool, default: str
) -> _Open:
    headers, content_start, _ = parse_header_block(raw, start, end)
    return _Open(headers, content_start, end, depth, group, nested, default)


def _part(here: _Open, media: str) -> Part:
    kind = parse_parameters(first_value(here.headers, "content-type"))
    disposition = first_value(here.headers, "content-disposition")
    placed = parse_parameters(disposition) if disposition else {}
    name = placed.get("filename") or kind.get("name") or placed.get("name") or ""
    return Part(
        type=media,
        start=here.start,
        end=here.end,
        encoding=_token(first_value(here.headers, "content-transfer-encoding")),
        disposition=_token(disposition),
        filename=name[:MAX_NAME],
        charset=kind.get("charset", ""),
        flowed=kind.get("format", "").lower() == "flowed",
        delsp=kind.get("delsp", "").lower() == "yes",
        group=here.group,
        nested=here.nested,
    )


def _media_type(here: _Open) -> str:
    media = _token(first_value(here.headers, "content-type"))
    if media.count("/") == 1 and len(media) < 128:
        return media
    return "text/plain" if media else here.default


def _token(value: bytes) -> str:
    """The word in front of the parameters, in lower case."""
    word = _TOKEN.match(unfold(value))
    return word[0].lower().decode("ascii", "replace") if word else ""


def _boundary(headers: Headers) -> bytes:
    value = unfold(first_value(headers, "content-type"))
    found = _BOUNDARY.search(value)
    if found:
        return _ESCAPED.sub(rb"\1", found[1].strip(b'"')).rstrip()
    return parse_parameters(value).get("boundary", "").encode()  # an RFC 2231 continuation


def _children(raw: bytes, start: int, end: int, boundary: bytes) -> list[tuple[int, int]] | None:
    """Spans between the delimiter lines of one multipart (RFC 2046 section 5.1.1).

    None without a delimiter line; an empty list where only the closing one stands.
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
        at = after = found + len(delimiter)
        if found > start and raw[found - 1] != 10:
            continue
        closing = raw.startswith(b"--", after, end)
        line_end = raw.find(b"\n", after, end)
        if not closing and raw[after : line_end if line_end >= 0 else end].strip():
            continue  # a longer boundary that begins with this one
        any_line = True
        if open_at >= 0:
            line_break = 2 if raw.startswith(b"\r\n", found - 2) else 1
            spans.append((open_at, max(open_at, found - line_break)))
        if closing or line_end < 0:
            break
        at = open_at = line_end + 1
    return spans if any_line else None
