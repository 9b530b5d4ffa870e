"""Files that stand in the text of a message: uuencode, yEnc and BinHex, as before MIME.

The text around them stays text; the file is an attachment, whose content is decoded but for
BinHex, a format of its own that Macintosh programs open.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from mail_assets.mail.message.part import Part, clean_filename

MAX_FILES = 100  # of one part; what is left stays text

# One of these is in every _BEGIN; yEnc's has the first too. Each look takes 2 us of a message.
_MARKS = (b"begin ", b"(This file must be converted with BinHex")
_PLAIN_ENCODINGS = frozenset({"", "7bit", "8bit", "binary"})
# A first line, and behind it a full line of data, or the only one of a short file and its `end`.
_BEGIN = re.compile(
    rb"^(?:begin[ ]{1,9}+[0-7]{3,4}[ ]{1,9}+(?P<uu>[^\r\n]{1,255}+)\r?\n"
    rb"(?=M[ -`]{58,64}+\r?\n|[!-L][ -`]{1,64}+\r?\n[` \r\n]{0,9}end\b)"
    rb"|=ybegin[ ][^\r\n]{0,200}?name=(?P<yenc>[^\r\n]{1,255}+)\r?\n"
    rb"|\(This file must be converted with BinHex[^\n]{0,80}+\n(?:\r?\n){0,3}"
    rb"(?P<binhex>:)(?=[!-,\-0-9@A-Z\[`a-r]{1,100}+\r?\n))",
    re.M,
)
# The first line that is no data, and the one behind the data that belongs to the file.
_UU_END = re.compile(
    rb"^(?![!-`][ -`]{0,90}\r?\n)(?:[` ]?\r?\n)?(?:end[ \t]{0,9}(?:\r?\n|\Z))?", re.M
)
_BINHEX_END = re.compile(
    rb"^(?![!-,\-0-9@A-Z\[`a-r]{1,100}\r?\n)(?:[^\s:]{0,100}:\r?(?:\n|\Z))?", re.M
)


class InlineFile(NamedTuple):
    """The bytes source[start:end] that are a file, in one of the three formats."""

    format: str  # uu, yenc or binhex
    name: str
    start: int
    end: int


def find_inline_files(part: Part) -> list[Part]:
    """The text part alone; or its pieces, if files stand in it, in order."""
    if part.encoding not in _PLAIN_ENCODINGS or part.type != "text/plain":
        return [part]
    begin, binhex = (part.source.find(mark, part.start, part.end) for mark in _MARKS)
    if begin < 0 and binhex < 0:
        return [part]
    pieces: list[Part] = []
    at = part.start
    for file in _list_files(part.source, part.start, part.end):
        pieces += _text_between(part, at, file.start)
        pieces.append(_make_file(part, file))
        at = file.end
    if not pieces:
        return [part]
    pieces += _text_between(part, at, part.end)
    return [piece._replace(number=part.number + at) for at, piece in enumerate(pieces)]


def _list_files(source: bytes, start: int, end: int) -> Iterator[InlineFile]:
    at = start
    for _ in range(MAX_FILES):
        begin = _BEGIN.search(source, at, end)
        if begin is None:
            return
        kind = begin.lastgroup or ""
        name = "" if kind == "binhex" else begin[kind].decode("utf-8", "replace")
        at = _find_end(kind, source, begin.end(), end)
        yield InlineFile(kind, clean_filename(name.strip().strip('"')), begin.start(), at)


def _find_end(kind: str, source: bytes, start: int, end: int) -> int:
    """Where the file ends whose data begin at source[start]."""
    if kind == "yenc":
        last = source.find(b"\n=yend ", start - 1, end)
        line_end = source.find(b"\n", last + 1, end) if last >= 0 else -1
        return line_end + 1 or end
    if kind == "binhex":
        start = source.find(b"\n", start, end) + 1  # its first line begins with the colon
    found = (_UU_END if kind == "uu" else _BINHEX_END).search(source, start, end)
    return found.end() if found else end


def _make_file(part: Part, file: InlineFile) -> Part:
    media = "application/mac-binhex40" if file.format == "binhex" else "application/octet-stream"
    return part._replace(
        type=media,
        start=file.start,
        end=file.end,
        encoding={"uu": "x-uuencode", "yenc": "x-yenc", "binhex": ""}[file.format],
        disposition="attachment",
        filename=file.name or "file",
        group=0,
    )


def _text_between(part: Part, start: int, end: int) -> list[Part]:
    has_text = part.source[start:end].strip()
    return [part._replace(start=start, end=end)] if has_text else []
