"""Write single messages as an mbox of the dialect mboxrd, byte for byte as public-inbox does.

Its From_ line tells nothing, so the same messages in the same order are the same file.
https://www.loc.gov/preservation/digital/formats/fdd/fdd000385.shtml
"""

import re

FROM_LINE = b"From mboxrd@z Thu Jan  1 00:00:00 1970\n"

_QUOTED = re.compile(rb"^(?=>*+From )", re.MULTILINE)
# Lines that an mbox left in front of the header: public-inbox drops them too (Mbox.pm, msg_hdr).
_ENVELOPE = re.compile(rb"(?:[\r\n]*+>?From [^\n]*+\n)*+")
_FIELD = re.compile(rb"[!-9;-~]{1,256}[ \t]{0,8}:")
# Readers of mbox files know a message by the field behind its From_ line; without one the
# message would be the tail of the one in front.
_NO_HEADER = b"X-No-Header: this message has none\n\n"


def strip_envelope(raw: bytes) -> bytes:
    """Return a message without the From_ lines that stand in front of its header."""
    return raw[_ENVELOPE.match(raw).end() :]  # type: ignore[union-attr]  # it matches nothing, too


def format_message(raw: bytes) -> bytes:
    """Return a message as an mboxrd file has it: From_ line, quoted lines, and a blank line.

    A message without a header gets the field X-No-Header; nothing else is changed.
    """
    raw = strip_envelope(raw)
    if not _FIELD.match(raw):
        raw = _NO_HEADER + raw
    end = b"\n" if raw.endswith(b"\n") else b"\n\n"
    return FROM_LINE + _QUOTED.sub(b">", raw) + end
