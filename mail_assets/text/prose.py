"""Tell prose from what else stands in the text of a mail: code, output, trailers, links."""

import re
from collections.abc import Sequence

from mail_assets.text.blocks import find_blocks

_INDENT = 4  # columns from which a paragraph beside others is a display
_MIN_LETTERS = 0.5  # of the visible characters
_NOT_PROSE = re.compile(
    r"[ \t]{0,40}(?:"
    r"[$#%>+|@]|[.'][A-Za-z\\]|//|/\*|\*/|\\|"  # prompts, roff, comments
    r"\[\d+\]:? ?\S*://|https?://\S*\s*$|"
    r"[A-Z][A-Za-z]{1,20}(?:-[A-Za-z]{1,20}){1,3}:|"  # trailers: "Signed-off-by:"
    r"(?:[Cc][Cc]|Fixes|Link|Closes|Bug|Message-ID|From|To|Date|Subject|Sent|commit|Author):? \S|"
    r"\[[^\]\n]{1,120}\]\s*$|-{2,}8<|[-=_*~#]{3,})"
)
_ITEM = re.compile(r"[ \t]{0,16}(?:[-*+•o]|(?:\d{1,2}|[ivx]{1,4})[.)]|\(?[A-Za-z\d]\)) {1,4}(?=\S)")
_CODE_END = re.compile(r"[;{}\\]\s*$")
_CODE = re.compile(
    r"->\w|[=!<>]=|&&|\|\||\w\(\);|::\w|^\s*\w+ = \S|^\s*(?:static|struct|int|void) "
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
    if not visible or _NOT_PROSE.match(line) or _CODE_END.search(line[-200:]):
        return False
    if sum(map(str.isalpha, line)) < _MIN_LETTERS * visible:
        return False
    return _CODE.search(line) is None


def _drop_displays(lines: Sequence[str], prose: list[bool]) -> None:
    """Unmark paragraphs that are indented where others are not, unless they are items of a list."""
    if all(_indent(line) for line, is_prose in zip(lines, prose, strict=True) if is_prose):
        return
    start = 0
    for i, line in enumerate([*lines, ""]):
        if line.strip():
            continue
        paragraph = range(start, i)
        start = i + 1
        if paragraph and all(_indent(lines[x]) >= _INDENT for x in paragraph):
            for x in paragraph:
                if not find_item_text(lines[x]):
                    prose[x] = False


def find_item_text(line: str) -> int:
    """Return where the text of an item begins: after "- ", "* ", "1. ", "(a) "; 0 for none."""
    mark = _ITEM.match(line)
    return mark.end() if mark else 0


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" ")) if not line.startswith("\t") else _INDENT
