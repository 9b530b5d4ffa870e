"""Find and read the header of a message whose first lines are damaged.

Exports, mail programs and copies put lines above a header (a byte order mark, blank lines, a
banner, the rest of a From_ line), break it with a blank line, or write the whole file in UTF-16
or with other line ends. Lines count as the header only by the names of its fields: text that shows
a header stays text, below any header that is whole.
"""

import codecs
import re
from typing import NamedTuple

from mail_assets.mail.message.headers import (
    KNOWN_NAMES,
    Headers,
    first_value,
    parse_header_block,
)

MAX_ABOVE = 16 << 10  # bytes above a header in which its first line is sought
MAX_BANNER = 5  # lines of words above a header
MAX_RUNS = 20  # blocks of fields above a header
MAX_HEADER = 64 << 10  # bytes in which the fields of such a block are sought
MAX_BREAKS = 5  # blank lines inside a header
MIN_FIELDS, MIN_FIELDS_BELOW_WORDS = 2, 3  # known fields of a header that begins late

_WHOLE = frozenset({"from", "date", "subject", "message-id"})
# Fields that a header has once (RFC 5322 section 3.6), which text that shows a header repeats
_ONCE = _WHOLE | {
    *("sender", "reply-to", "to", "cc", "in-reply-to", "references", "list-id"),
    *("content-type", "content-transfer-encoding", "content-disposition"),
}
_MIME = frozenset({"content-type", "content-transfer-encoding", "content-disposition"})
# A protocol's header around a message, as servers and wrappers write it, has none of these.
_OWN = frozenset({"from", "subject", "message-id", "to", "received"})

_NAME = KNOWN_NAMES + rb"[ \t]{0,100}:"
_ANY_NAME = rb"[!-9;-~]{1,256}[ \t]{0,8}:"
_FIELD = re.compile(_NAME, re.I)
_ANY_FIELD = re.compile(_ANY_NAME + rb"|>?From ")
_FOLDED = re.compile(rb"[ \t]+[^\s]")
_MIME_FIELD = re.compile(rb"(?:mime-version|content-[a-z-]{1,40}+)[ \t]{0,8}:", re.I)
# Fields that programs write and people do not paste
_TRACE = rb"(?:message-id|received|mime-version|return-path|delivered-to|x-[\w-]{1,100}+|"
_TRACE += rb"dkim-signature|list-id|content-transfer-encoding)[ \t]{0,8}:"
_FIELDS = re.compile(rb"^(?:" + _NAME + rb"|" + _TRACE + rb")", re.I | re.M)
_MACHINE = re.compile(rb"^" + _TRACE, re.I | re.M)
# Nothing that a reader sees: marks of Unicode, one of them encoded twice; NUL; blank lines
_UNSEEN = re.compile(
    rb"(?:\xef\xbb\xbf|\xc3\xaf\xc2\xbb\xc2\xbf|\xe2\x80\x8b|[\0\x0c\x1a]|[ \t]*+\r?\n|"
    rb"(?:[ \t]|\xc2\xa0)++(?=" + _NAME + rb"))*+",
    re.I,
)
# Apple Mail counts the bytes of the message in front of it, and adds a property list after it.
_COUNT = re.compile(rb"(\d{1,10})[ \t]*\r?\n")
_PROPERTY_LIST = re.compile(rb"\s*<\?xml ")
# The rest of a From_ line that was cut
_CUT_FROM_LINE = re.compile(rb"[^\n]{0,200}?\d\d:\d\d(?::\d\d)?[^\n]{0,20} \d{4}[^\n]{0,40}\n")

_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_UTF_16 = {
    "utf-16-le": re.compile(rb"(?:[\t\r\n -~]\0){4}"),
    "utf-16-be": re.compile(rb"(?:\0[\t\r\n -~]){4}"),
}
_CR_FIELD = re.compile(rb"\r" + _NAME, re.I)
_LONE_CR = re.compile(rb"\r\n?")
_DOUBLE_CR = re.compile(rb"(?<!\r)\r++\n")
_BLANK_LINE_BETWEEN = re.compile(rb"\n\r?\n")
# Lines of a header, each with a blank line below
_DOUBLED = re.compile(rb"(?:(?:" + _ANY_NAME + rb"|[ \t]+[^\s])[^\n]*+\n\r?\n){4}")
# The sources put it above a file that has no header, so that readers of mbox files keep it apart.
NO_HEADER = b"X-No-Header: this message has none\n\n"


class Beginning(NamedTuple):
    """Header of a message, and the message in which it was found."""

    source: bytes  # the raw message, or its text with other line ends or in UTF-8
    headers: Headers
    body: int  # offset in source
    cut: bool  # the block or a value was longer than its limit
    repaired: bool  # the header did not begin in the first line, or was broken
    in_utf_8: bool  # all of source is text in UTF-8, whatever charset its parts name


def read_beginning(raw: bytes) -> Beginning:
    """Return the header of a message; never raises."""
    headers, body, cut = parse_header_block(raw, 0, len(raw))
    if "from" in headers and ("date" in headers or "subject" in headers):
        is_doubled = raw.endswith(b"\r\r", 0, raw.find(b"\n"))
        if not is_doubled and not _goes_on(raw, headers, body):
            return Beginning(raw, headers, body, cut, False, False)
    source, in_utf_8 = _normalize(raw)
    headers, body, cut, repaired = find_header(source, 0, len(source))
    repaired = bool(headers) and (repaired or source is not raw)
    return Beginning(source, headers, body, cut, repaired, in_utf_8)


