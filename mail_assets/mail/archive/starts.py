"""Decide which candidates for From_ lines start a message.

Anybody can write a From_ line and a header into a body, and people attach whole archives. So a
candidate is compared with the others of its archive:

1. An archive is written in one form; the rare forms count only where its first line has them.
2. Lines inside what a trustworthy Content-Length spans are content.
3. A blank line stands in front where the dialect's writer leaves one. Real writers (Mailman 2,
   mutt) leave none behind a message whose last line has no end; such a start is known by what a
   body hardly fakes: the closing delimiter of the message in front, or a header with the trace
   of a relay.
4. Where no blank line is promised, a line that is written like no other of the archive is none.
5. What stands in a multipart that is closed further on is part of it.

What cannot be decided stays a start and is marked suspicious: nothing is lost.
"""

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from itertools import pairwise
from mmap import mmap
from typing import NamedTuple, TypeVar

from mail_assets.mail.archive.content_lengths import find_contents
from mail_assets.mail.archive.from_lines import FromLine, find_from_lines, find_top
from mail_assets.mail.archive.header_blocks import HeaderBlock, read_header
from mail_assets.mail.archive.open_multiparts import follows_closing_delimiter, is_inside_multipart

MOST_INSIDE = 16  # messages of an attached archive in which the end of the attachment is sought

#: Kinds of senders that the writers which promise no blank line give their lines: those of
#: postgresql.org's and Mailman's code, however rare in a month.
OWN_KINDS = {"pg": ("list", "word"), "pipermail": ("at", "word")}

#: A share of an archive's lines, or one line, may be written otherwise than the rest.
MAX_ODD = 0.02

#: Archives of a writer that leaves no blank line: so many messages, and so large a share.
MIN_OMITTED, MIN_OMITTED_SHARE = 3, 0.02

#: Lines of which the shape says something; of which sender and first field do: the three
#: messages of a month may come from two people.
MIN_SHAPES, MIN_WRITTEN = 3, 20

Value = TypeVar("Value", bound=Hashable)


class Start(NamedTuple):
    """Where a message starts: its From_ line at `offset`, its header at `header`."""

    offset: int
    header: int
    suspicious: bool  # perhaps no message but part of the one in front


def find_starts(data: bytes | mmap, dialect: str) -> list[Start]:
    """Return the starts of an archive's messages in order."""
    lines = of_one_form(find_from_lines(data), find_top(data))
    contents = find_contents(data, lines)
    lines = [line for line in lines if not contents.covers(line.offset)]
    return [*_drop_content(data, lines, _Writer(lines, dialect), dialect in ("mboxo", "mboxrd"))]


def of_one_form(lines: Sequence[FromLine], top: int) -> list[FromLine]:
    """Return the lines whose form can start a message in this archive.

    The lines of git format-patch occur unquoted, header and all, in messages that carry patches:
    they start messages only in an archive that has nothing else.
    """
    forms = {"asctime"}
    if lines and lines[0].offset == top:
        forms.add(lines[0].style.form)
    if any(line.style.form == "asctime" and line.after_blank for line in lines):
        forms.discard("git")
    return [line for line in lines if line.style.form in forms]


def often_omits_blank_lines(lines: Sequence[FromLine]) -> bool:
    """Return whether the archive itself shows a writer that leaves no blank lines.

    A single message can hold many lines: those that follow each other without a blank line count
    once, unless they are most of the archive.
    """
    similar = [
        (front.after_blank, line.after_blank)
        for front, line in pairwise(lines)
        if front.style.layout == line.style.layout
    ]
    omitted = sum(not blank for _, blank in similar)
    apart = sum(blank_before and not blank for blank_before, blank in similar)
    is_rule = omitted >= MIN_OMITTED and 2 * omitted > len(lines)
    return is_rule or apart >= max(MIN_OMITTED, MIN_OMITTED_SHARE * len(lines))


class _Writer:
    """How nearly all candidates of an archive are written, and what that says about one."""

    def __init__(self, lines: Sequence[FromLine], dialect: str) -> None:
        self._own_kinds = OWN_KINDS.get(dialect, ())
        self._shapes = Counter(map(self._shape, lines))
        self._usual_shape = _usual(self._shapes, MIN_SHAPES)
        self._sender = _usual(Counter(line.style.sender for line in lines), MIN_WRITTEN)
        # who posts decides what stands first, unless everything comes through one program
        fields = Counter(line.field for line in lines) if self._sender else Counter[bytes]()
        self._field = _usual(fields, MIN_WRITTEN)
        self.leaves_blank = not self._own_kinds
        self._often_omits = self.leaves_blank and often_omits_blank_lines(lines)

    def _shape(self, line: FromLine) -> Hashable:
        """Return what is the same in all lines of a writer; people's addresses differ."""
        return (line.style.kind, line.style.layout) if self._own_kinds else line.style.layout

    def is_odd(self, line: FromLine) -> bool:
        """Return whether a line is written otherwise than nearly all."""
        other_shape = self._usual_shape not in (None, self._shape(line))
        return other_shape or self._sender not in (None, line.style.sender)

    def starts_without_blank(self, line: FromLine, header: HeaderBlock) -> bool:
        """Return whether a line without a blank line in front may start a message."""
        if not self.leaves_blank:
            unique = self._shapes[self._shape(line)] == 1
            return not (unique and self.is_odd(line) and line.style.kind not in self._own_kinds)
        written = header.has_id and header.has_date and not self.is_odd(line)
        return written and (self._often_omits or header.is_relayed)

    def is_suspicious(self, line: FromLine, header: HeaderBlock) -> bool:
        """Return whether a start may be part of the message in front of it."""
        if self.leaves_blank:
            whole = line.after_blank and (header.has_date or header.has_id)
        else:
            whole = header.has_id and header.has_date
        return not whole or self.is_odd(line) or self._field not in (None, line.field)


def _drop_content(
    data: bytes | mmap, lines: Sequence[FromLine], writer: _Writer, quotes: bool
) -> Iterator[Start]:
    """Yield the lines that start a message; `quotes`: the writer quotes those that do not."""
    front: HeaderBlock | None = None
    begin = 0  # of that header
    ends = [line.offset for line in lines[1:]] + [len(data)]
    for index, line in enumerate(lines):
        at = line.offset
        header = read_header(data, line.end, ends[index])
        boundary = front.boundary if front and not (quotes and line.after_blank) else None
        known = front is None or line.after_blank or follows_closing_delimiter(data, boundary, at)
        if not (known or writer.starts_without_blank(line, header)):
            continue
        if boundary and not quotes:
            limit = lines[index + MOST_INSIDE].offset if index + MOST_INSIDE < len(lines) else None
            if is_inside_multipart(data, boundary, range(begin, at), limit or len(data)):
                continue
        begin, front = line.end, header
        yield Start(at, begin, writer.is_suspicious(line, front))


def _usual(counts: Counter[Value], least: int) -> Value | None:
    """Return the value that nearly all have, None where none has it or there are too few."""
    total = counts.total()
    if total < least:
        return None
    value, count = counts.most_common(1)[0]
    return value if count >= total - max(1, MAX_ODD * total) else None
