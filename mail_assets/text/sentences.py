"""Find the sentences that a person wrote in a mail, and separate prose from code and output.

A sentence ends at a mark such as a full stop, at a blank line, before a list item, and at a line
that is not prose. Rules check the text before the mark (an abbreviation?) and after it (a
lower-case letter?).
"""

import re
from collections.abc import Iterator, Sequence
from itertools import compress
from typing import NamedTuple

_DISPLAYED = ("    ", "\t")  # indent of displayed text, such as code, among other paragraphs
_MIN_LETTERS = 0.5  # share of letters in the visible characters of prose
_NOT_PROSE = re.compile(
    r"[ \t]{0,40}(?:"
    r"[$#%>+|@]|[.'][A-Za-z\\]|//|/\*|\*/|\\|"  # prompts, roff, comments
    r"\[?[\w.-]{1,40}@[\w.-]{1,60}(?:[: ]\S{1,80}?)? ?[$#%] |"  # "bo@pump:~/src$ make"
    r"s/[^/\n]{1,60}/[^/\n]{0,60}/|"
    r"\[\d+\]:? ?\S*://|(?:git|https?)://\S*(?: \S+)?\s*$|"  # with the tag to pull
    r"(?:base-commit|change-id|prerequisite-[a-z]{1,10}-id): \S+\s*$|"
    r"[A-Z][A-Za-z]{1,20}(?:-[A-Za-z]{1,20}){1,3}:|"  # trailers: "Signed-off-by:"
    r"(?:[Cc][Cc]|Fixes|Link|Closes|Bug|Message-ID|From|To|Date|Subject|Sent|Author): \S|"
    r"commit:? [0-9a-f]{7,64}\b|(?:Fixes|Closes|Link) (?:#\d|\S*://)\S*\s*$|"
    r"\[[^\]\n]{1,120}\]\s*$|-{2,}8<|[-=_*~#]{3,})"
)
_NO_LETTERS = bytes(code for code in range(128) if not chr(code).isalpha())
_ITEM = re.compile(r"[ \t]{0,16}(?:[-*+•o]|(?:\d{1,2}|[ivx]{1,4})[.)]|\(?[A-Za-z\d]\)) {1,4}(?=\S)")
_CODE_ENDS = (";", "{", "}", "\\")
_CODE_START = re.compile(r"\s*(?:\w+ = \S|(?:static|struct|int|void) )")
# "->x", "==", "&&", "||", "::x", "f();". The pattern begins with a character class and looks behind
# only after it, so that the engine skips to the next candidate.
_CODE_SIGN = re.compile(
    r"[-=!<>&|:(](?:(?<=-)>\w|(?<=[=!<>])=|(?<=&)&|(?<=\|)\||(?<=:):\w|(?<=\w\()\);)"
)

_SQL = re.compile(
    r"(?i)[ \t]*(?:[\w.@]+[=(-][#>*]+ ?)?(?:select|insert into|update|delete from|create|alter|"
    r"drop|with|explain|copy|merge into|grant|vacuum|analyze|declare|do \$)\b"
)
# The patterns of table cells and server messages first look ahead for their sign: this keeps them
# linear.
_LISTING = re.compile(
    r"[ \t]*QUERY PLAN\b|.*\((?:cost=|actual (?:time|rows)=)|[ \t]*->  |"  # plans
    r"(?=[^|]*+\|)[^|]*\S[ \t]*\|[ \t]|[ \t]*\||"  # tables
    r"[ \t]*[-+=]{3}[-+= \t]*$|[ \t]*\(\d+ rows?\)|"
    r"(?=.*: )(?:.*[ \]:])?(?:DEBUG\d?|LOG|INFO|NOTICE|WARNING|ERROR|FATAL|PANIC|DETAIL|HINT|"
    r"CONTEXT|STATEMENT|QUERY|LOCATION):  ?|LINE \d+:|"  # server messages
    r"[\[(]?\d{4}-\d\d-\d\d[ T]\d\d:\d\d|\[ *\d+\.\d{3,}\]|"  # log times
    r"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d |"  # syslog times
    r"[ \t]*(?:#\d+ |at \S+\(|File \".*\", line \d|Traceback \(most)"  # stack traces
)
_MIN_LISTING_LINES = 3


def mark_prose(lines: Sequence[str]) -> list[bool]:
    """Return for each line whether it is prose; a blank line is not."""
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
    """Unmark indented paragraphs among others, unless they are list items."""
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
    """Return the offset of the text after a list mark ("- ", "1. ", "(a) "), 0 without one."""
    mark = _ITEM.match(line)
    return mark.end() if mark else 0


def join_lines(text: str) -> str:
    """Join the lines of a text; each list item begins a new line."""
    joined: list[str] = []
    for line in text.split("\n"):
        words = " ".join(line.split())
        if joined and words and not find_item_text(line):
            words = f"{joined.pop()} {words}"
        joined += [words] if words else []
    return "\n".join(joined)


