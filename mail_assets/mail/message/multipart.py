"""Split one multipart entity at its delimiter lines (RFC 2046 section 5.1.1)."""

import re

from mail_assets.mail.message.encoded_words import unfold
from mail_assets.mail.message.headers import Headers, first_value
from mail_assets.mail.message.parameters import parse_parameters

MAX_PARTS = 2_000  # of a message
MAX_DELIMITERS = 100_000  # of one multipart, those that only look like one included

_BOUNDARY = re.compile(rb'[;\s]boundary[ \t]*=[ \t]*("(?:[^"\\]|\\.)*+"|[^;\s]*)', re.I)
_DELIMITER_AND_HEADER = re.compile(
    rb"^--(?!-)([^\s]{1,70}+)[ \t]{0,20}+\r?\n(?=content-[a-z-]{1,40}+:)", re.I | re.M
)
# Only MIME preambles of mail programs stand above the first delimiter here.
_HEADLESS = re.compile(
    rb"\s{0,20}+(?:This is an? [^\n]{0,60}MIME[^\n]{0,60}\n\s{0,20}+)?--([^\s]{1,70}+)"
    rb"[ \t]{0,20}+\r?\ncontent-[a-z-]{1,40}+:",
    re.I,
)
_ESCAPED = re.compile(rb"\\(.)")


def find_boundary(headers: Headers) -> bytes:
    """The boundary of a multipart's Content-Type, b"" where it names none."""
    value = unfold(first_value(headers, "content-type"))
    found = _BOUNDARY.search(value)
    if found:
        return _ESCAPED.sub(rb"\1", found[1].strip(b'"')).rstrip()
    return parse_parameters(value).get("boundary", "").encode()  # an RFC 2231 continuation


def guess_boundary(raw: bytes, start: int, end: int) -> bytes:
    """The boundary by the first line that looks like a delimiter above a part's header, or b""."""
    line = _DELIMITER_AND_HEADER.search(raw, max(0, start - 1), end)
    return line[1] if line else b""


def is_headless_multipart(raw: bytes, start: int, end: int) -> bool:
    """Tell whether a body without a Content-Type is a multipart, closed by its last delimiter.

    Mailman before 2.1 kept of a header in its archive no more than From, Date and Subject.
    """
    first = _HEADLESS.match(raw, start, end)
    return first is not None and raw.find(b"\n--" + first[1] + b"--", first.end(), end) >= 0


def split_multipart(
    raw: bytes, start: int, end: int, boundary: bytes
) -> list[tuple[int, int]] | None:
    """Spans between the delimiter lines of one multipart (RFC 2046 section 5.1.1).

    A delimiter line is the boundary between `--` and white space or the line end; what senders
    write behind the white space is passed over. None without a delimiter line in front of a
    part; an empty list where only the closing one is there, and no text above it.
    """
    spans: list[tuple[int, int]] = []
    delimiter, at, open_at, any_line = b"--" + boundary, start, -1, False
    for seen in range(MAX_DELIMITERS if boundary else 0):
        if len(spans) > MAX_PARTS:
            break
        found = raw.find(delimiter, at, end)
        if found < 0 or seen == MAX_DELIMITERS - 1:
            if open_at >= 0:
                spans.append((open_at, end))  # never closed
            break
        at = found + len(delimiter)
        if found > start and raw[found - 1] != 10:
            continue
        closing = raw.startswith(b"--", at, end)
        after = at + 2 if closing else at
        if after < end and raw[after] not in b" \t\r\n":
            continue  # a longer boundary that begins with this one
        if open_at >= 0:
            line_break = 2 if raw.startswith(b"\r\n", found - 2) else 1
            spans.append((open_at, max(open_at, found - line_break)))
        elif closing and raw[start:found].strip():
            break
        any_line = True
        line_end = raw.find(b"\n", after, end)
        if closing or line_end < 0:
            break
        at = open_at = line_end + 1
    return spans if any_line else None
