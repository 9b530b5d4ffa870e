"""Decide which From_ lines of an mbox start a message (RFC 4155 and the older dialects).

Anybody can write a From_ line and a header into a body, and people attach whole archives. So the
candidates of an archive are compared with each other:

1. A program writes one form of From_ line. A line that has neither the form of the first line nor
   the usual form needs evidence: a whole header below a blank line, and in addition fields of a
   mail store or a relay, or neighbours of the same form. Other forms are possible because mailboxes
   are appended to each other and programs change: Thunderbird wrote `From - date`, and now writes
   `From ` alone.
2. Lines inside the span of a trustworthy Content-Length are content.
3. If the dialect has blank lines, one precedes each message. But Mailman 2 and mutt add none after
   a message whose last line has no line end. So a start without a blank line needs evidence that a
   body rarely has: a closing MIME delimiter directly above, or a header with Received.
4. If the dialect has no blank lines, a line unlike all others in the archive is content.
5. Lines in a multipart that is closed further down are content.

A doubtful candidate remains a start and is marked suspicious, so that no mail is lost.
"""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Hashable, Iterator, Sequence
from functools import lru_cache
from itertools import groupby, pairwise
from mmap import mmap
from typing import NamedTuple, TypeVar

BOM = b"\xef\xbb\xbf"

# --- From_ lines ---
#
# A candidate begins with `From ` and has one of seven forms. The next line is a header field. A
# crash may leave zero bytes before it, and concatenation a byte order mark or the end mark of DOS.
# A line end may be CR CR LF if it was converted twice.
#
#     asctime  From jo@example.org Mon Jan  5 15:18:12 2026   the usual one; zones may be added
#     rfc822   From jo@example.org Mon, 5 Jan 2026 15:18:12 +0000   some exports
#     bare     From, or From -                                some exports of Thunderbird
#     undated  From jo@example.org, From 1844347792267@xxx, or the number alone   Google's exports
#              From MAILER-DAEMON, From nobody Thu Jan 1 1970   without a time
#     other    From jo@example.org 2026-01-05 15:18          any other line with a time
#     late     a line of one of these forms with a blank line between it and the header
#     git      From 4f1c... Mon Sep 17 00:00:00 2001          the first line of git format-patch

_WEEKDAY = rb"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? {1,4}"
_MONTH = rb"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_TIME = rb"\d{1,2}:\d\d(?::\d\d)?"
_DAY = (
    rb"(?:(?:" + _WEEKDAY + rb")?(?:" + _MONTH + rb" {1,4}\d{1,2}|\d{1,2} {1,4}" + _MONTH + rb"),?"
    rb" {1,4}\d{4}|\d{4}-\d\d-\d\d)"
)
# Each repetition is bounded, so that the search is linear.
_REST = (
    rb"(?:([0-9a-f]{7,64}) Mon Sep 17 00:00:00 2001[^\n]{0,40}"
    rb"|([^\n]{0,200}?)" + _WEEKDAY + rb"(?:"
    rb"" + _MONTH + rb" {1,4}\d{1,2} {1,4}" + _TIME + rb"([^\n]{0,30}? \d{4}(?!\d)[^\n]{0,40})"
    rb"|(\d{1,2}) " + _MONTH + rb" \d{4} {1,4}" + _TIME + rb"[^\n]{0,40})"
    rb"|(?:-|(-?\d{5,20}|[^\s@]{1,100}@[^\s@]{1,100}|MAILER-DAEMON|"
    rb"[^\s]{0,100} {1,4}" + _DAY + rb"))?[ \t]{0,8}\r{0,3}"
    rb"|([^\s:][^\n:]{0,150}?\b\d{1,2}:\d\d\b[^\n]{0,80}))"
    rb"(\n[ \t]{0,80}\r{0,3}(?=\n))?"  # form late: an unexpected blank line
    # each UUCP relay added a line: `>From jo Mon Jan  5 15:18 1987 remote from x`
    rb"(?=\n(?:>From [^\n]{1,300}\n){0,8}?>?([!-9;-~]{1,256})[ \t]{0,8}:)"
)
_FIRST = re.compile(rb"From " + _REST)
# the pattern begins with a literal, for which the engine searches
_NEXT = re.compile(rb"From (?<=[\n\0\x1a\xbf]From )" + _REST)

