"""Header blocks (RFC 5322): fields, encoded words (RFC 2047), parameters (RFC 2231).

Fields stay raw bytes until somebody needs them: decoding first would let an encoded comma or angle
bracket pass for syntax. Modules named after the fields interpret them: ids, addresses, dates,
authors.
"""

import binascii
import re
from collections.abc import Mapping
from functools import lru_cache
from itertools import groupby
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

    Adjacent words of one charset are joined as bytes first, since senders cut UTF-8 characters
    in two (against RFC 2047 section 5). Quotes around a word are dropped, as in
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
# The same grouped by first letters, which matches a tenth faster
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
# The common cases first: every line of every header is matched.
_FIELD_LINE = rb"[ \t]|[\w-]{1,100}+:|[!-9;-~]{1,500}+[ \t]{0,100}+:|>?From "
_NO_FIELD = re.compile(rb"\n(?!" + _FIELD_LINE + rb")")  # or a blank line
_TEXT = re.compile(rb"\n(?!" + _FIELD_LINE + rb"|[\r\n])")
# A value folded without a space, not the body: another field is close below it.
_FIELD_BELOW = re.compile(
    rb"\n(?:[^\n]*+\n(?:[ \t][^\n]*+\n){0,50}+){1,3}?(?:"
    + _KEPT
    + rb"|mime-version|return-path|delivered-to|(?:content|dkim|x)-[\w-]{1,100}+)[ \t]{0,100}+:",
    re.I,
)


def parse_header_block(raw: bytes, start: int, end: int) -> tuple[Headers, int, bool]:
    """Return the fields of the block at raw[start:end], the body's offset, and whether it was cut.

    Without a header block all is body. A line that cannot be a field ends the block like a blank
    line, and is the first of the body.
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
    if blank is None:  # there is text among the fields or after them
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
    """Return the first value of a field, b"" without one."""
    values = headers.get(name)
    return values[0] if values else b""


def decode_fields(headers: Headers, name: str) -> list[str]:
    """Return all values of a field, decoded."""
    return [decode_value(value) for value in headers.get(name, ())]


def decode_field(headers: Headers, name: str, fallback: str = "") -> str:
    """Return the first value of a field, decoded; "" without one."""
    return decode_value(first_value(headers, name), fallback)


# --- parameters ---

# Bounded repetitions keep it linear: 64 KiB of one letter or of `a="\\"` would cost minutes.
_PARAMETER = re.compile(
    rb"(?<![\w*-])([\w*-]{1,100}+)[ \t]{0,20}=[ \t]{0,20}"
    rb'("(?:[^"\\]|\\.){0,2000}+"|"[^";]*|[^;\s]*)',
    re.S,
)
# More words of a file name without quotes, as Lotus Domino wrote it; no further parameter
_MORE_WORDS = re.compile(rb"(?:[ \t]{1,20}(?![\w*-]{1,100}[ \t]{0,20}=)[^;\s\"]{1,255}+){1,50}+")
_FILE_NAMES = frozenset({"name", "filename", "name*", "filename*"})
_ESCAPED = re.compile(rb"\\([\"\\])")  # not a folder's backslash


@lru_cache(maxsize=512)  # the values of a list repeat
def parse_parameters(value: bytes) -> Mapping[str, str]:
    """Return the parameters of Content-Type or Content-Disposition by lower-case name.

    RFC 2231 continuations are joined and percent-encoding is undone. RFC 2047 words, which are
    common against the standard, are decoded. `text/plain charset=x` without the semicolon is read,
    and so is a file name with blanks and without quotes.
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
