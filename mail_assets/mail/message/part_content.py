"""The decoded content of a MIME part: its bytes, or its text."""

import re
from typing import NamedTuple

from mail_assets.mail.message.charsets import decode
from mail_assets.mail.message.flowed import unflow
from mail_assets.mail.message.part import Part
from mail_assets.mail.message.transfer_encoding import decode_transfer, split_off_footer

MAX_TEXT = 2 << 20  # characters of one decoded text

_META_CHARSET = re.compile(rb"""<meta[^>]{0,200}?charset=["']?([\w.:-]{1,40})""", re.I)


class DecodedText(NamedTuple):
    """Clean text with LF line ends; whether it was cut at MAX_TEXT, and its charset guessed."""

    text: str
    capped: bool
    guessed: bool


def decode_part(part: Part) -> bytes:
    """The part's bytes with the transfer encoding undone."""
    return decode_transfer(_encoded(part)[0], part.encoding)


def decode_part_text(part: Part, usual: str = "") -> DecodedText:
    """The part as text; `usual` is the charset of its list, for mail that names none."""
    encoded, footer = _encoded(part)
    data = decode_transfer(encoded, part.encoding)
    if capped := len(data) > 4 * MAX_TEXT:
        # Cut behind a line, so that no character is cut in two.
        data = data[: data.rfind(b"\n", 0, 4 * MAX_TEXT) + 1 or 4 * MAX_TEXT]
    label = part.charset
    if not label and part.type == "text/html" and (meta := _META_CHARSET.search(data, 0, 4096)):
        label = meta[1].decode("ascii", "replace")
    text, guessed = decode(data, label, part.fallback, usual)
    if footer:
        below = decode(footer, "" if text else label, part.fallback, usual)
        text, guessed = f"{text}\n" * bool(text) + below.text, guessed or below.guessed
    if len(text) > MAX_TEXT:
        capped, text = True, text[:MAX_TEXT]
    if part.flowed:
        text = unflow(text, delsp=part.delsp)
    return DecodedText(text, capped, guessed)


def _encoded(part: Part) -> tuple[bytes, bytes]:
    """The encoded content, and the plain footer behind base64 text, which is not encoded."""
    data = part.source[part.start : part.end]
    is_encoded_text = part.encoding == "base64" and part.type.startswith("text/")
    return split_off_footer(data) if is_encoded_text else (data, b"")
