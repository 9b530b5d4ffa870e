"""Parse header blocks (RFC 5322): fields, encoded words (RFC 2047), parameters (RFC 2231).

Fields stay raw bytes until they are needed. Decoding them first would turn an encoded comma or
angle bracket into syntax. Modules named after the fields interpret them: ids, addresses, dates.

The first lines of a message may be damaged. Exports, mail programs and copies put lines above a
header: a byte order mark, blank lines, a banner, the end of a From_ line. They break a header with
a blank line, or write the whole file in UTF-16 or with other line ends. Lines count as a header
only if they have the names of its fields. Below a whole header, text that shows another header
stays text.
"""

import binascii
import codecs
import re
from collections.abc import Mapping
from functools import lru_cache
from itertools import groupby
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

from mail_assets.mail.message.decoding import decode_base64, decode_text

# --- values ---

_FOLD = re.compile(rb"[\r\n]+[ \t]*")
# A question mark in the text should be encoded (RFC 2047 section 4.2) but sometimes is not. QQ Mail
# folds the line within a word.
_WORD = re.compile(
    rb"=\?[ \t]?([^?\s]{1,60})[ \t]?\?[ \t]?([bBqQ])[ \t]?\?"
    rb"([^?]*+(?:(?<!=)\?(?!=)[^?]*+){0,4}+)\?="
)
_QUOTED_WORD = re.compile(rb'"(=\?[^"]+\?=)"')


def unfold(value: bytes) -> bytes:
    """Return the value on one line (RFC 5322 section 2.2.3)."""
    return _FOLD.sub(b" ", value).strip() if b"\n" in value or b"\r" in value else value.strip()


def decode_value(value: bytes, fallback: str = "") -> str:
    """Return a field value as one line of clean text; `fallback` is the charset of raw 8-bit bytes.

    Adjacent words of one charset are joined as bytes first, because senders cut UTF-8 characters in
    two (against RFC 2047 section 5). Quotes around a word are dropped, as in
    `"=?utf-8?q?J=C3=B6rg?=" <j@example.org>`.
    """
    if value.isascii() and b"=?" not in value:  # nine values in ten
        text = value.decode("ascii")
        if text.isprintable() or (text := unfold(value).decode("ascii")).isprintable():
            return text.strip()
    return _decode(unfold(value), fallback)


def _decode(value: bytes, fallback: str) -> str:
    if b"=?" not in value:
        return _to_one_line(decode_text(value, "", fallback))
    value = _QUOTED_WORD.sub(rb"\1", value)
    text: list[str] = []
    pending, label, at = bytearray(), "", 0
    for word in _WORD.finditer(value):
        gap, charset = value[at : word.start()], word[1].decode("ascii", "replace").lower()
        if gap.strip() or charset != label:
            text.append(decode_text(bytes(pending), label, fallback))
            pending.clear()
        if gap.strip() or at == 0:
            text.append(decode_text(gap, "", fallback))
        pending += (
            decode_base64(word[3]) if word[2] in b"bB" else binascii.a2b_qp(word[3], header=True)
        )
        label, at = charset, word.end()
    text += decode_text(bytes(pending), label, fallback), decode_text(value[at:], "", fallback)
    return _to_one_line("".join(text))


def _to_one_line(text: str) -> str:
    return text.replace("\n", " ").strip() if "\n" in text else text.strip()


# --- header blocks ---

MAX_BLOCK = 1 << 20  # bytes of one header block
MAX_VALUE = 64 << 10  # bytes of one field value

Headers = dict[str, list[bytes]]  # lower-case name -> raw values in order, still folded

