"""Parameters of Content-Type and Content-Disposition, with the extensions of RFC 2231."""

import re
from collections.abc import Mapping
from functools import lru_cache
from urllib.parse import unquote_to_bytes

from mail_assets.mail.message.charsets import decode_text
from mail_assets.mail.message.encoded_words import decode_value, to_one_line, unfold
from mail_assets.mail.message.headers import MAX_VALUE

# Bounded repetitions: without them 64 KiB of one letter or of `a="\\"` cost minutes.
_PARAMETER = re.compile(
    rb"(?<![\w*-])([\w*-]{1,100}+)[ \t]{0,20}=[ \t]{0,20}"
    rb'("(?:[^"\\]|\\.){0,2000}+"|"[^";]*|[^;\s]*)',
    re.S,
)
_ESCAPED = re.compile(rb"\\(.)", re.S)


@lru_cache(maxsize=512)  # mail programs write the same few
def parse_parameters(value: bytes) -> Mapping[str, str]:
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
            plain.setdefault(name, decode_value(data))
    return plain | {base: _joined(by_index) for base, by_index in pieces.items()}


def _joined(pieces: dict[int, tuple[bool, bytes]]) -> str:
    """The value of RFC 2231 pieces, the first of which may say `charset'language'`."""
    label, joined = "", bytearray()
    for number, (_, (encoded, data)) in enumerate(sorted(pieces.items())):
        if encoded:
            charset, *rest = data.split(b"'", 2)
            # some programs say the charset in every piece
            if len(rest) == 2 and (number == 0 or charset.decode("ascii", "replace") == label):
                label, data = charset.decode("ascii", "replace"), rest[1]
            data = unquote_to_bytes(data)
        joined += data
    return to_one_line(decode_text(bytes(joined), label))
