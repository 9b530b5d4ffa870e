"""Match what Mailman 2 writes where it flattens a mail of several parts for its archive.

Scrubber.py puts a line between two parts, says what it left out, and for each part that it stored
apart adds a note with the place. All of it is translated into the list's language, from the
catalogues of Mailman 2.1 (messages/*/LC_MESSAGES/mailman.po, up to 2.1.39); the place is not:

    Skipped content of type multipart/alternative-------------- next part --------------
    A non-text attachment was scrubbed...
    Name: crane.png
    URL: <http://lists.example.org/pipermail/dev/attachments/20040105/5e5fcbf6/crane.png>
"""

import re

from mail_assets.mail.body.line_rule import BodyLines, LineBlock

_NEXT_PART_PHRASES = (
    *("next part", "القسم الثاني", "siguiente parte", "part següent", "další část", "næste del"),
    *("nächster Teil", "επόμενο μέρος", "sekvanta parto", "próxima parte", "hurrengo zatia"),
    *("قسمت بعدی", "seuraava osa", "section suivante", "·הקטע הבא·", "sljedeći dio"),
    *("következő rész", "proxime parte", "parte successiva", "volgend deel", "neste del"),
    *("następna część", "partea următoare", "следующая часть", "ďalšia časť", "naslednji del"),
    *("следећи дио", "sonraki bölüm", "наступна частина", "phần kế tiếp", "下一部分", "下一部份"),
)
#: What was left out, if anything, then the line between two parts: Mailman ends only the latter.
NEXT_PART = re.compile(
    r"(?:[^\n]{0,60}[a-z]/[a-z][\w.+-]{0,60}?)?"
    rf"(?:-{{9,20}}+|━{{6}}) ?(?:{'|'.join(_NEXT_PART_PHRASES)}) ?(?:-{{9,20}}|━{{6}})$",
    re.I,
)
_SCRUBBED = re.compile(r"An? .{1,40} was scrubbed\.\.\.$")
_NAMED_VALUE = re.compile(r"\w[^\n:：]{0,30}[:：] {0,4}\S")
_STORED_PART = re.compile(
    r"\w[^\n:：]{0,30}[:：] {0,4}<?(?:https?:/)?/\S{1,400}/attachments/\d{8}/"
)
_MAX_NOTE = 8  # lines

#: How the last line of such a block, or the first of a note, ends.
SCRUBBED_ENDS = ("----", "━━━━", "...", "…", "hellip;")


def match_scrubbed_part(body: BodyLines, i: int) -> LineBlock | None:
    """The line between two parts with the note below it, or a note alone."""
    text = body.texts[i]
    if not text.endswith(SCRUBBED_ENDS):
        return None
    if not NEXT_PART.match(text):
        stop = _note_end(body.lines, i)
        return LineBlock(stop, "footer") if stop > i else None
    return LineBlock(max(i + 1, _note_end(body.lines, i + 1)), "footer")


def _note_end(lines: list[str], i: int) -> int:
    """Return the line behind a note that begins at i, or i where none does."""
    for x in range(i + 1, min(len(lines), i + _MAX_NOTE)):
        if _STORED_PART.match(lines[x]):
            return x + 1
        if not _NAMED_VALUE.match(lines[x]):
            return x if _SCRUBBED.match(lines[i]) else i
    return i