_KEPT = (
    rb"message-id|in-reply-to|references|from|sender|reply-to|to|cc|subject|date|received|"
    rb"author|original-from|x-original-from|x-original-sender|"
    rb"list-id|list-post|mailing-list|x-beenthere|x-mailing-list|"
    rb"content-type|content-transfer-encoding|content-disposition"
)
KNOWN_NAMES = rb"(?:" + _KEPT + rb")"  # a pattern
# The same names grouped by first letter, which matches a tenth faster
_BY_LETTER = "|".join(
    f"{letter}(?:{'|'.join(name[1:] for name in names)})"
    for letter, names in groupby(sorted(_KEPT.decode().split("|")), lambda name: name[0])
).encode()
_USUAL_NAMES = {
    spelling.encode(): name
    for name in _KEPT.decode().split("|")
    for spelling in (name, name.title(), name.title().replace("-Id", "-ID"), name.upper())
}
# The line end at the start lets the engine jump from line to line: half the time of `^` with re.M.
_FIELD = re.compile(
    rb"\n(?=[acdfilmorstx])(" + _BY_LETTER + rb")[ \t]*+:[ \t]*+([^\n]*+(?:\n[ \t][^\n]*+)*+)", re.I
)
_FIRST_LINE = re.compile(rb">?From |[!-9;-~]+[ \t]*:|[ \t]+[!-9;-~]+[ \t]*:")
_BLOCK_END = re.compile(rb"\n\r?\n")
# Common cases first, because every line of every header is matched.
_FIELD_LINE = rb"[ \t]|[\w-]{1,100}+:|[!-9;-~]{1,500}+[ \t]{0,100}+:|>?From "
_NO_FIELD = re.compile(rb"\n(?!" + _FIELD_LINE + rb")")  # blank lines match too
_TEXT = re.compile(rb"\n(?!" + _FIELD_LINE + rb"|[\r\n])")
# A line with another field close below it is a value folded without a space, not the body.
_FIELD_BELOW = re.compile(
    rb"\n(?:[^\n]*+\n(?:[ \t][^\n]*+\n){0,50}+){1,3}?(?:"
    + _KEPT
    + rb"|mime-version|return-path|delivered-to|(?:content|dkim|x)-[\w-]{1,100}+)[ \t]{0,100}+:",
    re.I,
)


