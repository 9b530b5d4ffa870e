"""Header blocks: finding the fields of one and reading their values.

Fields stay raw bytes until somebody asks: decoding first would let an encoded comma or angle
bracket pass for syntax. What a field means is read in `ids`, `addresses`, `dates` and `subjects`.
"""

import re
from collections import defaultdict

from mail_assets.mail.message.encoded_words import decode_value

MAX_BLOCK = 1 << 20  # bytes of one header block
MAX_VALUE = 64 << 10  # bytes of one field value

Headers = dict[str, list[bytes]]  # lower-case name -> raw values in order, still folded

_KEPT = (
    rb"message-id|in-reply-to|references|from|sender|reply-to|to|cc|subject|date|received|"
    rb"author|original-from|x-original-from|x-original-sender|"
    rb"list-id|list-post|mailing-list|x-beenthere|x-mailing-list|"
    rb"content-type|content-transfer-encoding|content-disposition"
)
_USUAL_NAMES = {
    spelling.encode(): name
    for name in _KEPT.decode().split("|")
    for spelling in (name, name.title(), name.title().replace("-Id", "-ID"), name.upper())
}
# The line end in front lets the engine jump from line to line: half the time of `^` with re.M.
_FIELD = re.compile(
    rb"\n(?=[acdfilmorstx])(" + _KEPT + rb")[ \t]*+:[ \t]*+([^\n]*+(?:\n[ \t][^\n]*+)*+)", re.I
)
_FIRST_LINE = re.compile(rb">?From |[!-9;-~]+[ \t]*:|[ \t]+[!-9;-~]+[ \t]*:")
_BLOCK_END = re.compile(rb"\n\r?\n")
# The common cases first: it is asked of every line of every header.
_FIELD_LINE = rb"[ \t]|[\w-]{1,100}+:|[!-9;-~]{1,500}+[ \t]{0,100}+:|>?From "
_NO_FIELD = re.compile(rb"\n(?!" + _FIELD_LINE + rb")")  # a blank line too
_TEXT = re.compile(rb"\n(?!" + _FIELD_LINE + rb"|[\r\n])")
# A value that was folded without a space, not the body: another field is close below it.
_FIELD_BELOW = re.compile(
    rb"\n(?:[^\n]*+\n(?:[ \t][^\n]*+\n){0,50}+){1,3}?(?:"
    + _KEPT
    + rb"|mime-version|return-path|delivered-to|(?:content|dkim|x)-[\w-]{1,100}+)[ \t]{0,100}+:",
    re.I,
)


def parse_header_block(raw: bytes, start: int, end: int) -> tuple[Headers, int, bool]:
    """Fields of the header block at raw[start:end], where the body starts, and whether it was cut.

    Without a header block all of it is body. A line that can be no field ends the block as a
    blank line does, and is the first of the body.
    """
    if raw.startswith((b"\n", b"\r\n"), start, end):
        return {}, start + (1 if raw[start] == 10 else 2), False
    if not _FIRST_LINE.match(raw, start, end):
        return {}, start, False
    stop, body = _find_end(raw, start, end)
    cut = stop - start > MAX_BLOCK
    fields = _FIELD.findall(b"\n" + raw[start : min(stop, start + MAX_BLOCK)])
    if stop - start > MAX_VALUE and any(len(value) > MAX_VALUE for _, value in fields):
        cut, fields = True, [(name, value[:MAX_VALUE]) for name, value in fields]
    headers: defaultdict[str, list[bytes]] = defaultdict(list)
    for name, value in fields:
        headers[_USUAL_NAMES.get(name) or name.lower().decode()].append(value)
    return dict(headers), body, cut


def _find_end(raw: bytes, start: int, end: int) -> tuple[int, int]:
    """Where the fields of a header block end, and where the body begins."""
    line = _NO_FIELD.search(raw, start, end)
    blank = _BLOCK_END.match(raw, line.start(), end) if line else None
    if blank is None:  # text stands among the fields or behind them
        blank = _BLOCK_END.search(raw, start, end)
        if text := _find_text(raw, start, blank.start() if blank else end):
            return text, text
    return blank.span() if blank else (end, end)


def _find_text(raw: bytes, start: int, stop: int) -> int | None:
    """Where the body begins in a header block without a blank line behind it."""
    if stop - start > MAX_BLOCK:
        stop = raw.rfind(b"\n", start, start + MAX_BLOCK)
    for line in _TEXT.finditer(raw, start, stop):
        if line.end() < stop and not _FIELD_BELOW.match(raw, line.start(), stop):
            return line.end()
    return None


def first_value(headers: Headers, name: str) -> bytes:
    """The first value of a field, b"" where there is none."""
    values = headers.get(name)
    return values[0] if values else b""


def decode_fields(headers: Headers, name: str, fallback: str = "") -> list[str]:
    """All values of a field, decoded."""
    return [decode_value(value, fallback) for value in headers.get(name, ())]


def decode_field(headers: Headers, name: str, fallback: str = "") -> str:
    """The first value of a field, decoded; "" where there is none."""
    return decode_value(first_value(headers, name), fallback)
