"""Find the lines of a body that belong to a diff: unified, combined, context or normal.

Context diffs matter: the PostgreSQL lists used them for their first fifteen years.

Each function `..._end` returns the line after the piece of a diff that begins at line i, or i if
none begins there. A piece ends where the lines no longer look like the diff, so prose after it
stays text.
"""

import re
from collections.abc import Iterator, Sequence

from mail_assets.mail.body.hunks import WRAPPED_AFTER, binary_end, read_hunk, read_names
from mail_assets.mail.body.lines import PATCH, BodyLines, first_characters

_MERCURIAL = re.compile(r"# (?:HG changeset patch|User |Date |Node ID |Parent |Branch )")
# " src/f.c | 12 ++--" and the lines that git writes below
_STAT = re.compile(r" \S[^|\n]{0,200}\|\s{1,9}(?:\d{1,9}\s?[+-]{0,99}|Bin\b[^\n]{0,60})\s{0,9}$")
_STAT_SUM = re.compile(r" ?\d{1,9} files? changed(?:, \d{1,9} (?:insertion|deletion)|\s*$)")
_STAT_MODE = re.compile(r" (?:(?:create|delete) mode \d{6} |rename \S|copy \S|mode change )")


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


_START = re.compile(
    r"@@@{0,20} -|\*\*\*|---(?: |$)|diff |Index: |GIT binary patch|={60}|"
    r"\d{1,9}(?:,\d{1,9})?[acd]\d|# HG changeset|(?:Modified|Added|Deleted|RCS file): \S|"
    r" \S[^|\n]{0,200}+\| "
)
_START_CHARACTERS = re.compile(rb"[@*\-dIG=0-9#MADR ]")
_BLANK = re.compile(rb"[ \t]")
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


def mark_patches(body: BodyLines) -> None:
    """Mark diffs as patches, with file headers and diffstat, without the commit message."""
    lines, kinds = body.lines, body.kinds
    for start, stop in _find_diffs(lines, body.firsts):
        _mark(body, start, stop)
    done = 0
    for i in body.that_begin(_BLANK):
        if i < done or kinds[i] == PATCH or not _INDENTED.match(lines[i]):
            continue
        shift = lines[i][: len(lines[i]) - len(lines[i].lstrip(" \t"))]
        done = i + 1
        while done < len(lines) and (lines[done].startswith(shift) or not lines[done].strip()):
            done += 1
        shifted = [line[len(shift) :] for line in lines[i:done]]
        for start, stop in _find_diffs(shifted, first_characters(shifted)):
            _mark(body, i + start, i + stop)


def _mark(body: BodyLines, start: int, stop: int) -> None:
    count = max(stop - start, 0)
    body.kinds[start : start + count] = bytes((PATCH,)) * count
    body.firsts[start : start + count] = b"\n" * count


def _find_diffs(lines: Sequence[str], firsts: bytearray) -> Iterator[tuple[int, int]]:
    """Yield the first line of each diff that is not indented, and the line after the diff."""
    at = 0
    while found := _START_CHARACTERS.search(firsts, at):
        i = found.start()
        at = i + 1
        is_prose = lines[i][0] == " " and "| " not in lines[i]  # indented, but no diffstat
        if is_prose or not _START.match(lines[i]):
            continue
        first, header_end = i, _header_end(lines, i)
        stop = _piece_end(lines, header_end)
        if stop == header_end:  # no diff follows: prose, unless git wrote the header
            written = (x for x in range(i, header_end) if lines[x].startswith("diff --git "))
            first = next(written, header_end)
        yield first, stop
        at = max(stop, at)


def _header_end(lines: Sequence[str], i: int) -> int:
    while i < len(lines) and (_HEADER.match(lines[i]) or _is_wrapped_header(lines, i)):
        i += 1
    return i


def _is_wrapped_header(lines: Sequence[str], i: int) -> bool:
    if not i or len(lines[i - 1]) < WRAPPED_AFTER or not _HEADER.match(lines[i - 1]):
        return False
    if lines[i].startswith(_NAMES):
        return False
    return any(_HEADER.match(x) or x.startswith(_NAMES) for x in lines[i + 1 : i + 2])


def _piece_end(lines: Sequence[str], i: int) -> int:
    if i == len(lines):
        return i
    if piece := read_hunk(lines, i) or read_names(lines, i):
        return piece.stop
    ends = (end(lines, i) for end in (binary_end, _stat_end, _mercurial_end))
    return next((end for end in ends if end > i), i)
