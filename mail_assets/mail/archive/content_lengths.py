"""What Content-Length fields span, where a writer keeps them (the mboxcl dialects of System V).

Messages bring the field along from elsewhere too, and anybody can write one: it counts only in an
archive where nearly all messages have it and it leads exactly to the next From_ line.
"""

import re
from bisect import bisect_right
from collections.abc import Sequence
from mmap import mmap
from typing import NamedTuple

from mail_assets.mail.archive.from_lines import FromLine
from mail_assets.mail.archive.header_blocks import HeaderBlock, read_header

#: The field of so many messages, and of this share, must lead to a From_ line or the end.
MIN_RIGHT, MIN_SHARE = 2, 0.9

_LENGTH = re.compile(rb"\ncontent-length[ \t]{0,8}:[ \t]{0,8}(\d{1,12})\r?(?:\n|$)", re.I)


class Contents(NamedTuple):
    """Spans of bodies, in order and apart from each other."""

    begins: list[int]
    ends: list[int]

    def covers(self, offset: int) -> bool:
        """Return whether an offset lies inside of a body."""
        index = bisect_right(self.begins, offset) - 1
        return index >= 0 and offset < self.ends[index]


def find_contents(data: bytes | mmap, lines: Sequence[FromLine]) -> Contents:
    """Return the bodies that Content-Length spans; none where the field cannot be trusted."""
    if not lines:
        return Contents([], [])
    ends = [line.offset for line in lines[1:]] + [len(data)]
    starts = {*ends}
    contents = Contents([], [])
    seen = 0
    for line, end in zip(lines, ends, strict=True):
        if contents.covers(line.offset):
            continue
        seen += 1
        if body := _body(data, read_header(data, line.end, end), starts):
            contents.begins.append(body[0])
            contents.ends.append(body[1])
        elif seen == MIN_RIGHT and not contents.begins:
            break  # the first messages have none: most archives end here
    if len(contents.begins) < max(MIN_RIGHT, MIN_SHARE * seen):
        return Contents([], [])
    return contents


def _body(data: bytes | mmap, header: HeaderBlock, starts: set[int]) -> tuple[int, int] | None:
    """Return the span of the body behind a header if its length leads to a start or the end."""
    length = _LENGTH.search(header.fields)
    if length is None or header.body is None:
        return None
    end = header.body + int(length[1])
    behind = (end, end + 1, end + 2) if data[end : end + 1] in (b"\n", b"\r") else (end,)
    return (header.body, end) if any(place in starts for place in behind) else None
