"""Find the names that people put below their text, with what stands under them.

A closing ("Regards,") is text; the name under it and the lines that say how to reach its
owner are signature, and so is a closing with the name behind it: "Regards, Jo". A name is the
author's own, or stands under a closing. No sentence is ever taken.
"""

import re

from mail_assets.mail.body.line_rule import BodyLines, LineBlock
from mail_assets.mail.body.names import is_name_of, looks_like_name
from mail_assets.mail.body.runs import find_runs
from mail_assets.mail.body.signature_phrases import CLOSINGS, THANKS

_MAX_LINES = 12
_MAX_LINE = 76  # characters
_MAX_TITLE = 50  # characters of a line that gives a title or a company
_MIN_UNNAMED = 3  # lines of a learnt signature without a name or an address
_MAX_ALONE = 30  # characters of a name between blank lines
_MAX_CLOSING = 40
_MAX_CLOSING_WORDS = 4

_UNDERSCORES = "_" * 20
_CONTACT = re.compile(
    r"(?i)@|://|www\.|\S at \S{1,60}\.\S|\(\d{2,4}\)|\+?\d[\d ().-]{7}|"
    r"\b(?:tel|fax|phone|mobile|cell|e-?mail|icq|jabber|irc|web|skype|pgp|gpg)\b"
)
_RULE = re.compile(r"[-_=*~#+]{5,}$")
_WISH = re.compile(
    r"(?:have an? \w{1,12} (?:day|one|week|weekend|evening|time)|"
    r"thanks? (?:you )?(?:in advance|again|for \w{1,12}(?: \w{1,12}){0,3})|"
    r"looking forward to .{1,24})$"
)
_EDGES = " \t,.!;:-–—~*"
#: Of all closings; "" where a mark stands before one.
_FIRST_WORDS = frozenset({"", *(closing.split()[0].strip(_EDGES) for closing in CLOSINGS)})


def mark_sign_offs(body: BodyLines, author: frozenset[str]) -> None:
    """Give the kind "signature" to the sign-offs at the ends of the text.

    author: the words of the author's name, as name_words() gives them.
    """
    first = body.next_visible(0)
    for start, stop, kind in reversed([*find_runs(body.kinds)]):
        run = range(max(start, first + 1), stop)
        if kind == "footer":
            for i in reversed(run):
                if body.lines[i].startswith(_UNDERSCORES):
                    _claim_ruled(body, i, author)
        elif kind == "text":
            _mark_run(body, run, author)


def _mark_run(body: BodyLines, run: range, author: frozenset[str]) -> None:
    """Find the sign-off at the end of a run of text, and names alone above a postscript."""
    lines, texts = body.lines, body.texts
    last = _last_visible(texts, run)
    while last in run:
        start = max(_sign_off_start(body, last, author), run.start)
        body.fill(start, LineBlock(last + 1, "signature"))
        if start >= last:
            break
        last = _last_visible(texts, range(run.start, start))
    above = range(run.start, last)
    short = [i for i in above if texts[i] and not texts[i + 1] and len(lines[i]) <= _MAX_ALONE]
    for i in reversed(short):
        stands_alone = not texts[i - 1] or is_closing(texts[i - 1])
        if stands_alone and _is_signed(body, i, author):
            body.kinds[i] = "signature"


def _last_visible(texts: list[str], run: range) -> int:
    """Return the last line of a run that is not blank; the one before the run for none."""
    return next((i for i in reversed(run) if texts[i]), run.start - 1)


def is_closing(line: str) -> bool:
    """Tell whether a line is a closing, such as "Best regards,"."""
    text = line.strip(_EDGES)
    if len(text) > _MAX_CLOSING:
        return False
    text = text.casefold()
    return len(text) <= _MAX_CLOSING and (text in CLOSINGS or _WISH.match(text) is not None)


def trim_sign_off(lines: list[str], block: list[int]) -> list[int]:
    """Leave out of a learnt block, the last line first, what its author may have meant as text.

    What is left begins a paragraph or stands under a closing, is no sentence, and says how to
    reach its owner, begins with what looks like a name, or is of three lines at least.
    """
    block = list(block)
    while block and not _begins_sign_off(lines, block[-1]):
        block.pop()
    if len(block) >= _MIN_UNNAMED or any(_CONTACT.search(lines[i]) for i in block):
        return block
    if not block or not looks_like_name(lines[block[-1]]):
        return []
    named = len(block) > 1 or len(lines[block[-1]].split()) > 1
    return block if named or is_closing(_line_above(lines, block[-1])) else []


def _begins_sign_off(lines: list[str], i: int) -> bool:
    line, above = lines[i].strip(), lines[i - 1].strip() if i else ""
    if is_closing(line) or (line[-1] in ".,!?:" and not _CONTACT.search(line)):
        return False
    return not above or is_closing(above) or _RULE.match(above) is not None or above == "--"


def _line_above(lines: list[str], i: int) -> str:
    return next((lines[x] for x in range(i - 1, max(i - 4, -1), -1) if lines[x].strip()), "")


def _claim_ruled(body: BodyLines, i: int, author: frozenset[str]) -> None:
    """Give a block below a rule that begins with the author's name to the author, not the list."""
    kinds = body.kinds
    if i + 1 < len(kinds) and is_name_of(body.texts[i + 1], author):
        while i < len(kinds) and kinds[i] == "footer":
            kinds[i] = "signature"
            i += 1


def _sign_off_start(body: BodyLines, last: int, author: frozenset[str]) -> int:
    """Return the first line of the sign-off that ends in line `last`; last + 1 for none."""
    start = last + 1
    for i in range(last, max(last - _MAX_LINES, -1), -1):
        text = body.texts[i]
        if not text or body.kinds[i] != "text":
            break
        if _is_signed(body, i, author):
            start = i
        elif start == i + 1 <= last and _RULE.match(text):
            return i
        elif not _says_who(text):
            break
    return start


def _is_signed(body: BodyLines, i: int, author: frozenset[str]) -> bool:
    text = body.texts[i]
    if len(text) > _MAX_LINE or text[-1] == "," or is_closing(text):  # "Jo," greets
        return False
    if is_name_of(text, author) or _is_closing_with_name(text, author):
        return True
    return _closing_above(body, i) and looks_like_name(text)


def _is_closing_with_name(line: str, author: frozenset[str]) -> bool:
    """Tell "regards, jo roe"."""
    words = line.split()
    if words[0].strip(_EDGES).casefold() not in _FIRST_WORDS:
        return False
    for count in range(min(_MAX_CLOSING_WORDS, len(words) - 1), 0, -1):
        closing = " ".join(words[:count]).strip(_EDGES).casefold()
        if closing in CLOSINGS:
            name = " ".join(words[count:])
            if is_name_of(name, author):
                return True
            known = not closing.startswith(THANKS) and words[count - 1][-1] in ",.-"
            return known and len(words) - count <= 3 and looks_like_name(name.title())
    return False


def _closing_above(body: BodyLines, i: int) -> bool:
    for x in range(i - 1, max(i - 4, -1), -1):
        if body.kinds[x] != "text":
            return False
        if body.texts[x]:
            return is_closing(body.texts[x])
    return False


def _says_who(line: str) -> bool:
    """Tell whether a line under a name gives a title, a company, an address or a number."""
    if len(line) > _MAX_LINE:
        return False
    return _CONTACT.search(line) is not None or (
        len(line) <= _MAX_TITLE and line[-1] not in ".?!:;,"
    )
