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

[from_lines] Find the lines of an archive that may be From_ lines, whatever stands around them.

A candidate begins with `From `, has one of the five forms below, and the line behind it looks like
a header field. Which candidates start a message is decided in starts.py by comparing them.

    asctime  From jo@example.org Mon Jan  5 15:18:12 2026   the usual one; zones may be added
    rfc822   From jo@example.org Mon, 5 Jan 2026 15:18:12 +0000   some exports
    bare     From, or From -                                some exports of Thunderbird
    undated  From jo@example.org, From 1844347792267@xxx, or the number alone   Google's exports
    git      From 4f1c... Mon Sep 17 00:00:00 2001          the first line of git format-patch

[header_blocks] Look into the header of a message that is still part of its archive, quickly.

This runs for every message of every archive, before parsing: literal searches on a few kilobytes.

[content_lengths] What Content-Length fields span, where a writer keeps them (the mboxcl dialects of System V).

Messages bring the field along from elsewhere too, and anybody can write one: it counts only in an
archive where nearly all messages have it and it leads exactly to the next From_ line.

[open_multiparts] Whether a multipart message is still open at a place, by its outermost boundary.
"""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from mmap import mmap
from typing import NamedTuple, TypeVar

BOM = b"\xef\xbb\xbf"

_WEEKDAY = rb"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? {1,4}"
_MONTH = rb"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_TIME = rb"\d\d:\d\d(?::\d\d)?"
# Every repetition is bounded. The engine looks for the six bytes in front at 1.6 GB/s, mmap.find
# at 1.2; the first line of a file has no line end in front.
_LINE = (
    rb"From (?:([0-9a-f]{7,64}) Mon Sep 17 00:00:00 2001[^\n]{0,40}"
    rb"|([^\n]{0,200}?)" + _WEEKDAY + rb"(?:"
    rb"" + _MONTH + rb" {1,4}\d{1,2} {1,4}" + _TIME + rb"([^\n]{0,30}? \d{4}(?!\d)[^\n]{0,40})"
    rb"|(\d{1,2}) " + _MONTH + rb" \d{4} {1,4}" + _TIME + rb"[^\n]{0,40})"
    rb"|(?:-|(-?\d{5,20}|[^\s@]{1,100}@[^\s@]{1,100}))?[ \t]{0,8}\r?)"
    # relays of UUCP left a line of their own each: `>From jo Mon Jan  5 15:18 1987 remote from x`
    rb"(?=\n(?:>From [^\n]{1,300}\n){0,8}?>?([!-9;-~]{1,256})[ \t]{0,8}:)"
)
_FIRST = re.compile(_LINE)
_NEXT = re.compile(rb"\n" + _LINE)

_BLANK = re.compile(rb"[\r\n]{0,64}+")
_LIST = re.compile(rb"owner|bounces?[-+@=]|-request@|\+archive@", re.I)
_LETTERS_AND_DIGITS = bytes(c for c in range(128) if chr(c).isalnum())


class Style(NamedTuple):
    """How a From_ line is written.

    `kind` is that of the sender: "list" (the list's own envelope), "address", "at" (`jo at
    example.org`, in any language) or "word". `layout` is what a writer does the same way in every
    line: whether it hides addresses, blanks behind the sender, and the signs around the year.
    """

    form: str
    sender: bytes
    kind: str
    layout: tuple[bool, int, bytes]


class FromLine(NamedTuple):
    """A line that may be a From_ line, and what stands around it."""

    offset: int
    end: int  # of the line: where the message begins
    style: Style
    field: bytes  # the name of the field behind it, in lower case
    after_blank: bool  # a blank line or nothing is in front


def find_top(data: bytes | mmap) -> int:
    """Return where an archive begins: behind a byte order mark and blank lines."""
    begin = len(BOM) if data[: len(BOM)] == BOM else 0
    blank = _BLANK.match(data, begin)
    return blank.end() if blank else begin


def find_from_lines(data: bytes | mmap) -> list[FromLine]:
    """Return all candidates of an archive in order."""
    top = find_top(data)
    first = _FIRST.match(data, top)
    lines = [_from_line(first, top, True)] if first else []
    for match in _NEXT.finditer(data, top):
        offset = match.start() + 1
        # one line end behind another, or CRLF behind one
        before = data[max(0, offset - 3) : offset - 1]
        lines.append(_from_line(match, offset, before.endswith(b"\n") or before == b"\n\r"))
    return lines


def _from_line(match: re.Match[bytes], offset: int, after_blank: bool) -> FromLine:
    *written, field = match.groups()
    return FromLine(offset, match.end() + 1, _style(*written), field.lower(), after_blank)


@lru_cache(maxsize=4096)
def _style(
    commit: bytes | None,
    sender: bytes | None,
    year: bytes | None,
    day: bytes | None,
    alone: bytes | None,
) -> Style:
    """Return the style of a line; `year` is what stands behind an asctime date."""
    name = (sender or b"").rstrip()
    undated = "git" if commit else "undated" if alone else "bare"
    dated = "rfc822" if day else "asctime"
    form = undated if sender is None else dated
    kind = _kind(name)
    signs = (year or b"").translate(None, _LETTERS_AND_DIGITS).rstrip()
    return Style(form, name, kind, (kind == "at", len(sender or b"") - len(name), signs))


def _kind(sender: bytes) -> str:
    if b"@" in sender:
        return "list" if _LIST.search(sender) else "address"
    return "at" if b" " in sender.strip() else "word"


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


MAX_LINE = 80  # bytes; a boundary has at most 70 (RFC 2046 section 5.1.1)


def follows_closing_delimiter(data: bytes | mmap, boundary: bytes | None, offset: int) -> bool:
    """Return whether the line in front of `offset` closes a multipart of this boundary."""
    if boundary is None:
        return False
    line = data[max(0, offset - MAX_LINE) : offset].rstrip(b"\r\n").rpartition(b"\n")[2]
    return line == b"--" + boundary + b"--"


def is_inside_multipart(
    data: bytes | mmap, boundary: bytes | None, message: range, limit: int
) -> bool:
    """Return whether a multipart is closed behind a message and in front of `limit`, not within.

    `message` is where it stands if it ends at the candidate in question. A message that was cut
    off stays open; a copy of it behind it names the boundary first.
    """
    if boundary is None or data.rfind(b"\n--" + boundary + b"--", message.start, message.stop) >= 0:
        return False
    found = data.find(boundary, message.stop, limit)
    while found >= 0 and data[found - 3 : found] == b"\n--":
        end = found + len(boundary)
        if data[end : end + 2] == b"--":
            return True
        found = data.find(boundary, end, limit)
    return False


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
