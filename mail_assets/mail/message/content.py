"""The decoded content of a MIME part: transfer encodings, charset, format=flowed.

What lives here: from the bytes of one part to what its sender wrote. What does not: finding the
parts (`mime`), the rules of charsets (`charsets`), and HTML (`html`).
"""

import binascii
import re

from mail_assets.mail.message.charsets import to_text
from mail_assets.mail.message.headers import from_base64
from mail_assets.mail.message.mime import Part

MAX_TEXT = 2 << 20  # characters of one decoded text

_META_CHARSET = re.compile(rb"""<meta[^>]{0,200}?charset=["']?([\w.:-]{1,40})""", re.I)
_UU_BEGIN = re.compile(rb"^begin [0-7]{3,4} [^\n]*\n", re.M)


def content(raw: bytes, part: Part) -> bytes:
    """The part's bytes with the transfer encoding undone."""
    data = raw[part.start : part.end]
    if part.encoding == "quoted-printable":
        return binascii.a2b_qp(data)
    if part.encoding == "base64":
        return from_base64(data)
    if part.encoding in ("x-uuencode", "uuencode", "x-uue", "uue"):
        return _from_uu(data)
    return data


def text_of(raw: bytes, part: Part) -> tuple[str, bool]:
    """The part as clean text with LF line ends, and whether it was cut at MAX_TEXT characters."""
    data = content(raw, part)
    if capped := len(data) > 4 * MAX_TEXT:
        # Cut behind a line, so that no character is cut in two.
        data = data[: data.rfind(b"\n", 0, 4 * MAX_TEXT) + 1 or 4 * MAX_TEXT]
    label = part.charset
    if not label and part.type == "text/html" and (meta := _META_CHARSET.search(data, 0, 4096)):
        label = meta[1].decode("ascii", "replace")
    text = to_text(data, label)
    if len(text) > MAX_TEXT:
        capped, text = True, text[:MAX_TEXT]
    return (unflow(text, delsp=part.delsp) if part.flowed else text), capped


def unflow(text: str, *, delsp: bool = False) -> str:
    """format=flowed to logical lines (RFC 3676 section 4).

    Quote marks stay in front of every line and space-stuffing is undone. The signature
    separator `-- ` and blank lines are never joined to their neighbours, though some senders
    leave a space at the end of a paragraph.
    """
    lines: list[str] = []
    paragraph: list[str] = []  # pieces of an open flowed line
    open_depth = 0
    for line in text.split("\n"):
        rest = line.lstrip(">")
        depth = len(line) - len(rest)
        rest = rest.removeprefix(" ")
        if paragraph and (depth != open_depth or rest == "-- " or not rest):
            lines.append("".join(paragraph))
            paragraph = []
        if not paragraph:
            paragraph.append(">" * depth + " " * bool(depth and rest))
            open_depth = depth
        flowed = rest.endswith(" ") and rest != "-- "
        paragraph.append(rest[:-1] if flowed and delsp else rest)
        if not flowed:
            lines.append("".join(paragraph))
            paragraph = []
    if paragraph:
        lines.append("".join(paragraph))
    return "\n".join(lines)


def _from_uu(data: bytes) -> bytes:
    """Tolerant uuencode: what stands between `begin` and `end`, broken lines left out."""
    begin = _UU_BEGIN.search(data)
    if begin is None:
        return data
    out = bytearray()
    for line in data[begin.end() :].split(b"\n"):
        if line.rstrip() == b"end":
            break
        try:
            out += binascii.a2b_uu(line.rstrip(b"\r"))
        except binascii.Error:
            continue
    return bytes(out)