def _goes_on(raw: bytes, headers: Headers, body: int) -> bool:
    is_whole = "date" in headers and "subject" in headers and "message-id" in headers
    if is_whole and raw[body : body + 1] not in b"mMcC\r\n":  # nearly all mail
        return False
    return _is_field(raw, _skip_unseen(raw, body, len(raw)), len(raw))


def _is_field(raw: bytes, at: int, end: int) -> bool:
    return bool(_FIELD.match(raw, at, end) or _MIME_FIELD.match(raw, at, end))


def find_header(raw: bytes, start: int, end: int) -> tuple[Headers, int, bool, bool]:
    """Return fields, offset of the body, whether values were cut, and whether it was repaired.

    The header is that of the message at raw[start:end], which may begin late.
    """
    headers, body, cut = parse_header_block(raw, start, end)
    if _OWN & headers.keys():
        begin = _skip_unseen(raw, start, end)  # blanks before the first field
    else:
        begin = start if _is_multipart(headers) else _find_late(raw, start, end)
    if repaired := begin > start:
        headers, body, cut = parse_header_block(raw, begin, end)
    for _ in range(MAX_BREAKS):
        below = _skip_unseen(raw, body, end)
        if not headers or not _is_field(raw, below, end):
            break
        more, next_body, more_cut = parse_header_block(raw, below, end)
        if not _continues(headers, more, raw[below:next_body], next_body == end):
            break
        headers = {
            name: [*headers.get(name, ()), *more.get(name, ())] for name in [*headers, *more]
        }
        body, cut, repaired = next_body, cut or more_cut, True
    return headers, body, cut, repaired


def _is_multipart(headers: Headers) -> bool:
    return first_value(headers, "content-type")[:10].lower() == b"multipart/"


def _skip_unseen(raw: bytes, start: int, end: int) -> int:
    return _UNSEEN.match(raw, start, end).end()  # type: ignore[union-attr]  # it always matches


def _find_late(raw: bytes, start: int, end: int) -> int:
    """Return where a header begins below other lines; `start` if no lines must be one."""
    top = start + len(NO_HEADER) if raw.startswith(NO_HEADER, start, end) else start
    at = top = _skip_unseen(raw, top, end)
    stop = min(end, top + MAX_ABOVE)
    words, runs, in_field = 0, 0, False
    while at < stop and words <= MAX_BANNER:
        is_field = _ANY_FIELD.match(raw, at, end) is not None
        if is_field and not in_field and runs < MAX_RUNS:
            runs += 1
            headers, body, _ = parse_header_block(raw, at, min(end, at + MAX_HEADER))
            if at == top and len(headers) >= MIN_FIELDS and _OWN & headers.keys():
                return at
            sure = len(headers) >= MIN_FIELDS_BELOW_WORDS and "from" in headers
            if sure and (not words or _MACHINE.search(raw, at, body)):
                return at
        line_end = raw.find(b"\n", at, end)
        if line_end < 0:
            break
        in_field = is_field or (in_field and _FOLDED.match(raw, at, end) is not None)
        is_blank = not raw[at : min(line_end, stop)].strip()
        words += not (in_field or is_blank or (at == top and _is_remnant(raw, at, end)))
        at = line_end + 1
    return start


def _is_remnant(raw: bytes, at: int, end: int) -> bool:
    return bool(_COUNT.match(raw, at, end) or _CUT_FROM_LINE.match(raw, at, end))


def _continues(headers: Headers, more: Headers, block: bytes, is_last: bool) -> bool:
    """Return whether a block below a blank line is the rest of the header above it."""
    if _ONCE & headers.keys() & more.keys():
        return False
    if not (is_last or block.endswith((b"\n\n", b"\n\r\n"))):
        return False  # text follows in the next line
    gained = (_WHOLE - headers.keys()) & more.keys()
    has_type = "content-type" in more and not _MIME & headers.keys()
    return bool(gained or has_type) and len(_FIELDS.findall(block)) >= MIN_FIELDS


def _normalize(raw: bytes) -> tuple[bytes, bool]:
    """Return the message in UTF-8 and with usual line ends, and whether all of it is UTF-8."""
    source, in_utf_8 = _decode(raw)
    count = _COUNT.match(source)
    if count and _PROPERTY_LIST.match(source, size := count.end() + int(count[1])):
        source = source[count.end() : size]
    line_end = source.find(b"\n")
    if _CR_FIELD.search(source, 0, min(line_end if line_end >= 0 else len(source), MAX_ABOVE)):
        source = _LONE_CR.sub(b"\n", source)
    elif source.endswith(b"\r\r\n", 0, line_end + 1):
        source = _DOUBLE_CR.sub(b"\n", source)
    doubled = _DOUBLED.match(source, _skip_unseen(source, 0, len(source)))
    if doubled and len(_FIELDS.findall(doubled[0])) >= MIN_FIELDS:
        source = _BLANK_LINE_BETWEEN.sub(b"\n", source)
    return source, in_utf_8


def _decode(raw: bytes) -> tuple[bytes, bool]:
    text = raw.removeprefix(NO_HEADER)
    codec = next((name for mark, name in _MARKS if text.startswith(mark)), None)
    codec = codec or next((name for name, shape in _UTF_16.items() if shape.match(text)), None)
    if codec:
        whole = text[: len(text) - len(text) % 2]
        return whole.decode(codec, "replace").encode("utf-8", "replace"), True
    return raw, text.startswith(codecs.BOM_UTF8) and _is_utf_8(text)


def _is_utf_8(text: bytes) -> bool:
    try:
        text.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