def find_blocks(lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Find blocks of lines to keep whole: (first line, line after the last); they may overlap."""
    yield from _listings(lines)
    yield from _statements(lines)


def _listings(lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Find runs of plan, table or log lines, with indented lines below them."""
    first = None
    for i, line in enumerate([*lines, ""]):
        if _LISTING.match(line) or (first is not None and line[:1] in {" ", "\t"} and line.strip()):
            first = i if first is None else first
        elif first is not None:
            if i - first >= _MIN_LISTING_LINES:
                yield first, i
            first = None


def _statements(lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Find SQL statements, up to a line that ends in ";", without blank lines."""
    first = None
    for i, line in enumerate(lines):
        if not line.strip():
            first = None
        elif first is None and _SQL.match(line):
            first = i
        if first is not None and line.rstrip().endswith(";"):
            yield first, i + 1
            first = None


_UNWRAPPED = 120  # characters; a longer line is a paragraph by itself
_SHORT = 50  # characters; a shorter line may end a paragraph
# begins with a character class, like _CODE_SIGN
_MARK = re.compile(
    r"([.!?…。！？])(?:(?<=[.!?…])(?<![.!?…].)([.!?…]*+)[\"'”’)\]*_]*+(?=\s)|"
    r"(?<=[。！？])[。！？]*+[」』”’）]*+)",
    re.DOTALL,
)
_ABBREVIATIONS = frozenset(
    (
        *("e.g", "i.e", "eg", "ie", "cf", "vs", "etc", "resp", "incl", "approx", "viz", "al"),
        *("mr", "mrs", "ms", "dr", "prof", "st", "jr", "sr", "inc", "ltd", "corp", "dept"),
        *("fig", "sec", "ch", "no", "nos", "vol", "ed", "eds", "pp", "ref", "refs", "ver", "rev"),
        *("jan", "feb", "mar", "apr", "jun", "jul", "aug", "sep", "sept", "oct", "nov", "dec"),
        *("bzw", "z.b", "d.h", "usw", "ca", "nr", "p.ej", "p.ex"),
    )
)
_MAY_BE_LAST = frozenset({"etc", "no", "inc", "al", "st"})  # before a capital letter
_MIN_WORD = 3  # letters of a word that may end a sentence before a lower-case letter
_LONGEST_WORD = 24  # characters read before a mark


class Span(NamedTuple):
    """The characters from start to end."""

    start: int
    end: int


def find_sentences(text: str, start: int = 0, end: int | None = None) -> Iterator[Span]:
    """Yield the sentences between start and end, without blanks and marks of list items."""
    for block in _find_blocks(text, start, len(text) if end is None else end):
        yield from _split_block(text, block)


def _find_blocks(text: str, start: int, end: int) -> Iterator[Span]:
    lines = text[start:end].split("\n")
    prose = mark_prose(lines)
    at = start
    first: int | None = None
    for i, line in enumerate(lines):
        if first is not None and (not prose[i] or _parts(lines[i - 1], line)):
            yield Span(first, at)
            first = None
        if prose[i] and first is None:
            first = at + find_item_text(line)
        at += len(line) + 1
    if first is not None:
        yield Span(first, end)


def _parts(above: str, line: str) -> bool:
    """Return whether a line begins a new block after the prose line above it."""
    text = above.rstrip()
    if find_item_text(line) or len(text) > _UNWRAPPED or text.endswith(":"):
        return True
    return len(text) < _SHORT and line.lstrip()[:1].isupper()


def _split_block(text: str, block: Span) -> Iterator[Span]:
    start = block.start
    for mark in _MARK.finditer(text, block.start, block.end):
        if _ends_sentence(text, mark, block.end):
            yield from _stripped(text, start, mark.end())
            start = mark.end()
    yield from _stripped(text, start, block.end)


def _stripped(text: str, start: int, end: int) -> Iterator[Span]:
    piece = text[start:end]
    if piece.strip():
        start += len(piece) - len(piece.lstrip())
        yield Span(start, start + len(piece.strip()))


def _ends_sentence(text: str, mark: re.Match[str], end: int) -> bool:
    run = mark[1] + (mark[2] or "")
    if run.strip(".…"):  # "!", "?", or a mark of Chinese or Japanese
        return True
    before = _word_before(text, mark.start()).lower()
    after = text[mark.end() : min(mark.end() + 12, end)].lstrip()
    small = after[:1].islower()
    if run != ".":
        return not small  # "..."
    if before in _ABBREVIATIONS:
        return before in _MAY_BE_LAST and not small
    if len(before) == 1 and before.isalpha():
        return before == "i" and not small  # "A. Roe"
    return not small or len(before) >= _MIN_WORD


def _word_before(text: str, end: int) -> str:
    near = text[max(end - _LONGEST_WORD, 0) : end]
    return "" if near[-1:].isspace() else near.split()[-1].lstrip("([{\"'") if near else ""