_LINE_ENDS = b"\r\n"
_JUNK = b"\0\x1a"  # zero bytes of a crash, and the end mark of DOS
_BLANK = re.compile(rb"[\r\n\0\x1a]{0,64}+")
# Line ends or junk above a line that follows a blank line.
_AFTER_BLANK = (
    b"\n\n",
    b"\n\r\n",
    b"\n\r\r\n",
    b"\n\r\r\r\n",
    b"\0\n",
    b"\0\r\n",
    b"\x1a\n",
    b"\x1a\r\n",
)
_RUN = 64 << 10  # bytes searched for zero bytes at a time
_LIST = re.compile(rb"owner|bounces?[-+@=]|-request@|\+archive@", re.I)
_LETTERS_AND_DIGITS = bytes(c for c in range(128) if chr(c).isalnum())


class Style(NamedTuple):
    """The style of a From_ line."""

    form: str
    sender: bytes
    kind: str  # of the sender: "list" (its envelope), "address", "at" (`jo at host`) or "word"
    # equal in all lines of one writer: addresses are hidden, blanks after the sender, signs at year
    layout: tuple[bool, int, bytes]


class FromLine(NamedTuple):
    """A candidate: a line that may be a From_ line."""

    offset: int
    end: int  # of the line: where the message begins
    style: Style
    field: bytes  # name of the field in the next line, in lower case
    after_blank: bool  # below a blank line or junk, or first in the file
    foreign: bool = False  # form differs from the archive's own forms


def _find_top(data: bytes | mmap) -> int:
    begin = len(BOM) if data[: len(BOM)] == BOM else 0
    blank = _BLANK.match(data, begin)
    return blank.end() if blank else begin


def _find_from_lines(data: bytes | mmap) -> list[FromLine]:
    top = _find_top(data)
    first = _FIRST.match(data, top)
    lines = [_from_line(first, top, True)] if first else []
    for match in _NEXT.finditer(data, first.end() if first else top):
        offset = match.start()
        before = data[max(0, offset - 8) : offset]
        if before.endswith(b"\n\n") or before.endswith(_AFTER_BLANK):
            lines.append(_from_line(match, offset, True))
        elif before.endswith(b"\n"):
            lines.append(_from_line(match, offset, False))
        elif skip_junk_back(data, offset) < offset:
            lines.append(_from_line(match, offset, True))
    return lines


def is_usual(message: bytes) -> bool:
    """Return whether a message begins with a From_ line of the usual form."""
    first = _FIRST.match(message)
    return first is not None and _from_line(first, 0, True).style.form == "asctime"


def skip_junk_back(data: bytes | mmap, offset: int) -> int:
    """Return the offset of the zero bytes, end marks and byte order mark before an offset."""
    while offset and data[offset - 1] in _JUNK:
        block = data[max(0, offset - _RUN) : offset]
        offset -= len(block) - len(block.rstrip(_JUNK))
    return offset - len(BOM) if data[max(0, offset - len(BOM)) : offset] == BOM else offset


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
    other: bytes | None,
    blank: bytes | None,
) -> Style:
    """Return the style of a line; `year` is the text after an asctime date."""
    name = (sender or b"").rstrip()
    undated = "git" if commit else "undated" if alone else "other" if other else "bare"
    dated = "rfc822" if day else "asctime"
    form = "late" if blank else undated if sender is None else dated
    kind = _kind(name)
    signs = (year or b"").translate(None, _LETTERS_AND_DIGITS).rstrip()
    return Style(form, name, kind, (kind == "at", len(sender or b"") - len(name), signs))


def _kind(sender: bytes) -> str:
    if b"@" in sender:
        return "list" if _LIST.search(sender) else "address"
    return "at" if b" " in sender.strip() else "word"


# --- headers, searched in the archive before any parsing ---

MAX_HEADER = 64 << 10  # bytes searched

_ID = re.compile(rb"\nmessage-id[ \t]{0,8}:", re.I)
_DATE = re.compile(rb"\ndate[ \t]{0,8}:", re.I)
_RECEIVED = re.compile(rb"\nreceived[ \t]{0,8}:", re.I)
# Fields that programs, not authors, write when they store or deliver mail.
_STORED = re.compile(
    rb"\n(?:received|return-path|delivered-to|envelope-to|x-envelope-from|x-uidl|x-uid|status"
    rb"|x-status|x-keywords|x-gmail-labels|x-gm-thrid|x-evolution|x-kmail-[a-z]{1,30})[ \t]{0,8}:",
    re.I,
)
_MOZILLA = (b"\nX-Mozilla-Status", b"\nX-Account-Key: account")
_WHOLE = re.compile(rb"(?:\n(?:[!-9;-~]{1,256}[ \t]{0,8}:|[ \t]|>From )[^\n]{0,9999})++", re.I)
_BOUNDARY = re.compile(
    rb"\ncontent-type[ \t]{0,8}:[ \t\r\n]{0,8}multipart/[^\r\n]{0,200}"
    rb"(?:\r{0,3}\n[ \t][^\r\n]{0,200}){0,8}?"
    rb"(?<=[;\s])boundary[ \t]{0,8}=[ \t]{0,8}(?:\"([^\"\r\n]{1,70})\"|([^\s;\"]{1,70}))",
    re.I,
)


