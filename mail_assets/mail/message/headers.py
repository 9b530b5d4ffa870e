"""Header blocks: finding the fields, unfolding them, RFC 2047 words, RFC 2231 parameters.

What lives here: the syntax that all header fields share. What does not: what a field means
(`ids`, `addresses`, `dates`, `subjects`).

Fields stay raw bytes until somebody asks: decoding first would let an encoded comma or angle
bracket pass for syntax.
"""

import binascii
import re
from urllib.parse import unquote_to_bytes

from mail_assets.mail.message.charsets import to_text

MAX_BLOCK = 1 << 20  # bytes of one header block
MAX_VALUE = 64 << 10  # bytes of one field value

Headers = dict[str, list[bytes]]  # lower-case name -> raw values in order, still folded

_KEPT = (
    rb"message-id|in-reply-to|references|from|sender|reply-to|x-original-from|to|cc|subject|date|"
    rb"received|list-id|x-mailing-list|content-type|content-transfer-encoding|content-disposition"
)
# The line end in front lets the engine jump from line to line: half the time of `^` with re.M.
_FIELD = re.compile(
    rb"\n(?=[cdfilmrstx])(" + _KEPT + rb")[ \t]*+:[ \t]*+([^\n]*+(?:\n[ \t][^\n]*+)*+)", re.I
)
_FIRST_LINE = re.compile(rb">?From |[!-9;-~]+[ \t]*:|[ \t]+[!-9;-~]+[ \t]*:")
_BLOCK_END = re.compile(rb"\n\r?\n")
_FOLD = re.compile(rb"[\r\n]+[ \t]*")
_WORD = re.compile(rb"=\?([^?\s]{1,60})\?([bBqQ])\?([^?]*)\?=")
_QUOTED_WORD = re.compile(rb'"(=\?[^"]+\?=)"')
_NOT_BASE64 = re.compile(rb"[^A-Za-z0-9+/]+")
# Bounded repetitions: without them 64 KiB of one letter or of `a="\\"` cost minutes.
_PARAMETER = re.compile(
    rb"(?<![\w*-])([\w*-]{1,100}+)[ \t]{0,20}=[ \t]{0,20}"
    rb'("(?:[^"\\]|\\.){0,2000}+"|"[^";]*|[^;\s]*)',
    re.S,
)
_ESCAPED = re.compile(rb"\\(.)", re.S)


def read_block(raw: bytes, start: int, end: int) -> tuple[Headers, int, bool]:
    """Fields of the header block at raw[start:end], where the body starts, and whether it was cut.

    Without a header block all of it is body; a block without a blank line behind it has no body.
    """
    if raw.startswith((b"\n", b"\r\n"), start, end):
        return {}, start + (1 if raw[start] == 10 else 2), False
    if not _FIRST_LINE.match(raw, start, end):
        return {}, start, False
    blank = _BLOCK_END.search(raw, start, end)
    stop, body = (blank.start(), blank.end()) if blank else (end, end)
    cut = stop - start > MAX_BLOCK
    headers: Headers = {}
    for name, value in _FIELD.findall(b"\n" + raw[start : min(stop, start + MAX_BLOCK)]):
        cut = cut or len(value) > MAX_VALUE
        headers.setdefault(name.lower().decode(), []).append(value[:MAX_VALUE])
    return headers, body, cut


def first(headers: Headers, name: str) -> bytes:
    """The first value of a field, b"" where there is none."""
    values = headers.get(name)
    return values[0] if values else b""


def unfold(value: bytes) -> bytes:
    """The value on one line (RFC 5322 section 2.2.3)."""
    return _FOLD.sub(b" ", value).strip() if b"\n" in value or b"\r" in value else value.strip()


