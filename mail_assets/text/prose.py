"""Tell prose from what else stands in the text of a mail: code, output, trailers, links."""

import re
from collections.abc import Sequence
from itertools import compress

from mail_assets.text.blocks import find_blocks

_DISPLAYED = ("    ", "\t")  # how lines of a paragraph begin that beside others is a display
_MIN_LETTERS = 0.5  # of the visible characters
_NOT_PROSE = re.compile(
    r"[ \t]{0,40}(?:"
    r"[$#%>+|@]|[.'][A-Za-z\\]|//|/\*|\*/|\\|"  # prompts, roff, comments
    r"\[\d+\]:? ?\S*://|https?://\S*\s*$|"
    r"[A-Z][A-Za-z]{1,20}(?:-[A-Za-z]{1,20}){1,3}:|"  # trailers: "Signed-off-by:"
    r"(?:[Cc][Cc]|Fixes|Link|Closes|Bug|Message-ID|From|To|Date|Subject|Sent|commit|Author):? \S|"
    r"\[[^\]\n]{1,120}\]\s*$|-{2,}8<|[-=_*~#]{3,})"
)
_NO_LETTERS = bytes(code for code in range(128) if not chr(code).isalpha())
_ITEM = re.compile(r"[ \t]{0,16}(?:[-*+•o]|(?:\d{1,2}|[ivx]{1,4})[.)]|\(?[A-Za-z\d]\)) {1,4}(?=\S)")
_CODE_ENDS = (";", "{", "}", "\\")
_CODE_START = re.compile(r"\s*(?:\w+ = \S|(?:static|struct|int|void) )")
# "->x", "==", "&&", "||", "::x", "f();": begins with a class of characters and looks back
# afterwards, so that the engine jumps to where one can be.
_CODE_SIGN = re.compile(
    r"[-=!<>&|:(](?:(?<=-)>\w|(?<=[=!<>])=|(?<=&)&|(?<=\|)\||(?<=:):\w|(?<=\w\()\);)"
)


def mark_prose(lines: Sequence[str]) -> list[bool]:
    """Tell of each line whether it is prose; blank lines are not."""
    prose = [_is_prose(line) for line in lines]
    for first, last in find_blocks(lines):
        prose[first:last] = [False] * (last - first)
    _drop_displays(lines, prose)
    return prose


def _is_prose(line: str) -> bool:
    visible = len(line) - line.count(" ") - line.count("\t")
    if not visible or _NOT_PROSE.match(line) or line[-200:].rstrip().endswith(_CODE_ENDS):
        return False
    if _count_letters(line) < _MIN_LETTERS * visible:
        return False
    return not (_CODE_START.match(line) or _CODE_SIGN.search(line))


def _count_letters(line: str) -> int:
    if line.isascii():
        return len(line.encode().translate(None, _NO_LETTERS))
    return sum(map(str.isalpha, line))


def _drop_displays(lines: Sequence[str], prose: list[bool]) -> None:
    """Unmark paragraphs that are indented where others are not, unless they are items of a list."""
    if not any(line.startswith(_DISPLAYED) for line in lines):
        return
    if all(line.startswith((" ", "\t")) for line in compress(lines, prose)):
        return
    start = 0
    for i, line in enumerate([*lines, ""]):
        if line.strip():
            continue
        paragraph = range(start, i)
        start = i + 1
        if paragraph and all(lines[x].startswith(_DISPLAYED) for x in paragraph):
            for x in paragraph:
                if not find_item_text(lines[x]):
                    prose[x] = False


def find_item_text(line: str) -> int:
    """Return where the text of an item begins: after "- ", "* ", "1. ", "(a) "; 0 for none."""
    mark = _ITEM.match(line)
    return mark.end() if mark else 0
