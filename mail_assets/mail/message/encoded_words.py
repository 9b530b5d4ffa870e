"""RFC 2047: header values with encoded words, as one line of clean text."""

import binascii
import re

from mail_assets.mail.message.charsets import decode_text
from mail_assets.mail.message.transfer_encoding import decode_base64

_FOLD = re.compile(rb"[\r\n]+[ \t]*")
# A question mark within the text should be encoded (RFC 2047 section 4.2) and now and then is not.
_WORD = re.compile(rb"=\?([^?\s]{1,60})\?([bBqQ])\?([^?]*+(?:(?<!=)\?(?!=)[^?]*+){0,4}+)\?=")
_QUOTED_WORD = re.compile(rb'"(=\?[^"]+\?=)"')


def unfold(value: bytes) -> bytes:
    """The value on one line (RFC 5322 section 2.2.3)."""
    return _FOLD.sub(b" ", value).strip() if b"\n" in value or b"\r" in value else value.strip()


def decode_value(value: bytes, fallback: str = "") -> str:
    """A field value as one line of clean text; fallback is the charset tried on raw 8-bit bytes.

    Adjacent words of one charset are joined as bytes first, since senders cut UTF-8 characters
    in two (against RFC 2047 section 5). Quotes around a word are dropped, as in
    `"=?utf-8?q?J=C3=B6rg?=" <j@example.org>`.
    """
    if value.isascii() and b"=?" not in value:  # so are nine values in ten
        text = value.decode("ascii")
        if text.isprintable() or (text := unfold(value).decode("ascii")).isprintable():
            return text.strip()
    return _decode(unfold(value), fallback)


def _decode(value: bytes, fallback: str) -> str:
    """An unfolded value, whatever it holds."""
    if b"=?" not in value:
        return to_one_line(decode_text(value, "", fallback))
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
        pending += decode_base64(word[3]) if word[2] in b"bB" else _from_q(word[3])
        label, at = charset, word.end()
    text += decode_text(bytes(pending), label, fallback), decode_text(value[at:], "", fallback)
    return to_one_line("".join(text))


def _from_q(data: bytes) -> bytes:
    return binascii.a2b_qp(data, header=True)


def to_one_line(text: str) -> str:
    """The text with spaces for line ends, and none around it."""
    return text.replace("\n", " ").strip() if "\n" in text else text.strip()
