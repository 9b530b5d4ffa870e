"""Find the MIME parts of a raw message, as offsets into its bytes.

Tolerant by design and bounded everywhere: a missing or unclosed boundary or a thousand nested
multiparts give parts and flags, never an exception. Nothing recurses.
"""

import re
from typing import NamedTuple

from mail_assets.mail.message.encoded_words import unfold
from mail_assets.mail.message.headers import Headers, first_value, parse_header_block
from mail_assets.mail.message.multipart import MAX_PARTS, find_boundary, split_multipart
from mail_assets.mail.message.parameters import parse_parameters

MAX_DEPTH = 50
MAX_NAME = 255  # characters of a file name

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
            spans = split_multipart(raw, here.start, here.end, find_boundary(here.headers))
            if spans is not None:
                if len(spans) > MAX_PARTS:
                    flags.add("too_many_parts")
                group = here.group
                if media == "multipart/alternative" and not group:
                    groups += 1
                    group = groups
                default = "message/rfc822" if media == "multipart/digest" else "text/plain"
                inside = here._replace(group=group, default=default)
                stack += [_open(raw, span, inside) for span in reversed(spans[:MAX_PARTS])]
                continue
            flags.add("no_boundary")
            media = "text/plain"
        parts.append(_part(here, media))
        if media in _MESSAGE_TYPES and here.depth < MAX_DEPTH:
            inside = here._replace(group=0, nested=True, default="text/plain")
            stack.append(_open(raw, (here.start, here.end), inside))
    return MimeTree(headers, parts, body_start, flags)


def _open(raw: bytes, span: tuple[int, int], parent: _Open) -> _Open:
    """The entity at raw[start:end], which takes group, nested and default from its parent."""
    headers, start, _ = parse_header_block(raw, *span)
    return parent._replace(headers=headers, start=start, end=span[1], depth=parent.depth + 1)


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