def decode(value: bytes, fallback: str = "") -> str:
    """A field value as one line of clean text; fallback is the charset tried on raw 8-bit bytes.

    Adjacent words of one charset are joined as bytes first, since senders cut UTF-8 characters
    in two (against RFC 2047 section 5). Quotes around a word are dropped, as in
    `"=?utf-8?q?J=C3=B6rg?=" <j@example.org>`.
    """
    value = unfold(value)
    if (plain := _plain(value)) is not None:
        return plain
    if b"=?" not in value:
        return _one_line(to_text(value, "", fallback))
    value = _QUOTED_WORD.sub(rb"\1", value)
    text: list[str] = []
    pending, label, at = bytearray(), "", 0
    for word in _WORD.finditer(value):
        gap, charset = value[at : word.start()], word[1].decode("ascii", "replace").lower()
        if gap.strip() or charset != label:
            text.append(to_text(bytes(pending), label, fallback))
            pending.clear()
        if gap.strip() or at == 0:
            text.append(to_text(gap, "", fallback))
        pending += from_base64(word[3]) if word[2] in b"bB" else _from_q(word[3])
        label, at = charset, word.end()
    text += to_text(bytes(pending), label, fallback), to_text(value[at:], "", fallback)
    return _one_line("".join(text))


def _plain(value: bytes) -> str | None:
    """An unfolded value that needs no decoding, None for any other.

    Nine values in ten are printable ASCII without an encoded word; looking here first takes a
    third of the time off `decode`.
    """
    if not value.isascii() or b"=?" in value:
        return None
    text = value.decode("ascii")
    return text.strip() if text.isprintable() else None


def texts(headers: Headers, name: str, fallback: str = "") -> list[str]:
    """All values of a field, decoded."""
    return [decode(value, fallback) for value in headers.get(name, ())]


def text(headers: Headers, name: str, fallback: str = "") -> str:
    """The first value of a field, decoded; "" where there is none."""
    return decode(first(headers, name), fallback)


def parameters(value: bytes) -> dict[str, str]:
    """Parameters of Content-Type or Content-Disposition by lower-case name.

    RFC 2231 continuations are joined and percent-encoding is undone; RFC 2047 words, which do
    not belong here but are common, are decoded. `text/plain charset=x` without the semicolon
    occurs.
    """
    value = unfold(value[:MAX_VALUE])
    _, _, rest = value.partition(b";" if b";" in value else b" ")
    plain: dict[str, str] = {}
    pieces: dict[str, dict[int, tuple[bool, bytes]]] = {}
    for key, data in _PARAMETER.findall(rest):
        name = key.decode("ascii", "replace").lower()
        if data[:1] == b'"':
            data = _ESCAPED.sub(rb"\1", data.strip(b'"'))
        base, star, index = name.removesuffix("*").partition("*")
        encoded = name.endswith("*")
        if encoded or (star and index.isdecimal()):
            number = int(index[:6]) if index.isdecimal() else 0
            pieces.setdefault(base, {})[number] = (encoded, data)
        else:
            plain.setdefault(name, decode(data))
    return plain | {base: _joined(by_index) for base, by_index in pieces.items()}


def _joined(pieces: dict[int, tuple[bool, bytes]]) -> str:
    """The value of RFC 2231 pieces, the first of which may say `charset'language'`."""
    label, joined = "", bytearray()
    for number, (_, (encoded, data)) in enumerate(sorted(pieces.items())):
        if encoded:
            if number == 0 and data.count(b"'") >= 2:
                charset, _, data = data.split(b"'", 2)
                label = charset.decode("ascii", "replace")
            data = unquote_to_bytes(data)
        joined += data
    return _one_line(to_text(bytes(joined), label))


def from_base64(data: bytes) -> bytes:
    """Tolerant base64: junk is skipped, missing padding added, a lone last character dropped."""
    try:
        return binascii.a2b_base64(data)
    except binascii.Error:
        data = _NOT_BASE64.sub(b"", data)
        data = data[: len(data) - (len(data) % 4 == 1)]
        return binascii.a2b_base64(data + b"=" * (-len(data) % 4))


def _from_q(data: bytes) -> bytes:
    return binascii.a2b_qp(data, header=True)


def _one_line(text: str) -> str:
    return text.replace("\n", " ").strip() if "\n" in text else text.strip()
