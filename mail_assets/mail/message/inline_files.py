"""Files that stand in the text of a message: uuencode, yEnc and BinHex, as before MIME.

The text around them stays text; the file is an attachment, whose content is decoded but for
BinHex, a format of its own that Macintosh programs open.
"""

import re

from mail_assets.mail.message.part import Part, clean_filename

MAX_FILES = 100  # of one part; what is left stays text

_MARKS = (b"begin ", b"=ybegin ", b"(This file must be converted with BinHex")
_PLAIN_ENCODINGS = frozenset({"", "7bit", "8bit", "binary"})
# Of uuencode: full lines, or the only line of a short file and its `end`.
_FILE = re.compile(
    rb"^(?:begin[ ]+[0-7]{3,4}[ ]+(?P<uu>[^\r\n]{1,255}+)\r?\n"
    rb"(?:(?=M[ -`]{58,64}\r?\n)(?:[!-`][ -`]{0,90}+\r?\n)++"
    rb"|[!-L][ -`]{1,64}\r?\n(?=[` \r\n]{0,9}+end\b))"
    rb"(?:[` ]?\r?\n)?(?:end[ \t]*+(?:\r?\n|\Z))?"
    rb"|=ybegin[ ][^\r\n]{0,200}?name=(?P<yenc>[^\r\n]{1,255}+)\r?\n"
    rb"(?:(?!=yend )[^\n]*+\n)++(?:=yend [^\n]*+(?:\n|\Z))?"
    rb"|\(This file must be converted with BinHex[^\n]{0,80}+\n(?:\r?\n){0,3}(?P<binhex>:)"
    rb"(?:[!-,\-0-9@A-Z\[`a-r]{1,100}+\r?\n)++(?:[!-,\-0-9@A-Z\[`a-r]{0,100}+:\r?(?:\n|\Z))?)",
    re.M,
)


def find_inline_files(part: Part) -> list[Part]:
    """The text part alone; or its pieces, if files stand in it, in order."""
    if part.encoding not in _PLAIN_ENCODINGS or part.type != "text/plain":
        return [part]
    if all(part.source.find(mark, part.start, part.end) < 0 for mark in _MARKS):
        return [part]
    pieces: list[Part] = []
    at = part.start

    def add(piece: Part) -> None:
        pieces.append(piece._replace(number=part.number + len(pieces)))

    for number, found in enumerate(_FILE.finditer(part.source, part.start, part.end)):
        if number == MAX_FILES:
            break
        if part.source[at : found.start()].strip():
            add(part._replace(start=at, end=found.start()))
        kind = found.lastgroup or ""
        name = (found[kind] if kind != "binhex" else b"").decode("utf-8", "replace")
        add(
            part._replace(
                type="application/mac-binhex40" if kind == "binhex" else "application/octet-stream",
                start=found.start(),
                end=found.end(),
                encoding={"uu": "x-uuencode", "yenc": "x-yenc", "binhex": ""}[kind],
                disposition="attachment",
                filename=clean_filename(name.strip().strip('"')) or "file",
                group=0,
            )
        )
        at = found.end()
    if not pieces:
        return [part]
    if part.source[at : part.end].strip():
        add(part._replace(start=at))
    return pieces
