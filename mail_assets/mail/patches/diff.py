"""Read diffs: unified, git's, combined, context and plain ones, into files and hunks.

Diffs in mail may be damaged: wrapped lines, lost blanks, a wrong count. Everything readable is
read; `fault` is the reason why git would refuse the text. Time is linear in the text.
"""

import re
from collections.abc import Iterator, Sequence

from mail_assets.mail.body.patches import (
    COMBINED_HUNK,
    CONTEXT_NEW,
    CONTEXT_OLD,
    OLD_COUNT,
    PLAIN_CHANGE,
    STARS,
    binary_end,
    count_lines,
)
from mail_assets.mail.patches.patch import (
    NO_FILE,
    Diff,
    FileDiff,
    Hunk,
    last_name,
    plain_names,
    read_name,
    split_names,
    unquote,
)

_HUNK = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@(.*)", re.A | re.S)
_EXTENDED = re.compile(
    r"(?:old mode|new mode|new file mode|deleted file mode|similarity index|dissimilarity index|"
    r"rename from|rename to|copy from|copy to|rename old|rename new|index) "
)
_BINARY = re.compile(r"(?:Binary files |Files |GIT binary patch\s{0,9}\Z)")
_EPOCH = re.compile(
    r"\s(?:1970-01-01|1969-12-31|Thu Jan +1 0\d:00:00 1970|\w{3} \w{3} +\d+ [\d:]+ 1970)"
)
_WRAPPED_AFTER = 60  # characters of a line that may be wrapped; mail programs wrap at 72 to 80


def read_diff(text: str) -> Diff:
    """Read every file that a text changes; other text is skipped."""
    lines = text.split("\n")
    if "\r" in text:
        lines = [line.removesuffix("\r") for line in lines]
    return read_diff_lines(lines)


def read_diff_lines(lines: Sequence[str]) -> Diff:
    """Read a diff from lines without their ends."""
    return _Reader(lines).read()


