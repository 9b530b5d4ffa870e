"""Match the footers that programs write below a mail: list managers, services, companies."""

import re

from mail_assets.mail.body.footer_phrases import (
    DISCLAIMER_PHRASES,
    DISCLAIMER_WORDS,
    LIST_PHRASES,
    SERVICE_PHRASES,
)
from mail_assets.mail.body.line_rule import BodyLines, LineBlock
from mail_assets.mail.body.scrubbed_parts import NEXT_PART, match_scrubbed_part

_MAX_FOOTER = 8  # lines
_MAX_PARAGRAPH = 16  # lines of a clear footer or a disclaimer
_MAX_ADVERT = 14  # lines between two rules
_MIN_DISCLAIMER_WORDS = 2

_CLEAR = re.compile(rf"(?i)(?:{'|'.join((*LIST_PHRASES, *SERVICE_PHRASES))})")
_DISCLAIMER = re.compile(rf"(?i)(?:{'|'.join(DISCLAIMER_PHRASES)})")
_DISCLAIMER_WORD = re.compile(rf"(?i)(?:{DISCLAIMER_WORDS})")
_BROADCAST = re.compile(r"-{20,}\(end of broadcast\)-{20,}$")
_NAMED_LIST = re.compile(r"(?i)[\w.+-]{2,60} mailing list$")
_LINE_RULE = re.compile(r"(?:[-_=*~#]{10,}|(?:-=){6,40}-?)$")
_UNDERSCORES = re.compile(r"_{30,}$")
_LONE_LINE = re.compile(r"[ \t]*(?:https?://|Message ID: )\S+\s*$")  # the latter is GitHub's
_TELLING = re.compile(r"(?i)://|www\.|@|[-_=*#~]{5}|\b(?:list|subscri|archive|confiden|recipient)")
_LIST_LINK = re.compile(r"(?i)mailing list|https?://|@")


def match_list_footer(body: BodyLines, i: int) -> LineBlock | None:
    """The footer of a list or a service: to the blank line, or over one above a lone link or id."""
    if (scrubbed := match_scrubbed_part(body, i)) is not None:
        return scrubbed
    text = body.texts[i]
    if _BROADCAST.match(text) or _CLEAR.match(text):
        if _LINE_RULE.match(text) and not _clear_below(body, i):
            return None
        return LineBlock(_paragraph_end(body, i), "footer")
    if _LINE_RULE.match(text):
        return _match_ruled(body, i)
    if _NAMED_LIST.match(text) and _has_link(body, i, 1):
        return LineBlock(_paragraph_end(body, i), "footer")
    return None


def match_disclaimer(body: BodyLines, i: int) -> LineBlock | None:
    """A company's disclaimer: a last paragraph that speaks of recipients and confidence."""
    if not _DISCLAIMER.match(body.texts[i]):
        return None
    stop = i
    while stop < len(body.lines) and stop < i + _MAX_PARAGRAPH and body.texts[stop]:
        stop += 1
    words = {word.lower() for word in _DISCLAIMER_WORD.findall(" ".join(body.lines[i:stop]))}
    return LineBlock(stop, "footer") if len(words) >= _MIN_DISCLAIMER_WORDS else None


def trim_footer(lines: list[str], block: list[int]) -> list[int]:
    """Leave out of a learnt block, the last line first, paragraphs on top that many may write.

    What is left begins with a paragraph that names a link, an address, a list or a rule.
    """
    kept, paragraph = 0, 0  # the block's lines down to a paragraph's first; where it ends
    for count, i in enumerate(block, 1):
        if i == 0 or not lines[i - 1].strip():
            if any(_TELLING.search(lines[x]) for x in block[paragraph:count]):
                kept = count
            paragraph = count
    return block[:kept]


def _match_ruled(body: BodyLines, i: int) -> LineBlock | None:
    """A footer below a rule, or an advert between it and the rule of the list's own footer."""
    if _UNDERSCORES.match(body.texts[i]) and _has_link(body, i, 4):
        return LineBlock(_paragraph_end(body, i), "footer")
    if _clear_below(body, i):
        return LineBlock(i + 1, "footer")
    limit = body.first_quoted(i, i + _MAX_ADVERT)
    for x in range(i + 1, limit):
        if _UNDERSCORES.match(body.texts[x]):
            return (
                LineBlock(x, "footer") if _names_list(body, x) and _has_link(body, i, 8) else None
            )
    return None


def _clear_below(body: BodyLines, i: int) -> bool:
    """Tell whether a clear footer begins in the next visible line, or a disclaimer does."""
    below = body.next_visible(i + 1)
    if below >= len(body.lines) or below > i + 2:
        return False
    text = body.texts[below]
    clear = _CLEAR.match(text) and not _LINE_RULE.match(text)
    return bool(clear) or match_disclaimer(body, below) is not None


def _names_list(body: BodyLines, i: int) -> bool:
    below = body.next_visible(i + 1)
    return below < len(body.lines) and "mailing list" in body.lines[below].lower()


def _has_link(body: BodyLines, i: int, lines: int) -> bool:
    """Tell whether one of the next visible lines names a list, an address or a site."""
    below = body.lines[i + 1 : body.first_quoted(i, i + _MAX_FOOTER)]
    near = [line for line in below if line.strip()][:lines]
    return any(_LIST_LINK.search(line) for line in near)


def _ends_paragraph(line: str) -> bool:
    """Tell a signature's separator or another part right below."""
    return line[:2] == "--" and (line.rstrip() == "--" or NEXT_PART.match(line) is not None)


def _paragraph_end(body: BodyLines, i: int) -> int:
    """Return the line below the paragraph, or below a link or an id that is alone under it."""
    lines = body.lines
    limit = body.first_quoted(i, i + _MAX_PARAGRAPH)
    stop = i + 1
    while stop < limit and lines[stop].strip() and not _ends_paragraph(lines[stop]):
        stop += 1
    below = body.next_visible(stop)
    return below + 1 if below < limit and _LONE_LINE.match(lines[below]) else stop
