"""Find the lines of a body that belong to a diff: unified, context or normal.

Diffs are recognised by their own arithmetic, the line counts that every hunk announces
(`hunks`), so prose after the last hunk is never swallowed. Context diffs matter: they were the
house style of the PostgreSQL lists for their first fifteen years.
"""

import re
from collections.abc import Iterator, Sequence

from mail_assets.mail.body.hunks import (
    binary_end,
    context_end,
    file_names_end,
    mercurial_end,
    normal_end,
    stat_end,
    unified_end,
)

_PIECES = (
    unified_end,
    context_end,
    file_names_end,
    normal_end,
    binary_end,
    stat_end,
    mercurial_end,
)
_START = re.compile(
    r"@@ -|\*\*\*|---(?: |$)|diff |Index: |GIT binary patch|={60}|\d+(?:,\d+)?[acd]\d|"
    r"# HG changeset|(?:Modified|Added|Deleted|RCS file): \S|"
    r" \S[^|\n]{0,200}+\| "
)
_START_CHARACTERS = frozenset("@*-dIG=0123456789#MADR ")
_BLANKS = frozenset(" \t")
_INDENTED = re.compile(
    r"[ \t]{1,16}(?:@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@|\*{15}|diff -|Index: \S|--- \S|\*\*\* \S)"
)
_HEADER = re.compile(
    r"diff -|Index: \S|={60,}\s*$|RCS file: |retrieving revision |cvs diff|"
    r"index [0-9a-f]+\.\.|new file mode |deleted file mode |old mode |new mode |"
    r"similarity index |dissimilarity index |rename (?:from|to) |copy (?:from|to) |Binary files |"
    r"(?:Modified|Added|Deleted): \S"
)
_NAMES = ("--- ", "*** ")
_WRAPPED_AFTER = 60


def mark_patches(lines: Sequence[str], kinds: list[str]) -> None:
    """Give the kind "patch" to the lines (without their ends) that belong to a diff.

    The file header lines count as diff, and the diffstat; the commit message does not.
    """
    for start, stop in _find_diffs(lines):
        kinds[start:stop] = ["patch"] * (stop - start)
    done = 0
    for i in [i for i, line in enumerate(lines) if line[:1] in _BLANKS and _INDENTED.match(line)]:
        if i < done or kinds[i] == "patch":
            continue
        shift = lines[i][: len(lines[i]) - len(lines[i].lstrip(" \t"))]
        done = i + 1
        while done < len(lines) and (lines[done].startswith(shift) or not lines[done].strip()):
            done += 1
        shifted = [line[len(shift) :] for line in lines[i:done]]
        for start, stop in _find_diffs(shifted):
            kinds[i + start : i + stop] = ["patch"] * (stop - start)


def _find_diffs(lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield the first line of each diff that begins in the first column, and the one behind it."""
    done = 0
    for i in [i for i, line in enumerate(lines) if line[:1] in _START_CHARACTERS]:
        if i < done or not _START.match(lines[i]):
            continue
        first, header_end = i, _header_end(lines, i)
        stop = _piece_end(lines, header_end)
        if stop == header_end:  # no diff follows: prose can look alike, save for what git writes
            written = (x for x in range(i, header_end) if lines[x].startswith("diff --git "))
            first = next(written, header_end)
        yield first, stop
        done = max(stop, i + 1)


def _header_end(lines: Sequence[str], i: int) -> int:
    """Return the line behind the file headers at i; one of their lines may be wrapped."""
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
    """Return the line after the piece of a diff that starts at i, or i where none does."""
    if i < len(lines):
        for piece_end in _PIECES:
            stop = piece_end(lines, i)
            if stop > i:
                return stop
    return i