def parse_header_block(raw: bytes, start: int, end: int) -> tuple[Headers, int, bool]:
    """Return the fields of the block at raw[start:end], the offset of the body, and if it was cut.

    Without a header block all is body. A line that cannot be a field ends the block like a blank
    line, and is the first line of the body.
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
    headers: Headers = {}
    usual = _USUAL_NAMES
    for written, value in fields:
        name = usual.get(written) or written.lower().decode()
        if name in headers:
            headers[name].append(value)
        else:
            headers[name] = [value]
    return headers, body, cut


def _find_end(raw: bytes, start: int, end: int) -> tuple[int, int]:
    line = _NO_FIELD.search(raw, start, end)
    blank = _BLOCK_END.match(raw, line.start(), end) if line else None
    if blank is None:  # text follows a field or the fields
        blank = _BLOCK_END.search(raw, start, end)
        if text := _find_text(raw, start, blank.start() if blank else end):
            return text, text
    return blank.span() if blank else (end, end)


def _find_text(raw: bytes, start: int, stop: int) -> int | None:
    # a header block without a blank line below
    if stop - start > MAX_BLOCK:
        stop = raw.rfind(b"\n", start, start + MAX_BLOCK)
    for line in _TEXT.finditer(raw, start, stop):
        if line.end() < stop and not _FIELD_BELOW.match(raw, line.start(), stop):
            return line.end()
    return None


def first_value(headers: Headers, name: str) -> bytes:
    """Return the first value of a field, or b"" without one."""
    values = headers.get(name)
    return values[0] if values else b""


def decode_fields(headers: Headers, name: str) -> list[str]:
    """Return all values of a field, decoded."""
    return [decode_value(value) for value in headers.get(name, ())]


def decode_field(headers: Headers, name: str, fallback: str = "") -> str:
    """Return the first value of a field, decoded, or "" without one."""
    return decode_value(first_value(headers, name), fallback)


def decode_subject(headers: Headers, fallback: str = "") -> str:
    """Return the subject, decoded, or "" without one.

    If a list's name has accents, Mailman puts it before the subject and encodes the whole again,
    including encoded words; such a subject is decoded twice.
    """
    value = first_value(headers, "subject")
    text = decode_value(_with_begin(value), fallback)
    if "=?" in text and b"=?" in value:
        return decode_value(_with_begin(text.encode("utf-8", "replace")), fallback)
    return text


# a list's tag replaced the beginning of the first word: "[dev] ?==?utf-8?q?crane?="
_CUT_WORD = re.compile(rb"\?=(=\?[\w-]{1,40}\?[bBqQ]\?)")
_OPEN_WORD = re.compile(rb"=\?[\w-]{1,40}\?[bBqQ]\?[^?]*\Z")


def _with_begin(value: bytes) -> bytes:
    """Return a value without the end of an encoded word whose beginning is missing."""
    cut = _CUT_WORD.search(value) if b"?==?" in value else None
    if cut is None or _OPEN_WORD.search(value, 0, cut.start()):
        return value
    value = value[: cut.start()] + b" " + value[cut.start(1) :]
    return value + b"?=" if _OPEN_WORD.search(value) else value


# --- parameters ---

# Limits keep it linear: otherwise 64 KiB of one letter or of `a="\\"` would take minutes.
_PARAMETER = re.compile(
    rb"(?<![\w*-])([\w*-]{1,100}+)[ \t]{0,20}=[ \t]{0,20}"
    rb'("(?:[^"\\]|\\.){0,2000}+"|"[^";]*|[^;\s]*)',
    re.S,
)
# More words of a file name without quotes, by Lotus Domino; not another parameter
_MORE_WORDS = re.compile(rb"(?:[ \t]{1,20}(?![\w*-]{1,100}[ \t]{0,20}=)[^;\s\"]{1,255}+){1,50}+")
_FILE_NAMES = frozenset({"name", "filename", "name*", "filename*"})
_ESCAPED = re.compile(rb"\\([\"\\])")  # not the backslash of a folder


@lru_cache(maxsize=512)  # the values of a list repeat
def parse_parameters(value: bytes) -> Mapping[str, str]:
    """Return the parameters of Content-Type or Content-Disposition by lower-case name.

    RFC 2231 continuations are joined and percent-encoding is undone. RFC 2047 words, common against
    the standard, are decoded. `text/plain charset=x` without the semicolon is read, and so is an
    unquoted file name with blanks.
    """
    value = unfold(value[:MAX_VALUE])
    _, _, rest = value.partition(b";" if b";" in value else b" ")
    plain: dict[str, str] = {}
    pieces: dict[str, dict[int, tuple[bool, bytes]]] = {}
    for parameter in _PARAMETER.finditer(rest):
        key, data = parameter.groups()
        name = key.decode("ascii", "replace").lower()
        if data[:1] == b'"':
            data = _ESCAPED.sub(rb"\1", data.strip(b'"'))
        elif name in _FILE_NAMES and (more := _MORE_WORDS.match(rest, parameter.end())):
            data += more[0]
        base, star, index = name.removesuffix("*").partition("*")
        encoded = name.endswith("*")
        if encoded or (star and index.isdecimal()):
            number = int(index[:6]) if index.isdecimal() else 0
            pieces.setdefault(base, {})[number] = (encoded, data)
        else:
            plain.setdefault(name, decode_value(data))
    return plain | {base: _joined(by_index) for base, by_index in pieces.items()}


def _joined(pieces: dict[int, tuple[bool, bytes]]) -> str:
    """Join RFC 2231 pieces; the first may begin with `charset'language'`."""
    label, joined = "", bytearray()
    for number, (_, (encoded, data)) in enumerate(sorted(pieces.items())):
        if encoded:
            charset, *rest = data.split(b"'", 2)
            # some programs repeat the charset in every piece
            if len(rest) == 2 and (number == 0 or charset.decode("ascii", "replace") == label):
                label, data = charset.decode("ascii", "replace"), rest[1]
            data = unquote_to_bytes(data)
        joined += data
    return _to_one_line(decode_text(bytes(joined), label))


MAX_ABOVE = 16 << 10  # bytes that are searched for the first line of a header
MAX_BANNER = 5  # lines of words above a header
MAX_RUNS = 20  # blocks of fields above a header
MAX_HEADER = 64 << 10  # bytes of such a block that are searched for fields
MAX_BREAKS = 5  # blank lines inside a header
MIN_FIELDS, MIN_FIELDS_BELOW_WORDS = 2, 3  # minimum of known fields if a header begins late

_WHOLE = frozenset({"from", "date", "subject", "message-id"})
# Fields that occur once in a header (RFC 5322 section 3.6); text that shows a header repeats them
_ONCE = _WHOLE | {
    *("sender", "reply-to", "to", "cc", "in-reply-to", "references", "list-id"),
    *("content-type", "content-transfer-encoding", "content-disposition"),
}
_MIME = frozenset({"content-type", "content-transfer-encoding", "content-disposition"})
# A header that a server or wrapper puts around a message has none of these.
_OWN = frozenset({"from", "subject", "message-id", "to", "received"})

_NAME = KNOWN_NAMES + rb"[ \t]{0,100}:"
_ANY_NAME = rb"[!-9;-~]{1,256}[ \t]{0,8}:"
_KNOWN_FIELD = re.compile(_NAME, re.I)
_ANY_FIELD = re.compile(_ANY_NAME + rb"|>?From ")
_FOLDED = re.compile(rb"[ \t]+[^\s]")
_MIME_FIELD = re.compile(rb"(?:mime-version|content-[a-z-]{1,40}+)[ \t]{0,8}:", re.I)
# Fields that only programs write; people do not paste them
_TRACE = rb"(?:message-id|received|mime-version|return-path|delivered-to|x-[\w-]{1,100}+|"
_TRACE += rb"dkim-signature|list-id|content-transfer-encoding)[ \t]{0,8}:"
_FIELDS = re.compile(rb"^(?:" + _NAME + rb"|" + _TRACE + rb")", re.I | re.M)
_MACHINE = re.compile(rb"^" + _TRACE, re.I | re.M)
# Invisible bytes: Unicode marks, one of them encoded twice; NUL; blank lines
_UNSEEN = re.compile(
    rb"(?:\xef\xbb\xbf|\xc3\xaf\xc2\xbb\xc2\xbf|\xe2\x80\x8b|[\0\x0c\x1a]|[ \t]*+\r?\n|"
    rb"(?:[ \t]|\xc2\xa0)++(?=" + _NAME + rb"))*+",
    re.I,
)
# Apple Mail writes the size of a message in bytes before it, and a property list after it.
_COUNT = re.compile(rb"(\d{1,10})[ \t]*\r?\n")
_PROPERTY_LIST = re.compile(rb"\s*<\?xml ")
# The end of a From_ line that was cut
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
# Lines of a header with a blank line below each
_DOUBLED = re.compile(rb"(?:(?:" + _ANY_NAME + rb"|[ \t]+[^\s])[^\n]*+\n\r?\n){4}")
# Mail sources put it above a file without a header, so that mbox readers find the message.
NO_HEADER = b"X-No-Header: this message has none\n\n"


class Beginning(NamedTuple):
    """Header of a message, and the message in which it was found."""

    source: bytes  # the raw message, or its text with other line ends or in UTF-8
    headers: Headers
    body: int  # offset in source
    cut: bool  # the block or a value was longer than its limit
    repaired: bool  # the header did not begin in the first line, or was broken
    in_utf_8: bool  # all of source is UTF-8 text, even if its parts name another charset


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
    return bool(_KNOWN_FIELD.match(raw, at, end) or _MIME_FIELD.match(raw, at, end))


def find_header(raw: bytes, start: int, end: int) -> tuple[Headers, int, bool, bool]:
    """Return fields, offset of the body, whether values were cut, and whether it was repaired.

    The header is that of the message at raw[start:end], and may begin late.
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
    """Return the start of a header below other lines, or `start` if there is none."""
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
        return False  # the next line is text
    gained = (_WHOLE - headers.keys()) & more.keys()
    has_type = "content-type" in more and not _MIME & headers.keys()
    return bool(gained or has_type) and len(_FIELDS.findall(block)) >= MIN_FIELDS


def _normalize(raw: bytes) -> tuple[bytes, bool]:
    """Return the message in UTF-8 with LF line ends, and whether all of it is UTF-8."""
    source, in_utf_8 = _decode_source(raw)
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


def _decode_source(raw: bytes) -> tuple[bytes, bool]:
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
