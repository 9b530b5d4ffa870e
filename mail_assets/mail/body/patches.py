"""Find the lines of a body that belong to a diff: unified, combined, context or normal.

Every hunk announces its line counts, so prose after the last hunk is never taken for a diff.
Context diffs matter: the PostgreSQL lists used them for their first fifteen years.

Each function `..._end` returns the line after the piece of a diff that begins at line i, or i if
none begins there. A mail program may have wrapped long lines or removed the blank of an empty
context line. A piece ends where the lines no longer look like the diff, so prose after it stays
text.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import compress, count

_UNIFIED = re.compile(r"@@ -\d{1,9}(?:,(\d{1,9}))? \+\d{1,9}(?:,(\d{1,9}))? @@")
#: The patterns without an underscore are also those by which patches are read.
COMBINED_HUNK = re.compile(
    r"@@(@{1,20})((?: -\d{1,9}(?:,\d{1,9})?){2,21}) \+\d{1,9}(?:,(\d{1,9}))? @@\1(?!@)", re.A
)
OLD_COUNT = re.compile(r" -\d{1,9}(?:,(\d{1,9}))?", re.A)
STARS = re.compile(r"\*{15}")
CONTEXT_OLD = re.compile(r"\*\*\* (\d{1,9})(?:,(\d{1,9}))? \*{4}\s*$", re.A)
CONTEXT_NEW = re.compile(r"--- (\d{1,9})(?:,(\d{1,9}))? -{4}\s*$", re.A)
_CONTEXT_LINE = re.compile(r"[ !+-](?:[ \t]|$)|\\|\s*$")
PLAIN_CHANGE = re.compile(r"(\d{1,9})(?:,(\d{1,9}))?([acd])(\d{1,9})(?:,(\d{1,9}))?\s*$", re.A)
_BASE85 = re.compile(r"[A-Za-z][0-9A-Za-z!#-&(-+;-@^-`{-~-]{0,66}\s*$")
_MERCURIAL = re.compile(r"# (?:HG changeset patch|User |Date |Node ID |Parent |Branch )")
# " src/f.c | 12 ++--" and the lines that git writes below
_STAT = re.compile(r" \S[^|\n]{0,200}\|\s{1,9}(?:\d{1,9}\s?[+-]{0,99}|Bin\b[^\n]{0,60})\s{0,9}$")
_STAT_SUM = re.compile(r" ?\d{1,9} files? changed(?:, \d{1,9} (?:insertion|deletion)|\s*$)")
_STAT_MODE = re.compile(r" (?:(?:create|delete) mode \d{6} |rename \S|copy \S|mode change )")
_BLANK_MARKS = " \t\xa0"  # some programs write no-break blanks
_MARKS = frozenset({"", *_BLANK_MARKS, "+", "-", "\\"})  # first characters of lines of a hunk
_NEXT_HUNK = ("@@", "diff")
_WRAPPED_AFTER = 60  # columns; mail programs wrap at 72 to 80, so the line above is long
_NAME_WRAPPED_AFTER = 50  # columns of a file name; part of the time after it may be wrapped
_QUOTED_PRINTABLE = frozenset({"=20", "=09", "=A0"})  # an empty context line, not decoded


def _unified_end(lines: Sequence[str], i: int) -> int:
    """Match a hunk of diff -u: "@@ -1,5 +1,5 @@"."""
    match, i = _hunk_head(lines, i, _UNIFIED)
    if not match:
        return i
    old, new = int(match[1] or 1), int(match[2] or 1)
    while i < len(lines) and (old > 0 or new > 0):
        mark = lines[i][:1]
        if mark == "+":
            new -= 1
        elif mark == "-":
            old -= 1
        elif mark in _BLANK_MARKS or _is_blank(lines[i]):
            old, new = old - 1, new - 1
        elif mark != "\\" and not _is_wrapped(lines, i):
            break
        i += 1
    return _hunk_end(lines, i)


def _combined_end(lines: Sequence[str], i: int) -> int:
    """Match a hunk of a merge: "@@@ -1,5 -1,5 +1,5 @@@", with a column of signs for each parent."""
    match, i = _hunk_head(lines, i, COMBINED_HUNK)
    if not match:
        return i
    old = [int(count or 1) for count in OLD_COUNT.findall(match[2])]
    new = int(match[3] or 1)
    if len(old) != len(match[1]) + 1:
        return i
    while i < len(lines) and (new > 0 or max(old) > 0):
        signs = lines[i][: len(old)]
        if not signs.strip(f"+-{_BLANK_MARKS}") or _is_blank(lines[i]):
            gone = "-" in signs  # only parents with the sign have the line
            new -= not gone
            for parent, sign in enumerate(signs.ljust(len(old))):
                old[parent] -= sign == "-" if gone else sign != "+"
        elif signs[0] != "\\" and not _is_wrapped(lines, i):
            break
        i += 1
    return _hunk_end(lines, i)


def _hunk_head(
    lines: Sequence[str], i: int, pattern: re.Pattern[str]
) -> tuple[re.Match[str] | None, int]:
    """Return the match of a hunk's head and the line below it, or None and i.

    A mail program may have wrapped the head: its rest is in up to two unmarked lines above the
    first line of the diff.
    """
    if lines[i][:2] != "@@":
        return None, i
    match = pattern.match(lines[i])
    if not match:
        if len(lines[i]) > _WRAPPED_AFTER or i + 1 >= len(lines):
            return None, i
        match = pattern.match(f"{lines[i].rstrip()} {lines[i + 1]}")
        return match, i + 2 if match else i
    below = i + 1
    if match.end() < len(lines[i].rstrip()):  # a function name follows
        rest = below
        while rest < min(below + 2, len(lines)) and lines[rest][:1] not in _MARKS:
            rest += 1
        if next((line for line in lines[rest : rest + 2] if line), "#")[:1] in _MARKS:
            below = rest
    return match, below


def _hunk_end(lines: Sequence[str], i: int) -> int:
    """Return the line after a hunk that ends above i, its newline note and a wrapped last line."""
    if i < len(lines) and lines[i].startswith("\\ No newline"):
        i += 1
    if i + 1 < len(lines) and lines[i + 1].startswith(_NEXT_HUNK):
        unmarked = lines[i][:1] not in _MARKS and not lines[i].startswith(_NEXT_HUNK)
        i += unmarked and len(lines[i - 1]) >= _WRAPPED_AFTER
    return i


def _context_end(lines: Sequence[str], i: int) -> int:
    """Match a hunk of diff -c; an old or new half without changes has no lines."""
    if not STARS.match(lines[i]) or i + 1 >= len(lines):
        return i
    old = CONTEXT_OLD.match(lines[i + 1])
    if not old:
        return i
    stop = _half_end(lines, i + 2, old)
    marks = {line[:1] for line in lines[i + 2 : stop]}
    below = stop
    while below < min(stop + 2, len(lines)) and not lines[below].strip():
        below += 1
    new = CONTEXT_NEW.match(lines[below]) if below < len(lines) else None
    if not new:
        return _before_blanks(lines, i + 2, stop)
    end = _half_end(lines, below + 1, new)
    only_deleted = "-" in marks and "!" not in marks
    if only_deleted and not any(line[:1] == "+" for line in lines[below + 1 : end]):
        return below + 1
    return end


def _file_names_end(lines: Sequence[str], i: int) -> int:
    """Match the two lines with file names; a long one may be wrapped."""
    for mark, other in (("--- ", "+++ "), ("*** ", "--- ")):
        if lines[i].startswith(mark):
            for x in range(i + 1, min(i + 3, len(lines))):
                if lines[x].startswith(other) and (
                    x == i + 1 or len(lines[i]) >= _NAME_WRAPPED_AFTER
                ):
                    wrapped = len(lines[x]) >= _NAME_WRAPPED_AFTER and any(
                        _UNIFIED.match(line) or STARS.match(line) for line in lines[x + 2 : x + 3]
                    )
                    return x + 2 if wrapped else x + 1
    return i


def _normal_end(lines: Sequence[str], i: int) -> int:
    """Match a change of plain diff: "3,4c3", lines with "<", "---" and lines with ">"."""
    match = PLAIN_CHANGE.match(lines[i])
    if not match:
        return i
    old = count_lines(match[1], match[2]) if match[3] != "a" else 0
    new = count_lines(match[4], match[5]) if match[3] != "d" else 0
    stop = _signed_end(lines, i + 1, "<", old)
    if old and new and stop < len(lines) and lines[stop].rstrip() == "---":
        stop += 1
    stop = _signed_end(lines, stop, ">", new)
    return stop if stop > i + 1 else i


def binary_end(lines: Sequence[str], i: int) -> int:
    """Match git's base85: "literal" or "delta", lines and a blank line; then the reverse patch."""
    if lines[i].rstrip() != "GIT binary patch":
        return i
    i += 1
    while i < len(lines) and lines[i].startswith(("literal ", "delta ")):
        i += 1
        while i < len(lines) and _BASE85.match(lines[i]):
            i += 1
        while i < len(lines) and not lines[i].strip():
            i += 1
    return i


