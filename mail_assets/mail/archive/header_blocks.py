"""Look into the header of a message that is still part of its archive, quickly.

This runs for every message of every archive, before parsing: literal searches on a few kilobytes.
"""

import re
from mmap import mmap
from typing import NamedTuple

MAX_HEADER = 64 << 10  # bytes that are looked at

_ID = re.compile(rb"\nmessage-id[ \t]{0,8}:", re.I)
_DATE = re.compile(rb"\ndate[ \t]{0,8}:", re.I)
_RECEIVED = re.compile(rb"\nreceived[ \t]{0,8}:", re.I)
_BOUNDARY = re.compile(
    rb"\ncontent-type[ \t]{0,8}:[ \t\r\n]{0,8}multipart/[^\r\n]{0,200}"
    rb"(?:\r?\n[ \t][^\r\n]{0,200}){0,8}?"
    rb"(?<=[;\s])boundary[ \t]{0,8}=[ \t]{0,8}(?:\"([^\"\r\n]{1,70})\"|([^\s;\"]{1,70}))",
    re.I,
)


class HeaderBlock(NamedTuple):
    """A header as written: a line end in front of each field, none behind the last.

    `body` is where the body begins, None where no blank line was found.
    """

    fields: bytes
    body: int | None

    @property
    def has_id(self) -> bool:
        """Whether it has a Message-ID."""
        return b"\nMessage-ID:" in self.fields or _ID.search(self.fields) is not None

    @property
    def has_date(self) -> bool:
        """Whether it has a Date."""
        return b"\nDate:" in self.fields or _DATE.search(self.fields) is not None

    @property
    def is_relayed(self) -> bool:
        """Whether a relay left its trace in it."""
        return _RECEIVED.search(self.fields) is not None

    @property
    def boundary(self) -> bytes | None:
        """The outermost boundary of a multipart message, None for any other."""
        if b"ultipart/" not in self.fields:
            return None
        named = _BOUNDARY.search(self.fields)
        return (named[1] or named[2]) if named else None


def read_header(data: bytes | mmap, at: int, end: int) -> HeaderBlock:
    """Return the header whose first field is at `at`, behind a line end, and not behind `end`."""
    begin, limit = at - 1, min(end, at - 1 + MAX_HEADER)
    line_end = data.find(b"\n", at, limit)
    blank = b"\n\r\n" if data[line_end - 1 : line_end] == b"\r" else b"\n\n"
    found = data.find(blank, begin, limit)
    if found < 0:
        return HeaderBlock(data[begin:limit], None)
    return HeaderBlock(data[begin:found], found + len(blank))