class HeaderBlock(NamedTuple):
    """A header as written: a line end before each field, none after the last."""

    fields: bytes
    body: int | None  # offset of the body; None without a blank line

    @property
    def has_id(self) -> bool:
        """True if it has a Message-ID."""
        return b"\nMessage-ID:" in self.fields or _ID.search(self.fields) is not None

    @property
    def has_date(self) -> bool:
        """True if it has a Date."""
        return b"\nDate:" in self.fields or _DATE.search(self.fields) is not None

    @property
    def is_relayed(self) -> bool:
        """True if it has a Received field, which a relay adds."""
        return _RECEIVED.search(self.fields) is not None

    @property
    def is_of_mozilla(self) -> bool:
        """True if it begins with the field that Thunderbird writes above each message."""
        return self.fields.startswith(_MOZILLA)

    @property
    def is_whole(self) -> bool:
        """True if it has only fields, including a Date and a Message-ID."""
        named = self.body is not None and self.has_date and self.has_id
        return named and _WHOLE.fullmatch(self.fields.rstrip(_LINE_ENDS)) is not None

    @property
    def is_stored(self) -> bool:
        """True if it has a field of the program that stored or delivered the message."""
        return self.is_of_mozilla or _STORED.search(self.fields) is not None

    @property
    def boundary(self) -> bytes | None:
        """The outermost boundary of a multipart message; None for any other."""
        if b"ultipart/" not in self.fields:
            return None
        named = _BOUNDARY.search(self.fields)
        return (named[1] or named[2]) if named else None


def _read_header(data: bytes | mmap, at: int, end: int) -> HeaderBlock:
    begin, limit = at - 1, min(end, at - 1 + MAX_HEADER)
    line_end = data.find(b"\n", at, limit)
    blank = b"\n\n"
    if data[line_end - 1 : line_end] == b"\r":
        line = data[max(at, line_end - 8) : line_end]
        blank = b"\n" + line[len(line.rstrip(b"\r")) :] + b"\n"
    found = data.find(blank, begin, limit)
    if found < 0:
        return HeaderBlock(data[begin:limit], None)
    return HeaderBlock(data[begin:found], found + len(blank))


# --- Content-Length (the mboxcl dialects of System V) ---
#
# The field may come from another mailbox, and anybody can write one. So it is trusted only if it is
# right in most messages.

# Least number and share of messages whose body ends, by this field, at a From_ line or at the end
# of the archive.
_MIN_RIGHT, _MIN_SHARE = 2, 0.9

_LENGTH = re.compile(rb"\ncontent-length[ \t]{0,8}:[ \t]{0,8}(\d{1,12})\r{0,3}(?:\n|$)", re.I)


class _Bodies(NamedTuple):
    """Spans of bodies, ascending and disjoint."""

    begins: list[int]
    ends: list[int]

    def covers(self, offset: int) -> bool:
        index = bisect_right(self.begins, offset) - 1
        return index >= 0 and offset < self.ends[index]


def _find_bodies(data: bytes | mmap, lines: Sequence[FromLine]) -> _Bodies:
    """Return the spans of bodies by Content-Length; none if the field is not trustworthy."""
    if not lines:
        return _Bodies([], [])
    ends = [line.offset for line in lines[1:]] + [len(data)]
    starts = {*ends}
    bodies = _Bodies([], [])
    seen = 0
    for line, end in zip(lines, ends, strict=True):
        if bodies.covers(line.offset):
            continue
        seen += 1
        if body := _body(data, _read_header(data, line.end, end), starts):
            bodies.begins.append(body[0])
            bodies.ends.append(body[1])
        elif seen == _MIN_RIGHT and not bodies.begins:
            break  # usual case: the first messages have no such field
    if len(bodies.begins) < max(_MIN_RIGHT, _MIN_SHARE * seen):
        return _Bodies([], [])
    return bodies