def _is_blank(line: str) -> bool:
    return line.isspace() or line in _QUOTED_PRINTABLE


def _is_wrapped(lines: Sequence[str], i: int) -> bool:
    """Return whether line i, unmarked and not blank, is the wrapped end of the line above."""
    word = lines[i].split(None, 1)[0]
    if word.startswith(_NEXT_HUNK) or len(lines[i - 1]) + 1 + len(word) < _WRAPPED_AFTER:
        return False
    below = next((line for line in lines[i + 1 : i + 3] if line), "")
    return below[:1] in {"+", "-", " "} or lines[i - 1].endswith("=")  # quoted-printable


def count_lines(first: str, last: str | None) -> int:
    """Return the number of lines of a range "3,7" or "3" in a context or plain diff."""
    return int(last) - int(first) + 1 if last else int(first != "0")


def _half_end(lines: Sequence[str], i: int, counts: re.Match[str]) -> int:
    """Return the line after the announced lines, or an earlier header of the other half."""
    stop = min(len(lines), i + count_lines(counts[1], counts[2]))
    for x in range(i, stop):
        line = lines[x]
        if CONTEXT_NEW.match(line) or STARS.match(line):
            return x
        if not _CONTEXT_LINE.match(line) and not (x > i and _is_wrapped(lines, x)):
            return _before_blanks(lines, i, x)
    return max(i, stop)