class _Reader:
    """Reads lines forwards; each is examined a fixed number of times."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = lines
        self.at = 0
        self.diff = Diff()
        self.file: FileDiff | None = None
        self.index_name = ""  # of "Index: name", as Subversion and CVS write

    def read(self) -> Diff:
        lines, stop = self.lines, len(self.lines)
        while self.at < stop:
            begun = self.at
            if not self._read_piece(lines[begun]):
                self.at = begun + 1
                continue
            if not self.diff.end:
                self.diff.start = begun
            self.diff.end = self.at
        self.diff.files = [file for file in self.diff.files if _says_something(file)]
        if not self.diff.files:
            return Diff()
        return self.diff

    def _read_piece(self, line: str) -> bool:
        if line.startswith("diff "):
            return self._read_diff_line(line)
        first = line[:1]
        if first == "@":
            return self._read_unified(line) or self._read_combined(line)
        if first == "-":
            return self._read_names(line, "--- ", "+++ ")
        if first == "*":
            return self._read_names(line, "*** ", "--- ") or self._read_context(line)
        if first == "+":
            return self._read_new_name(line)
        if first == "I" and line.startswith("Index: "):
            return self._read_index_line(line)
        if self.file is None:
            return False
        if first.isdigit() and (self.index_name or not self.file.hunks):
            return self._read_plain(line)
        if _BINARY.match(line):
            return self._read_binary(line)
        return False

    def _begin(self) -> FileDiff:
        self.file = FileDiff()
        self.diff.files.append(self.file)
        return self.file

    def _fault(self, reason: str, at: int | None = None) -> None:
        place = self.at if at is None else at
        self.diff.fault = self.diff.fault or f"line {place + 1}: {reason}"

    # --- headers ---

    def _read_diff_line(self, line: str) -> bool:
        lines = self.lines
        if line.startswith("diff --git "):
            file = self._begin()
            file.by_git = True
            rest = line[len("diff --git ") :]
            if self._below().startswith(("a/", "b/", '"b/')) and len(line) > _WRAPPED_AFTER:
                self.at += 1
                self.diff.mended = True
                self._fault("the line of both names is wrapped")
                rest = f"{rest.rstrip()} {lines[self.at].strip()}"
            file.old_name, file.new_name = split_names(rest.rstrip())
        elif line.startswith(("diff --cc ", "diff --combined ")):
            file = self._begin()
            file.combined = file.by_git = True
            file.old_name = file.new_name = unquote(line.split(" ", 2)[2].rstrip())
        elif line.startswith("diff -"):
            file = self._begin()
            file.old_name = file.new_name = last_name(line)
        else:
            return False
        self.index_name = ""
        self.at += 1
        while self.at < len(lines) and _EXTENDED.match(lines[self.at]):
            self._read_extended(file, lines[self.at].rstrip())
            self.at += 1
        return True

    def _below(self) -> str:
        return self.lines[self.at + 1] if self.at + 1 < len(self.lines) else ""

    def _read_extended(self, file: FileDiff, line: str) -> None:
        file.extended.append(line)
        if line.startswith("new file mode "):
            file.created = True
        elif line.startswith("deleted file mode "):
            file.deleted = True
        elif line.startswith(("rename from ", "copy from ")):
            file.old_name = unquote(line.split(" ", 2)[2])
        elif line.startswith(("rename to ", "copy to ")):
            file.new_name = unquote(line.split(" ", 2)[2])

    def _read_index_line(self, line: str) -> bool:
        name = line[len("Index: ") :].strip()
        if not name or not self._below().startswith(("=====", "--- ", "*** ", "RCS file")):
            return False
        file = self._begin()
        file.old_name = file.new_name = self.index_name = name
        self.at += 1
        return True

    def _read_names(self, line: str, old_mark: str, new_mark: str) -> bool:
        if not line.startswith(old_mark) or self.at + 2 >= len(self.lines):
            return False
        old, at = line[len(old_mark) :], self.at + 1
        new = self.lines[at]
        if not new.startswith(new_mark) and len(line) >= _WRAPPED_AFTER - 10:
            old, at = f"{old} {new}", at + 1
            new = self.lines[at]
        if not new.startswith(new_mark):
            return False
        below = self.lines[at + 1] if at + 1 < len(self.lines) else ""
        wrapped = False
        if not below.startswith(("@@ -", "@@@", "***************")):
            second = self.lines[at + 2] if at + 2 < len(self.lines) else ""
            wrapped = len(new) >= _WRAPPED_AFTER - 10 and second.startswith(("@@ -", "*****"))
            if not wrapped:
                return False
        if wrapped or at > self.at + 1:
            self.diff.mended = True
            self._fault("a file's name is wrapped")
        file = self.file
        if file is None or file.hunks or file.binary:
            file = self._begin()
        self._set_names(file, old, new[len(new_mark) :])
        self.at = at + 1 + wrapped
        return True

    def _set_names(self, file: FileDiff, old_line: str, new_line: str) -> None:
        old, new = read_name(old_line), read_name(new_line)
        if old == NO_FILE or (not file.by_git and _EPOCH.search(old_line)):
            file.created = True
        elif new == NO_FILE or (not file.by_git and _EPOCH.search(new_line)):
            file.deleted = True
        if file.by_git and file.old_name:
            return
        if self.index_name:
            file.old_name = file.new_name = self.index_name
            return
        file.old_name, file.new_name = plain_names(old, new)

    def _read_new_name(self, line: str) -> bool:
        """Read the name of a file whose other name is missing, as in a text cut out by hand."""
        if not line.startswith("+++ ") or not self._below().startswith("@@ -"):
            return False
        self._fault("a file has one name: the line with --- is not there")
        file = self._begin()
        file.old_name, file.new_name = plain_names(*[read_name(line[4:])] * 2)
        self.at += 1
        return True

    # --- hunks ---

    def _read_unified(self, line: str) -> bool:
        head = _HUNK.match(line)
        at = self.at + 1
        if head is None and line.startswith("@@ -") and len(line) <= 60 and at < len(self.lines):
            head = _HUNK.match(f"{line.rstrip()} {self.lines[at]}")
            at += 1
            self.diff.mended = self.diff.mended or head is not None
        if head is None:
            return False
        file = self.file or self._begin()
        old, new = (int(head[place] or 1) for place in (2, 4))
        function, at = self._rest_of_head(head[5].strip(), at)
        body, at = self._hunk_lines(at, old, new)
        file.hunks.append(Hunk(int(head[1]), int(head[3]), function, tuple(body)))
        if not file.by_git and not (old and new):
            file.created = file.created or (not old and head[1] == "0")
            file.deleted = file.deleted or (not new and head[3] == "0")
        if not file.path:
            self._fault("a hunk without the name of its file")
        self.at = at
        return True

    def _rest_of_head(self, function: str, at: int) -> tuple[str, int]:
        if function and at + 1 < len(self.lines):
            rest, below = self.lines[at], self.lines[at + 1]
            if rest and rest[0] not in " \t+-\\@" and below[:1] in {" ", "+", "-", "\t"}:
                self.diff.mended = True
                self._fault("the head of a hunk is wrapped")
                return f"{function} {rest.strip()}", at + 1
        return function, at

    def _hunk_lines(self, at: int, old: int, new: int) -> tuple[list[str], int]:
        """Return the lines of a hunk and the line below it."""
        lines, stop = self.lines, len(self.lines)
        body: list[str] = []
        while at < stop and (old > 0 or new > 0):
            line = lines[at]
            sign = line[:1]
            if sign == " ":
                old, new = old - 1, new - 1
            elif sign == "-":
                old -= 1
            elif sign == "+":
                new -= 1
            elif sign == "\\":
                pass
            elif not line:
                if at + 1 == stop:
                    break  # the end of the text
                line, old, new = " ", old - 1, new - 1
            elif sign in "\t\xa0" or line in {"=20", "=09", "=A0"}:
                self._fault("the first blank of a line is lost", at)
                line, old, new = f" {line}", old - 1, new - 1
            elif body and self._is_wrapped(at):
                self._fault("a line is wrapped", at)
                self.diff.mended = True
                body[-1] = f"{body[-1].rstrip()} {line.strip()}"
                at += 1
                continue
            else:
                self._fault("a hunk ends before the lines that its head announces", at)
                break
            body.append(line)
            at += 1
        if (old > 0 or new > 0) and at >= stop - 1:
            self._fault("the diff ends within a hunk", at)
        elif old < 0 or new < 0:
            self._fault("a hunk has more lines than its head announces", at)
        if at < stop and lines[at].startswith("\\ "):
            body.append(lines[at])
            at += 1
        elif body and at + 1 < stop and self._is_rest(at):
            self._fault("a line is wrapped", at)
            self.diff.mended = True
            body[-1] = f"{body[-1].rstrip()} {lines[at].strip()}"
            at += 1
        return body, at

    def _is_wrapped(self, at: int) -> bool:
        """Return whether the unmarked line is the wrapped rest of the line above it."""
        line = self.lines[at]
        if line.startswith(("@@", "diff ")):
            return False
        word = line.split(None, 1)[0] if line.strip() else ""
        if len(self.lines[at - 1]) + 1 + len(word) < _WRAPPED_AFTER:
            return False
        below = next((text for text in self.lines[at + 1 : at + 3] if text), "")
        return below[:1] in {"+", "-", " ", "@"}

    def _is_rest(self, at: int) -> bool:
        """Return whether the line below a whole hunk is the rest of its last line."""
        line, below = self.lines[at], self.lines[at + 1]
        return (
            bool(line.strip())
            and line[0] not in " \t+-\\@*"
            and not line.startswith("diff ")
            and below.startswith(("@@ -", "diff --git "))
            and len(self.lines[at - 1]) >= _WRAPPED_AFTER
        )

    def _read_combined(self, line: str) -> bool:
        head = COMBINED_HUNK.match(line)
        if head is None:
            return False
        old = [int(count or 1) for count in OLD_COUNT.findall(head[2])]
        parents = len(head[1]) + 1
        if len(old) != parents:
            return False
        new, at = int(head[3] or 1), self.at + 1
        body: list[str] = []
        while at < len(self.lines) and (new > 0 or max(old) > 0):
            signs = self.lines[at][:parents]
            if signs.strip("+- \t"):
                break
            is_gone = "-" in signs
            new -= not is_gone
            for parent, sign in enumerate(signs.ljust(parents)):
                old[parent] -= sign == "-" if is_gone else sign != "+"
            body.append(self.lines[at] or " ")
            at += 1
        file = self.file or self._begin()
        file.combined = True
        file.hunks.append(Hunk(0, 0, line[head.end() :].strip(), tuple(body)))
        self.at = at
        return True

    def _read_context(self, line: str) -> bool:
        """Read a hunk of diff -c as a unified one."""
        stars = STARS.match(line)
        if stars is None or self.at + 1 >= len(self.lines):
            return False
        old_head = CONTEXT_OLD.match(self.lines[self.at + 1])
        if old_head is None:
            return False
        old, at = self._half(self.at + 2, count_lines(old_head[1], old_head[2]))
        while at < len(self.lines) and not self.lines[at].strip():
            at += 1
        new_head = CONTEXT_NEW.match(self.lines[at]) if at < len(self.lines) else None
        new: list[str] = []
        if new_head is not None:
            count = count_lines(new_head[1], new_head[2])
            only_removed = {line[:1] for line in old} & {"-", "!"} == {"-"}
            has_half = at + 1 < len(self.lines) and (
                not only_removed or self.lines[at + 1][:2] in {"  ", "+ ", "! "}
            )
            new, at = self._half(at + 1, count) if has_half else ([], at + 1)
        else:
            self._fault("a hunk of a context diff without its second half")
        file = self.file or self._begin()
        starts = int(old_head[1]), int(new_head[1]) if new_head else int(old_head[1])
        file.hunks.append(Hunk(*starts, line.lstrip("*").strip(), tuple(_unite(old, new))))
        if not file.by_git and starts[0] == 0:
            file.created = True
        self.diff.context = True
        self.at = at
        return True

    def _half(self, at: int, count: int) -> tuple[list[str], int]:
        stop, half = min(len(self.lines), at + count), []
        while at < stop:
            line = self.lines[at]
            if line[:2] not in {"  ", "! ", "+ ", "- "} and line.strip() not in {"", "!", "+", "-"}:
                if line[:1] != "\t":
                    break
                line = f"  {line}"
            if CONTEXT_NEW.match(line) or STARS.match(line):
                break
            half.append(line or "  ")
            at += 1
        if at < len(self.lines) and self.lines[at].startswith("\\ "):
            at += 1
        return half, at

    def _read_plain(self, line: str) -> bool:
        """Read a change of diff without options: "3,4c3"."""
        head = PLAIN_CHANGE.match(line)
        if head is None or self.file is None:
            return False
        old = count_lines(head[1], head[2]) if head[3] != "a" else 0
        new = count_lines(head[4], head[5]) if head[3] != "d" else 0
        removed, at = self._signed(self.at + 1, "<", old)
        if old and new and at < len(self.lines) and self.lines[at].rstrip() == "---":
            at += 1
        added, at = self._signed(at, ">", new)
        if not removed and not added:
            return False
        lines = [*(f"-{text}" for text in removed), *(f"+{text}" for text in added)]
        self.file.hunks.append(Hunk(int(head[1]), int(head[4]), "", tuple(lines)))
        self.diff.context = True
        self.at = at
        return True

    def _signed(self, at: int, sign: str, count: int) -> tuple[list[str], int]:
        found: list[str] = []
        while at < len(self.lines) and len(found) < count and self.lines[at][:1] == sign:
            found.append(self.lines[at][2:])
            at += 1
        return found, at

    def _read_binary(self, line: str) -> bool:
        file = self.file
        if file is None or file.hunks:
            return False
        if line.startswith("GIT binary"):
            file.binary = line.rstrip()
            self.at = binary_end(self.lines, self.at)
            return True
        if not line.rstrip().endswith(" differ"):
            return False
        file.binary = line.rstrip()
        self.at += 1
        if not file.by_git or "index" not in "".join(file.extended):
            self._fault("a binary file without its content")
        return True


def _says_something(file: FileDiff) -> bool:
    """Return whether a header begins a diff: with hunks, a binary file, or git's own changes."""
    if file.hunks or file.binary:
        return bool(file.path or file.hunks)
    return file.by_git and any(not line.startswith("index ") for line in file.extended)


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
