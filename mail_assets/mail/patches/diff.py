"""Read diffs: unified, git's, combined, context and plain ones, into files and hunks.

Diffs in mail may be damaged: wrapped lines, lost blanks, a wrong count. Everything readable is
read; `fault` is the reason why git would refuse the text. Time is linear in the text.
"""

import re
from collections.abc import Sequence

from mail_assets.mail.body.diffs import (
    WRAPPED_AFTER,
    begins_hunk,
    binary_end,
    read_hunk,
    read_names,
)
from mail_assets.mail.patches.patch import (
    NO_FILE,
    Diff,
    FileDiff,
    last_name,
    plain_names,
    read_name,
    split_names,
    unquote,
)

_EXTENDED = re.compile(
    r"(?:old mode|new mode|new file mode|deleted file mode|similarity index|dissimilarity index|"
    r"rename from|rename to|copy from|copy to|rename old|rename new|index) "
)
_BINARY = re.compile(r"(?:Binary files |Files |GIT binary patch\s{0,9}\Z)")
_EPOCH = re.compile(
    r"\s(?:1970-01-01|1969-12-31|Thu Jan +1 0\d:00:00 1970|\w{3} \w{3} +\d+ [\d:]+ 1970)"
)


def read_diff(text: str) -> Diff:
    """Read every file that a text changes; other text is skipped."""
    return read_diff_lines(split_lines(text))


def split_lines(text: str) -> list[str]:
    """Return lines without their ends."""
    lines = text.split("\n")
    return [line.removesuffix("\r") for line in lines] if "\r" in text else lines


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
            return self._read_hunk()
        if first == "-":
            return self._read_names()
        if first == "*":
            return self._read_names() or self._read_hunk()
        if first == "+":
            return self._read_new_name(line)
        if first == "I" and line.startswith("Index: "):
            return self._read_index_line(line)
        if self.file is None:
            return False
        if first.isdigit() and (self.index_name or not self.file.hunks):
            return self._read_hunk()
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
            if self._below().startswith(("a/", "b/", '"b/')) and len(line) > WRAPPED_AFTER:
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

    def _read_names(self) -> bool:
        names = read_names(self.lines, self.at)
        if names is None or not begins_hunk(self.lines, names.stop):
            return False
        if names.is_wrapped:
            self.diff.mended = True
            self._fault("a file's name is wrapped")
        file = self.file
        if file is None or file.hunks or file.binary:
            file = self._begin()
        self._set_names(file, names.old, names.new)
        self.at = names.stop
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

    def _read_hunk(self) -> bool:
        hunk = read_hunk(self.lines, self.at)
        if hunk is None:
            return False
        diff, file = self.diff, self.file or self._begin()
        file.hunks.append(hunk)
        diff.fault = diff.fault or hunk.fault
        diff.mended = diff.mended or hunk.mended
        diff.context = diff.context or hunk.form in {"context", "plain"}
        file.combined = file.combined or hunk.form == "combined"
        if hunk.form == "unified":
            if not file.by_git:
                file.created = file.created or not (hunk.old_start or hunk.old_count)
                file.deleted = file.deleted or not (hunk.new_start or hunk.new_count)
            if not file.path:
                self._fault("a hunk without the name of its file")
        elif hunk.form == "context" and not file.by_git and hunk.old_start == 0:
            file.created = True
        self.at = hunk.stop
        return True

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