def _before_blanks(lines: Sequence[str], i: int, stop: int) -> int:
    while stop > i and not lines[stop - 1].strip():
        stop -= 1
    return stop


def _signed_end(lines: Sequence[str], i: int, sign: str, count: int) -> int:
    stop = min(len(lines), i + count)
    while i < stop and lines[i][:1] == sign:
        i += 1
    return i


def _stat_end(lines: Sequence[str], i: int) -> int:
    """Match a diffstat with its sum, and the "---" that git writes above it.

    The sum is required, because rows of a table by a database client look the same. A diffstat
    never begins at a row below another row; this keeps long tables linear.
    """
    start = i
    if i and _STAT.match(lines[i - 1]):
        return start
    if lines[i].rstrip() == "---":
        i += 1
    first = i
    while i < len(lines) and _STAT.match(lines[i]):
        i += 1
    if i in {first, len(lines)} or not _STAT_SUM.match(lines[i]):
        return start
    i += 1
    while i < len(lines) and _STAT_MODE.match(lines[i]):
        i += 1
    return i


def _mercurial_end(lines: Sequence[str], i: int) -> int:
    """Match the header of hg export; the commit message below does not belong to the diff."""
    if not lines[i].startswith("# HG changeset patch"):
        return i
    while i < len(lines) and _MERCURIAL.match(lines[i]):
        i += 1
    return i


