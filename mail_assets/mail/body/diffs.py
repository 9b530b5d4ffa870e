"""Read the hunks of diffs, and find the lines of a body that belong to diffs.

Diffs are unified, combined, context, plain ("normal") or binary ones of git. Context diffs matter:
the PostgreSQL lists used them for their first fifteen years. Every hunk announces its line counts,
so prose below it is never taken for a part of it. A mail program may have wrapped long lines, or
removed the blank of an empty context line. Such lines are mended, and `fault` is the reason why git
would refuse them. Time is linear in the text.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from mail_assets.mail.body.lines import PATCH, BodyLines, first_characters

_UNIFIED = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@", re.A)
_COMBINED = re.compile(
    r"@@(@{1,20})((?: -\d{1,9}(?:,\d{1,9})?){2,21}) \+\d{1,9}(?:,(\d{1,9}))? @@\1(?!@)", re.A
)
_OLD_COUNT = re.compile(r" -\d{1,9}(?:,(\d{1,9}))?", re.A)
_STARS = "*" * 15
_CONTEXT_OLD = re.compile(r"\*\*\* (\d{1,9})(?:,(\d{1,9}))? \*{4}\s*$", re.A)
_CONTEXT_NEW = re.compile(r"--- (\d{1,9})(?:,(\d{1,9}))? -{4}\s*$", re.A)
_CONTEXT_LINE = re.compile(r"[ !+-](?:[ \t]|$)|\s*$")
_PLAIN = re.compile(r"(\d{1,9})(?:,(\d{1,9}))?([acd])(\d{1,9})(?:,(\d{1,9}))?\s*$", re.A)
_BASE85 = re.compile(r"[A-Za-z][0-9A-Za-z!#-&(-+;-@^-`{-~-]{0,66}\s*$")
_BLANK_MARKS = " \t\xa0"  # some programs write no-break blanks
_MARKS = frozenset({"", *_BLANK_MARKS, "+", "-", "\\"})  # first characters of lines of a hunk
_NEXT = ("@@", "diff ")
_HEADS = ("@@ -", "@@@", _STARS)  # beginnings of hunks
_QUOTED_PRINTABLE = frozenset({"=20", "=09", "=A0"})  # an empty context line, not decoded
#: Columns of a line that may be wrapped; mail programs wrap at 72 to 80.
WRAPPED_AFTER = 60
_LONGEST = 5_000  # characters of a line that others are joined to, so that the time stays linear
_NAME_WRAPPED_AFTER = 50  # columns of a file name; part of the time after it may be wrapped


@dataclass(slots=True)
class Hunk:
    """A hunk: its position in both files, and its lines with their signs."""

    form: str  # "unified", "combined", "context" or "plain"
    function: str  # text after the second @@
    stop: int  # the line of the text after it
    old_start: int = 0
    old_count: int = 0
    new_start: int = 0
    new_count: int = 0
    lines: list[str] = field(default_factory=list)  # each begins with " ", "-", "+" or "\\"
    fault: str = ""  # the first reason why git would refuse it
    mended: bool = False  # wrapped lines were joined

    def note(self, at: int, fault: str) -> None:
        """Note a fault, with the number of its line."""
        self.fault = self.fault or f"line {at + 1}: {fault}"

    def join(self, lines: Sequence[str], at: int) -> None:
        """Join a wrapped line to the line above it, up to _LONGEST characters."""
        self.note(at, "a line is wrapped")
        self.mended = True
        if len(self.lines[-1]) < _LONGEST:
            self.lines[-1] = f"{self.lines[-1].rstrip()} {lines[at].strip()}"


class FileNames(NamedTuple):
    """The two lines above the hunks of a file, without their marks."""

    old: str
    new: str
    stop: int  # the line after them
    is_wrapped: bool


def read_names(lines: Sequence[str], at: int) -> FileNames | None:
    """Read the two lines with file names; a long one may be wrapped."""
    for mark, other in (("--- ", "+++ "), ("*** ", "--- ")):
        if not lines[at].startswith(mark):
            continue
        last = at + 2 if len(lines[at]) >= _NAME_WRAPPED_AFTER else at + 1
        for below in range(at + 1, min(last + 1, len(lines))):
            if lines[below].startswith(other):
                old = " ".join([lines[at][len(mark) :], *lines[at + 1 : below]])
                stop = below + 1
                if len(lines[below]) >= _NAME_WRAPPED_AFTER and not begins_hunk(lines, stop):
                    stop += begins_hunk(lines, stop + 1)
                return FileNames(old, lines[below][len(other) :], stop, stop > at + 2)
    return None


def begins_hunk(lines: Sequence[str], at: int) -> bool:
    """Return whether a line begins a hunk with a head of signs."""
    return at < len(lines) and lines[at].startswith(_HEADS)


def read_hunk(lines: Sequence[str], at: int) -> Hunk | None:
    """Read the hunk that begins at a line."""
    first = lines[at][:1]
    if first == "@":
        return _read_unified(lines, at) or _read_combined(lines, at)
    if first == "*":
        return _read_context(lines, at)
    return _read_plain(lines, at) if first.isdigit() else None


def _read_unified(lines: Sequence[str], at: int) -> Hunk | None:
    """Read a hunk of diff -u: "@@ -1,5 +1,5 @@"."""
    head = _read_head(lines, at, "unified", _UNIFIED)
    if head is None:
        return None
    match, hunk = head
    old, new = hunk.old_count, hunk.new_count = int(match[2] or 1), int(match[4] or 1)
    hunk.old_start, hunk.new_start = int(match[1]), int(match[3])
    at = hunk.stop
    while at < len(lines) and (old > 0 or new > 0):
        line = lines[at]
        mark = line[:1]
        if mark == "+":
            new -= 1
        elif mark == "-":
            old -= 1
        elif mark == " ":
            old, new = old - 1, new - 1
        elif not line:
            if at + 1 == len(lines):
                break  # the end of the text
            line, old, new = " ", old - 1, new - 1
        elif mark in _BLANK_MARKS or _is_blank(line):
            hunk.note(at, "the first blank of a line is lost")
            line, old, new = f" {line}", old - 1, new - 1
        elif mark != "\\":
            if hunk.lines and _is_wrapped(lines, at):
                hunk.join(lines, at)
                at += 1
                continue
            hunk.note(at, "a hunk ends before the lines that its head announces")
            break
        hunk.lines.append(line)
        at += 1
    if (old > 0 or new > 0) and at >= len(lines) - 1:
        hunk.note(at, "the diff ends within a hunk")
    elif old < 0 or new < 0:
        hunk.note(at, "a hunk has more lines than its head announces")
    return _end(hunk, lines, at)


def _read_combined(lines: Sequence[str], at: int) -> Hunk | None:
    """Read a hunk of a merge: "@@@ -1,5 -1,5 +1,5 @@@", with a column of signs for each parent."""
    head = _read_head(lines, at, "combined", _COMBINED)
    if head is None:
        return None
    match, hunk = head
    old = [int(count or 1) for count in _OLD_COUNT.findall(match[2])]
    new = int(match[3] or 1)
    if len(old) != len(match[1]) + 1:
        return None
    at = hunk.stop
    while at < len(lines) and (new > 0 or max(old) > 0):
        line = lines[at]
        signs = line[: len(old)]
        if not signs.strip(f"+-{_BLANK_MARKS}") or _is_blank(line):
            gone = "-" in signs  # only parents with the sign have the line
            new -= not gone
            for parent, sign in enumerate(signs.ljust(len(old))):
                old[parent] -= sign == "-" if gone else sign != "+"
        elif signs[0] != "\\":
            if not hunk.lines or not _is_wrapped(lines, at):
                break
            hunk.join(lines, at)
            at += 1
            continue
        hunk.lines.append(line or " ")
        at += 1
    return _end(hunk, lines, at)


def _read_head(
    lines: Sequence[str], at: int, form: str, pattern: re.Pattern[str]
) -> tuple[re.Match[str], Hunk] | None:
    """Return the match of a hunk's head, and the hunk without its lines.

    A mail program may have wrapped the head: its rest is in up to two unmarked lines above the
    first line of the diff.
    """
    text, stop = lines[at], at + 1
    if text[:2] != "@@":
        return None
    match = pattern.match(text)
    mended = False
    if not match and len(text) <= WRAPPED_AFTER and stop < len(lines):
        text, stop, mended = f"{text.rstrip()} {lines[stop]}", stop + 1, True
        match = pattern.match(text)
    if not match:
        return None
    hunk = Hunk(form, text[match.end() :].strip(), stop, mended=mended)
    if hunk.function:
        rest = stop
        while rest < min(stop + 2, len(lines)) and _is_unmarked(lines[rest]):
            rest += 1
        below = next((line for line in lines[rest : rest + 2] if line), "#")
        if rest > stop and below[:1] in _MARKS:
            hunk.note(stop - 1, "the head of a hunk is wrapped")
            hunk.function = " ".join([hunk.function, *map(str.strip, lines[stop:rest])])
            hunk.stop, hunk.mended = rest, True
    return match, hunk


def _end(hunk: Hunk, lines: Sequence[str], at: int) -> Hunk:
    """End a hunk above a line, with its newline note and a wrapped last line."""
    if at < len(lines) and lines[at].startswith("\\ "):
        hunk.lines.append(lines[at])
        at += 1
    elif (
        hunk.lines
        and at + 1 < len(lines)
        and lines[at + 1].startswith(_NEXT)
        and _is_unmarked(lines[at])
        and len(lines[at - 1]) >= WRAPPED_AFTER
    ):
        hunk.join(lines, at)
        at += 1
    hunk.stop = at
    return hunk


def _is_unmarked(line: str) -> bool:
    return line[:1] not in _MARKS and not line.startswith(_NEXT) and not _is_blank(line)


def _is_blank(line: str) -> bool:
    return line.isspace() or line in _QUOTED_PRINTABLE


def _is_wrapped(lines: Sequence[str], at: int) -> bool:
    """Return whether a line, unmarked and not blank, is the wrapped end of the line above."""
    line, above = lines[at], lines[at - 1]
    word = line.split(None, 1)[0]
    if line.startswith(_NEXT) or len(above) + 1 + len(word) < WRAPPED_AFTER:
        return False
    below = next((text for text in lines[at + 1 : at + 3] if text), "")
    return below[:1] in {"+", "-", " ", "!", "@"} or above.endswith("=")  # quoted-printable


def _read_context(lines: Sequence[str], at: int) -> Hunk | None:
    """Read a hunk of diff -c as a unified one; a half without changes has no lines."""
    if not lines[at].startswith(_STARS) or at + 1 >= len(lines):
        return None
    old_head = _CONTEXT_OLD.match(lines[at + 1])
    if not old_head:
        return None
    start = int(old_head[1])
    hunk = Hunk("context", lines[at].lstrip("*").strip(), at, old_start=start, new_start=start)
    stop = _read_half(hunk, lines, at + 2, old_head)
    old, hunk.lines = hunk.lines, []
    below = stop
    while below < len(lines) and not lines[below].strip():
        below += 1
    if below < len(lines) and (new_head := _CONTEXT_NEW.match(lines[below])):
        hunk.new_start = int(new_head[1])
        hunk.stop = _read_half(hunk, lines, below + 1, new_head)
        only_removed = {line[0] for line in old} & {"-", "!"} == {"-"}
        if only_removed and not any(line[0] == "+" for line in hunk.lines):
            hunk.lines, hunk.stop = [], below + 1
    else:
        hunk.note(below, "a hunk of a context diff without its second half")
        hunk.stop = _before_blanks(lines, at + 2, stop)
    hunk.lines = [*_unite(old, hunk.lines)]
    return hunk


def _read_half(hunk: Hunk, lines: Sequence[str], at: int, counts: re.Match[str]) -> int:
    """Read the announced lines, or those above the header of the other half."""
    first, count = at, _count_lines(counts[1], counts[2])
    while at < len(lines) and len(hunk.lines) < count:
        line = lines[at]
        if _CONTEXT_NEW.match(line) or line.startswith(_STARS):
            break
        if _CONTEXT_LINE.match(line):
            hunk.lines.append(line or "  ")
        elif line[0] == "\t":
            hunk.lines.append(f"  {line}")
        elif hunk.lines and _is_wrapped(lines, at):
            hunk.join(lines, at)
        else:
            return _before_blanks(lines, first, at)
        at += 1
    return at + (at < len(lines) and lines[at].startswith("\\ "))


def _before_blanks(lines: Sequence[str], first: int, stop: int) -> int:
    while stop > first and not lines[stop - 1].strip():
        stop -= 1
    return stop


def _unite(old: list[str], new: list[str]) -> Iterator[str]:
    """Yield the two halves of a context hunk as the lines of a unified one."""
    if not new:
        new = [line for line in old if line[0] == " "]
    elif not old:
        old = [line for line in new if line[0] == " "]
    at = 0
    for line in old:
        if line[0] in "-!":
            yield f"-{line[2:]}"
            continue
        while at < len(new) and new[at][0] in "+!":
            yield f"+{new[at][2:]}"
            at += 1
        at += 1  # the same line of context
        yield f" {line[2:]}"
    yield from (f"+{line[2:]}" for line in new[at:] if line[0] in "+!")


def _read_plain(lines: Sequence[str], at: int) -> Hunk | None:
    """Read a change of diff without options: "3,4c3", lines with "<", "---" and lines with ">"."""
    head = _PLAIN.match(lines[at])
    if not head:
        return None
    old = _count_lines(head[1], head[2]) if head[3] != "a" else 0
    new = _count_lines(head[4], head[5]) if head[3] != "d" else 0
    removed, stop = _read_signed(lines, at + 1, "<", old)
    if old and new and stop < len(lines) and lines[stop].rstrip() == "---":
        stop += 1
    added, stop = _read_signed(lines, stop, ">", new)
    if not removed and not added:
        return None
    changes = [*(f"-{line}" for line in removed), *(f"+{line}" for line in added)]
    return Hunk("plain", "", stop, int(head[1]), old, int(head[4]), new, changes)


def _read_signed(lines: Sequence[str], at: int, sign: str, count: int) -> tuple[list[str], int]:
    stop = at
    while stop < min(at + count, len(lines)) and lines[stop][:1] == sign:
        stop += 1
    return [line[2:] for line in lines[at:stop]], stop


def _count_lines(first: str, last: str | None) -> int:
    """Return the number of lines of a range "3,7" or "3" in a context or plain diff."""
    return int(last) - int(first) + 1 if last else int(first != "0")


def binary_end(lines: Sequence[str], at: int) -> int:
    """Return the line below git's base85, `at` if none begins there.

    That is "literal" or "delta", lines and a blank line; then the reverse patch.
    """
    if lines[at].rstrip() != "GIT binary patch":
        return at
    at += 1
    while at < len(lines) and lines[at].startswith(("literal ", "delta ")):
        at += 1
        while at < len(lines) and _BASE85.match(lines[at]):
            at += 1
        while at < len(lines) and not lines[at].strip():
            at += 1
    return at


# --- lines of a body ---

_MERCURIAL = re.compile(r"# (?:HG changeset patch|User |Date |Node ID |Parent |Branch )")
# " src/f.c | 12 ++--" and the lines that git writes below
_STAT = re.compile(r" \S[^|\n]{0,200}\|\s{1,9}(?:\d{1,9}\s?[+-]{0,99}|Bin\b[^\n]{0,60})\s{0,9}$")
_STAT_SUM = re.compile(r" ?\d{1,9} files? changed(?:, \d{1,9} (?:insertion|deletion)|\s*$)")
_STAT_MODE = re.compile(r" (?:(?:create|delete) mode \d{6} |rename \S|copy \S|mode change )")
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
