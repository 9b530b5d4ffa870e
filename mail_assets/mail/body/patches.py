"""Find the lines of a body that belong to a diff: unified, context or normal.

Diffs are recognised by their own arithmetic, the line counts that every hunk announces,
so prose after the last hunk is never swallowed. Context diffs matter: they were the house
style of the PostgreSQL lists for their first fifteen years.
"""

import re
from collections.abc import Sequence

_START = re.compile(r"@@ -|\*\*\*|--- |diff |Index: |GIT binary patch|={60}|\d+(?:,\d+)?[acd]\d")
_HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")
_CONTEXT_HUNK = re.compile(r"\*{15}")
_CONTEXT_OLD = re.compile(r"\*\*\* (\d+)(?:,(\d+))? \*{4}\s*$")
_CONTEXT_NEW = re.compile(r"--- (\d+)(?:,(\d+))? -{4}\s*$")
_CONTEXT_LINE = re.compile(r"[ !+-](?:[ \t]|$)|\\|\s*$")
_NORMAL = re.compile(r"\d+(?:,\d+)?[acd]\d+(?:,\d+)?\s*$")
_HEADER = re.compile(
    r"diff -|Index: \S|={60,}\s*$|RCS file: |retrieving revision |"
    r"index [0-9a-f]+\.\.|new file mode |deleted file mode |old mode |new mode |"
    r"similarity index |dissimilarity index |rename (?:from|to) |copy (?:from|to) |Binary files "
)
_WRAPPED_AFTER = 60  # a mailer wraps at 72 to 80 columns, so a continuation follows a long line


def find_patch_lines(lines: Sequence[str]) -> list[bool]:
    """Tell for each line (without its line end) whether it belongs to a diff.

    The file header lines count as diff; the commit message and the diffstat do not.
    """
    marks = [False] * len(lines)
    i = 0
    while i < len(lines):
        if not _START.match(lines[i]):
            i += 1
            continue
        first, header_end = i, _header_end(lines, i)
        stop = _piece_end(lines, header_end)
        if stop == header_end:  # no diff follows: prose can look alike, save for what git writes
            written = (x for x in range(i, header_end) if lines[x].startswith("diff --git "))
            first = next(written, header_end)
        marks[first:stop] = [True] * (stop - first)
        i = max(stop, i + 1)
    return marks


def _header_end(lines: Sequence[str], i: int) -> int:
    while i < len(lines) and _HEADER.match(lines[i]):
        i += 1
    return i


def _piece_end(lines: Sequence[str], i: int) -> int:
    """Return the line after the piece of a diff that starts at i, or i where none does."""
    if i < len(lines):
        for piece_end in (_unified_end, _context_end, _file_names_end, _normal_end, _binary_end):
            stop = piece_end(lines, i)
            if stop > i:
                return stop
    return i


def _unified_end(lines: Sequence[str], i: int) -> int:
    match = _HUNK.match(lines[i])
    if not match:
        return i
    old, new = int(match[1] or 1), int(match[2] or 1)
    i += 1
    while i < len(lines) and (old > 0 or new > 0):
        mark = lines[i][:1]
        if mark in " \t":  # "" too: mailers strip the blank of an empty context line
            old, new = old - 1, new - 1
        elif mark == "-":
            old -= 1
        elif mark == "+":
            new -= 1
        elif mark != "\\" and not _is_wrapped(lines, i):
            break
        i += 1
    if i < len(lines) and lines[i].startswith("\\ No newline"):
        i += 1
    return i


def _is_wrapped(lines: Sequence[str], i: int) -> bool:
    """Tell whether line i, inside a hunk but unmarked, is the wrapped rest of the one above."""
    following = lines[i + 1] if i + 1 < len(lines) else ""
    return len(lines[i - 1]) >= _WRAPPED_AFTER and following[:1] in {"+", "-", " "}


def _context_end(lines: Sequence[str], i: int) -> int:
    if not _CONTEXT_HUNK.match(lines[i]) or i + 1 >= len(lines):
        return i
    old = _CONTEXT_OLD.match(lines[i + 1])
    if not old:
        return i
    stop = _context_half_end(lines, i + 2, old)
    new = _CONTEXT_NEW.match(lines[stop]) if stop < len(lines) else None
    return _context_half_end(lines, stop + 1, new) if new else stop


def _context_half_end(lines: Sequence[str], i: int, counts: re.Match[str]) -> int:
    """Consume at most the announced lines; a half without changes of its own is left out."""
    first, last = int(counts[1]), int(counts[2] or counts[1])
    stop = min(len(lines), i + (last - first + 1 if last else 0))
    end = i
    for x in range(i, stop):
        if not _CONTEXT_LINE.match(lines[x]):
            break
        if lines[x].strip():
            end = x + 1
    return end


def _file_names_end(lines: Sequence[str], i: int) -> int:
    following = lines[i + 1] if i + 1 < len(lines) else ""
    unified = lines[i].startswith("--- ") and following.startswith("+++ ")
    context = lines[i].startswith("*** ") and following.startswith("--- ")
    return i + 2 if unified or context else i


def _normal_end(lines: Sequence[str], i: int) -> int:
    if not _NORMAL.match(lines[i]) or i + 1 >= len(lines) or lines[i + 1][:1] not in {"<", ">"}:
        return i
    i += 1
    while i < len(lines) and (lines[i][:1] in {"<", ">"} or lines[i].rstrip() == "---"):
        i += 1
    return i


def _binary_end(lines: Sequence[str], i: int) -> int:
    """git's base85: "literal" or "delta", lines, a blank line, and once more for the way back."""
    if lines[i].rstrip() != "GIT binary patch":
        return i
    i += 1
    while i < len(lines) and lines[i].startswith(("literal ", "delta ")):
        while i < len(lines) and lines[i].strip():
            i += 1
        while i < len(lines) and not lines[i].strip():
            i += 1
    return i