_PIECES = (
    _unified_end,
    _combined_end,
    _context_end,
    _file_names_end,
    _normal_end,
    binary_end,
    _stat_end,
    _mercurial_end,
)
_START = re.compile(
    r"@@@{0,20} -|\*\*\*|---(?: |$)|diff |Index: |GIT binary patch|={60}|"
    r"\d{1,9}(?:,\d{1,9})?[acd]\d|# HG changeset|(?:Modified|Added|Deleted|RCS file): \S|"
    r" \S[^|\n]{0,200}+\| "
)
_START_CHARACTERS = frozenset("@*-dIG=0123456789#MADR ")
_BLANKS = frozenset(" \t")
_INDENTED = re.compile(
    r"[ \t]{1,16}(?:@@ -\d{1,9}(?:,\d{1,9})? \+\d{1,9}(?:,\d{1,9})? @@|@@@{1,20} -\d|\*{15}|"
    r"diff -|Index: \S|--- \S|\*\*\* \S)"
)
_HEADER = re.compile(
    r"diff -|Index: \S|={60,}\s*$|RCS file: |retrieving revision |cvs diff|"
    r"index [0-9a-f,]+\.\.|mode \d{6},[\d,]+\.\.|new file mode |deleted file mode |"
    r"old mode |new mode |similarity index |dissimilarity index |rename (?:from|to) |"
    r"copy (?:from|to) |Binary files |"
    r"(?:Modified|Added|Deleted): \S"
)
_NAMES = ("--- ", "*** ")


def mark_patches(lines: Sequence[str], kinds: list[str]) -> None:
    """Mark diffs as "patch", with file headers and diffstat, without the commit message."""
    firsts = [line[:1] for line in lines]
    for start, stop in _find_diffs(lines, firsts):
        kinds[start:stop] = ["patch"] * (stop - start)
    done = 0
    indented = [
        i for i in _find_lines(firsts, _BLANKS) if kinds[i] != "patch" and _INDENTED.match(lines[i])
    ]
    for i in indented:
        if i < done or kinds[i] == "patch":
            continue
        shift = lines[i][: len(lines[i]) - len(lines[i].lstrip(" \t"))]
        done = i + 1
        while done < len(lines) and (lines[done].startswith(shift) or not lines[done].strip()):
            done += 1
        shifted = [line[len(shift) :] for line in lines[i:done]]
        for start, stop in _find_diffs(shifted, [line[:1] for line in shifted]):
            kinds[i + start : i + stop] = ["patch"] * (stop - start)


def _find_lines(firsts: Iterable[str], characters: frozenset[str]) -> Iterator[int]:
    return compress(count(), map(characters.__contains__, firsts))


def _find_diffs(lines: Sequence[str], firsts: Iterable[str]) -> Iterator[tuple[int, int]]:
    """Yield the first line of each diff that is not indented, and the line after the diff."""
    done = 0
    for i in _find_lines(firsts, _START_CHARACTERS):
        is_prose = lines[i][0] == " " and "| " not in lines[i]  # indented, but no diffstat
        if i < done or is_prose or not _START.match(lines[i]):
            continue
        first, header_end = i, _header_end(lines, i)
        stop = _piece_end(lines, header_end)
        if stop == header_end:  # no diff follows: prose, unless git wrote the header
            written = (x for x in range(i, header_end) if lines[x].startswith("diff --git "))
            first = next(written, header_end)
        yield first, stop
        done = max(stop, i + 1)


def _header_end(lines: Sequence[str], i: int) -> int:
    while i < len(lines) and (_HEADER.match(lines[i]) or _is_wrapped_header(lines, i)):
        i += 1
    return i


def _is_wrapped_header(lines: Sequence[str], i: int) -> bool:
    if not i or len(lines[i - 1]) < _WRAPPED_AFTER or not _HEADER.match(lines[i - 1]):
        return False
    if lines[i].startswith(_NAMES):
        return False
    return any(_HEADER.match(x) or x.startswith(_NAMES) for x in lines[i + 1 : i + 2])


def _piece_end(lines: Sequence[str], i: int) -> int:
    if i < len(lines):
        for piece_end in _PIECES:
            stop = piece_end(lines, i)
            if stop > i:
                return stop
    return i