def _body(data: bytes | mmap, header: HeaderBlock, starts: set[int]) -> tuple[int, int] | None:
    length = _LENGTH.search(header.fields)
    if length is None or header.body is None:
        return None
    end = header.body + int(length[1])
    after = (end, end + 1, end + 2) if data[end : end + 1] in (b"\n", b"\r") else (end,)
    return (header.body, end) if any(place in starts for place in after) else None


# --- multiparts (RFC 2046 section 5.1.1) ---

_MAX_LINE = 80  # bytes; a boundary has at most 70


def _follows_closing_delimiter(data: bytes | mmap, boundary: bytes | None, offset: int) -> bool:
    if boundary is None:
        return False
    line = data[max(0, offset - _MAX_LINE) : offset].rstrip(b"\r\n").rpartition(b"\n")[2]
    return line == b"--" + boundary + b"--"


def _is_inside_multipart(
    data: bytes | mmap, boundary: bytes | None, message: range, limit: int
) -> bool:
    """Return whether the multipart of a message is closed between its end and `limit`.

    `message` is the span of the message if it ends at the candidate. A truncated message is never
    closed; if a copy of it follows, the copy declares the boundary before closing it.
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


# --- starts of messages ---

# Least number and share of messages of another form in an archive that confirm each other.
_MIN_FOREIGN, _MIN_FOREIGN_SHARE = 2, 0.1

_MOST_INSIDE = 16  # candidates searched for the end of an attached archive

# Kinds of senders that writers without blank lines use, even if rarely in a month. Source: the code
# of postgresql.org and of Mailman.
_OWN_KINDS = {"pg": ("list", "word"), "pipermail": ("at", "word")}

_MAX_ODD = 0.02  # share of lines that may differ from the usual; a single line always may

# Least number and share of messages without a blank line above, if the writer adds none.
_MIN_OMITTED, _MIN_OMITTED_SHARE = 3, 0.02

# Least lines that show a usual shape, and least lines that show a usual sender and first field. The
# latter are more, because the three messages of a month may come from two people.
_MIN_SHAPES, _MIN_WRITTEN = 3, 20

_Value = TypeVar("_Value", bound=Hashable)


class Start(NamedTuple):
    """The start of a message: offsets of its From_ line and of its header."""

    offset: int
    header: int
    suspicious: bool  # perhaps part of the message above


def find_starts(data: bytes | mmap, dialect: str) -> list[Start]:
    """Return the starts of an archive's messages in order."""
    lines = find_lines(data)
    bodies = _find_bodies(data, lines)
    lines = [line for line in lines if not bodies.covers(line.offset)]
    return [*_drop_content(data, lines, _Writer(lines, dialect), dialect in ("mboxo", "mboxrd"))]


def find_lines(data: bytes | mmap) -> list[FromLine]:
    """Return the candidates that may start a message, by their form or by other evidence.

    Mail with patches contains unquoted output of git format-patch, with its header. Lines of this
    form start messages only if the archive has no lines of the usual form.
    """
    lines = _find_from_lines(data)
    forms = {"asctime"}
    if lines and lines[0].offset == _find_top(data):
        forms.add(lines[0].style.form)
    if any(line.style.form == "asctime" and line.after_blank for line in lines):
        forms.discard("git")
    if all(line.style.form in forms for line in lines):
        return lines
    foreign = _find_foreign(data, lines, forms)
    return [
        line if line.style.form in forms else line._replace(foreign=True)
        for line in lines
        if line.style.form in forms or line.offset in foreign
    ]


def _find_foreign(
    data: bytes | mmap, lines: Sequence[FromLine], forms: Collection[str]
) -> set[int]:
    """Return the offsets of lines of other forms whose header shows that a message begins.

    A whole header is not enough, because a text may quote one. Further evidence is a field of a
    mail store, two consecutive messages of one form, a share of the archive, or its end.
    """
    ends = [line.offset for line in lines[1:]] + [len(data)]
    sure: set[int] = set()
    likely: list[FromLine | None] = []  # None: a line of the archive's own form
    for line, end in zip(lines, ends, strict=True):
        form = line.style.form
        if form in forms:
            likely.append(None)
        elif form != "git":
            header = _read_header(data, line.end, end)
            is_whole = line.after_blank and header.is_whole
            if (header.is_of_mozilla and form == "bare") or (is_whole and header.is_stored):
                sure.add(line.offset)
            if is_whole:
                likely.append(line)
    counts = Counter(line.style.form for line in likely if line)
    few = max(_MIN_FOREIGN, _MIN_FOREIGN_SHARE * len(lines))
    left = likely.count(None)
    for _, group in groupby(likely, lambda one: one.style.form if one else ""):
        of_one_form = [*group]
        run = [line for line in of_one_form if line]
        left -= len(of_one_form) - len(run)
        enough = len(run) >= _MIN_FOREIGN or not left
        if run and (enough or counts[run[0].style.form] >= few):
            sure.update(line.offset for line in run)
    return sure


def often_omits_blank_lines(lines: Sequence[FromLine]) -> bool:
    """Return whether the archive shows that its writer adds no blank lines.

    One message can contain many From_ lines. So a run of lines without blank lines above counts
    once, unless it is most of the archive.
    """
    similar = [
        (front.after_blank, line.after_blank)
        for front, line in pairwise(lines)
        if front.style.layout == line.style.layout
    ]
    omitted = sum(not blank for _, blank in similar)
    apart = sum(blank_before and not blank for blank_before, blank in similar)
    is_rule = omitted >= _MIN_OMITTED and 2 * omitted > len(lines)
    return is_rule or apart >= max(_MIN_OMITTED, _MIN_OMITTED_SHARE * len(lines))


class _Writer:
    """The usual style of the candidates of an archive, for comparison with each of them."""

    def __init__(self, found: Sequence[FromLine], dialect: str) -> None:
        lines = [line for line in found if not line.foreign]
        self._own_kinds = _OWN_KINDS.get(dialect, ())
        self._shapes = Counter(map(self._shape, lines))
        self._usual_shape = _usual(self._shapes, _MIN_SHAPES)
        self._sender = _usual(Counter(line.style.sender for line in lines), _MIN_WRITTEN)
        # the first field depends on the author's program, unless one program writes all mail
        fields = Counter(line.field for line in lines) if self._sender else Counter[bytes]()
        self._field = _usual(fields, _MIN_WRITTEN)
        self.leaves_blank = not self._own_kinds
        self._often_omits = self.leaves_blank and often_omits_blank_lines(lines)

    def _shape(self, line: FromLine) -> Hashable:
        # the kind of sender differs from person to person, unless the dialect sets it
        return (line.style.kind, line.style.layout) if self._own_kinds else line.style.layout

    def is_odd(self, line: FromLine) -> bool:
        other_shape = self._usual_shape not in (None, self._shape(line))
        return other_shape or self._sender not in (None, line.style.sender)

    def starts_without_blank(self, line: FromLine, header: HeaderBlock) -> bool:
        if line.foreign:
            return header.is_of_mozilla and (header.has_id or header.has_date)
        if not self.leaves_blank:
            unique = self._shapes[self._shape(line)] == 1
            return not (unique and self.is_odd(line) and line.style.kind not in self._own_kinds)
        written = header.has_id and header.has_date and not self.is_odd(line)
        return written and (self._often_omits or header.is_relayed or header.is_of_mozilla)

    def is_suspicious(self, line: FromLine, header: HeaderBlock) -> bool:
        if line.foreign:
            return not (line.after_blank and header.is_of_mozilla)
        if self.leaves_blank:
            whole = line.after_blank and (header.has_date or header.has_id)
        else:
            whole = header.has_id and header.has_date
        return not whole or self.is_odd(line) or self._field not in (None, line.field)


def _drop_content(
    data: bytes | mmap, lines: Sequence[FromLine], writer: _Writer, quotes: bool
) -> Iterator[Start]:
    """Yield the lines that start a message; `quotes`: the writer quotes `From ` in bodies."""
    above: HeaderBlock | None = None  # header of the last start
    begin = 0  # its offset
    ends = [line.offset for line in lines[1:]] + [len(data)]
    for index, line in enumerate(lines):
        at = line.offset
        header = _read_header(data, line.end, ends[index])
        boundary = above.boundary if above and not (quotes and line.after_blank) else None
        known = above is None or line.after_blank or _follows_closing_delimiter(data, boundary, at)
        if not (known or writer.starts_without_blank(line, header)):
            continue
        if boundary and not quotes:
            last = index + _MOST_INSIDE
            limit = lines[last].offset if last < len(lines) else None
            if _is_inside_multipart(data, boundary, range(begin, at), limit or len(data)):
                continue
        begin, above = line.end, header
        yield Start(at, begin, writer.is_suspicious(line, header))


def _usual(counts: Counter[_Value], least: int) -> _Value | None:
    total = counts.total()
    if total < least:
        return None
    value, count = counts.most_common(1)[0]
    return value if count >= total - max(1, _MAX_ODD * total) else None
