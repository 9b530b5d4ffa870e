"""Read diffs: unified, git's, combined, context and plain ones, into files and hunks.

Diffs in mail are damaged: wrapped lines, lost blanks, a wrong count. Everything that can be read
is read; `fault` says why git would refuse the text. Time is linear in the text.

`patch_id` is git's own: https://git-scm.com/docs/git-patch-id.
"""

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from mail_assets.mail.patches.patch import (
    MAX_DIGESTS,
    MAX_FILES,
    MAX_FUNCTION,
    MAX_FUNCTIONS,
    MAX_PATH,
    FileChange,
)

NO_FILE = "/dev/null"

_HUNK = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@(.*)", re.A | re.S)
_COMBINED_HUNK = re.compile(
    r"@@(@{1,20})((?: -\d{1,9}(?:,\d{1,9})?){2,21}) \+\d{1,9}(?:,(\d{1,9}))? @@\1(?!@)(.*)",
    re.A | re.S,
)
_OLD_COUNT = re.compile(r" -\d{1,9}(?:,(\d{1,9}))?", re.A)
_STARS = re.compile(r"\*{15}(?: (.*))?", re.S)
_CONTEXT_OLD = re.compile(r"\*\*\* (\d{1,9})(?:,(\d{1,9}))? \*{4}\s{0,9}\Z", re.A)
_CONTEXT_NEW = re.compile(r"--- (\d{1,9})(?:,(\d{1,9}))? -{4}\s{0,9}\Z", re.A)
_PLAIN = re.compile(r"(\d{1,9})(?:,(\d{1,9}))?([acd])(\d{1,9})(?:,(\d{1,9}))?\s{0,9}\Z", re.A)
_EXTENDED = re.compile(
    r"(?:old mode|new mode|new file mode|deleted file mode|similarity index|dissimilarity index|"
    r"rename from|rename to|copy from|copy to|rename old|rename new|index) "
)
_BINARY = re.compile(r"(?:Binary files |Files |GIT binary patch\s{0,9}\Z)")
_BASE85 = re.compile(r"[A-Za-z][0-9A-Za-z!#-&(-+;-@^-`{-~-]{0,66}\s{0,9}\Z")
_TIME = re.compile(r"\s{1,9}(?:\d{4}-\d\d-\d\d|(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun|\w{3})\s.{0,9}\d)")
_EPOCH = re.compile(
    r"\s(?:1970-01-01|1969-12-31|Thu Jan +1 0\d:00:00 1970|\w{3} \w{3} +\d+ [\d:]+ 1970)"
)
_ESCAPE = re.compile(r'\\([0-7]{3}|[abtnvfr"\\])')
_ESCAPES = {
    "a": 7, "b": 8, "t": 9, "n": 10, "v": 11, "f": 12, "r": 13, '"': 34, "\\": 92,
}  # fmt: skip
_QUOTE = {code: f"\\{char}" for char, code in _ESCAPES.items()}
_WRAPPED_AFTER = 60  # a mail program wraps at 72 to 80 columns: a rest follows a long line
_LEAST_LETTERS = 3  # of a line with a digest: a brace or "0," says nothing


class Hunk(NamedTuple):
    """A hunk: its place in both files, and its lines with their signs."""

    old_start: int
    new_start: int
    function: str  # what follows the second @@
    lines: tuple[str, ...]  # each begins with " ", "-", "+" or "\\"


@dataclass(slots=True)
class FileDiff:
    """The diff of a file."""

    old_name: str = ""  # without the first folder where that is "a/"; "" if not known
    new_name: str = ""
    extended: list[str] = field(default_factory=list)  # git's lines: modes, renames, index
    hunks: list[Hunk] = field(default_factory=list)
    binary: str = ""  # the line that says so
    combined: bool = False
    by_git: bool = False
    created: bool = False
    deleted: bool = False

    @property
    def path(self) -> str:
        """The name after the change; of a deleted file that before it."""
        return self.old_name if self.deleted or not self.new_name else self.new_name

    @property
    def change(self) -> str:
        """The kind of change: modified, added, deleted, renamed or copied."""
        if self.created:
            return "added"
        if self.deleted:
            return "deleted"
        if self.old_name and self.new_name and self.old_name != self.new_name:
            copied = any(line.startswith("copy ") for line in self.extended)
            return "copied" if copied else "renamed"
        return "modified"

    def changed_lines(self) -> Iterator[str]:
        """Yield the added and removed lines with their signs."""
        for hunk in self.hunks:
            for line in hunk.lines:
                if line[0] in "+-" or (self.combined and line[:2].strip(" ") in {"+", "-"}):
                    yield line

    def describe(self) -> FileChange:
        """Return the change without its lines."""
        added = removed = 0
        functions: dict[str, None] = {}
        for hunk in self.hunks:
            name = " ".join(hunk.function.split())[:MAX_FUNCTION]
            if name and len(functions) < MAX_FUNCTIONS:
                functions.setdefault(name)
        for line in self.changed_lines():
            is_removed = "-" in line[:2] if self.combined else line[0] == "-"
            added, removed = added + (not is_removed), removed + is_removed
        change = self.change
        old = self.old_name if change in {"renamed", "copied"} else ""
        return FileChange(
            self.path[:MAX_PATH],
            old[:MAX_PATH],
            change,
            added,
            removed,
            tuple(functions),
            bool(self.binary),
        )

    def as_git(self) -> Iterator[str]:
        """Yield the lines of the diff as git writes it."""
        old, new = self.old_name or self.new_name, self.new_name or self.old_name
        yield f"diff --git {_quote(f'a/{old}')} {_quote(f'b/{new}')}"
        extended = self.extended
        if not any(line.startswith(("new file", "deleted file")) for line in extended):
            if self.created:
                yield "new file mode 100644"
            elif self.deleted:
                yield "deleted file mode 100644"
        yield from extended
        if self.binary:
            yield self.binary
        elif self.hunks:
            yield f"--- {NO_FILE if self.created else _name_line(f'a/{old}')}"
            yield f"+++ {NO_FILE if self.deleted else _name_line(f'b/{new}')}"
            for hunk in self.hunks:
                signs = [line[0] for line in hunk.lines]
                context = signs.count(" ")
                before, after = context + signs.count("-"), context + signs.count("+")
                function = f" {hunk.function}" if hunk.function else ""
                yield (f"@@ -{hunk.old_start},{before} +{hunk.new_start},{after} @@{function}")
                yield from hunk.lines


@dataclass(slots=True)
class Diff:
    """Everything that a text changes."""

    files: list[FileDiff] = field(default_factory=list)
    start: int = 0  # the first line of the diff
    end: int = 0  # the line after its last
    fault: str = ""  # why git would refuse it
    mended: bool = False  # wrapped lines were joined
    context: bool = False  # some of it is a context or a plain diff

    def __bool__(self) -> bool:
        return bool(self.files)

    def as_git(self) -> str:
        """Return the diff as git writes it, without combined diffs."""
        return "".join(
            f"{line}\n" for file in self.files if not file.combined for line in file.as_git()
        )

    def patch_id(self) -> str:
        """Return git's stable patch-id of what is applied; "" without one."""
        if any(file.combined for file in self.files):
            return ""
        return patch_id(self.as_git())

    def describe(self) -> tuple[FileChange, ...]:
        """Return the changed files without their lines, at most MAX_FILES."""
        return tuple(file.describe() for file in self.files[:MAX_FILES])

    def digest_lines(self) -> tuple[int, ...]:
        """Return digests of the changed lines, 32 bits with a sign, ascending, each once.

        Sign and letters count, blanks do not. Of more than MAX_DIGESTS the smallest are kept, so
        that two patches cut like this still share the share that they share.
        """
        return digest_lines(line for file in self.files for line in file.changed_lines())


def digest_lines(lines: Iterator[str]) -> tuple[int, ...]:
    """Return the digests of signed lines; see Diff.digest_lines."""
    found = set()
    for line in lines:
        text = "".join(line.split())
        if sum(map(str.isalpha, text)) >= _LEAST_LETTERS:
            digest = hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=4).digest()
            found.add(int.from_bytes(digest, "big", signed=True))
    return tuple(sorted(found)[:MAX_DIGESTS])


def read_diff(text: str) -> Diff:
    """Read every file that a text changes; text around and between is passed over."""
    lines = text.split("\n")
    if "\r" in text:
        lines = [line.removesuffix("\r") for line in lines]
    return read_diff_lines(lines)


def read_diff_lines(lines: Sequence[str]) -> Diff:
    """Read a diff from lines without their ends."""
    return _Reader(lines).read()


class _Reader:
    """Reads lines forwards; each is looked at a fixed number of times."""

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
        """Read a piece of a diff that begins here; return whether one does."""
        if line.startswith("diff "):
            return self._read_diff_line(line)
        first = line[:1]
        if first == "@":
            return self._read_unified(line) or self._read_combined(line)
        if first == "-":
            return self._read_names(line, "--- ", "+++ ")
        if first == "*":
            return self._read_names(line, "*** ", "--- ") or self._read_context(line)
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

    def _fault(self, reason: str) -> None:
        self.diff.fault = self.diff.fault or f"line {self.at + 1}: {reason}"

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
            file.old_name, file.new_name = _split_names(rest.rstrip())
        elif line.startswith(("diff --cc ", "diff --combined ")):
            file = self._begin()
            file.combined = file.by_git = True
            file.old_name = file.new_name = _unquote(line.split(" ", 2)[2].rstrip())
        elif line.startswith("diff -"):
            file = self._begin()
            file.old_name = file.new_name = _last_word(line)
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
            file.old_name = _unquote(line.split(" ", 2)[2])
        elif line.startswith(("rename to ", "copy to ")):
            file.new_name = _unquote(line.split(" ", 2)[2])

    def _read_index_line(self, line: str) -> bool:
        name = line[len("Index: ") :].strip()
        if not name or not self._below().startswith(("=====", "--- ", "*** ", "RCS file")):
            return False
        file = self._begin()
        file.old_name = file.new_name = self.index_name = name
        self.at += 1
        return True

    def _read_names(self, line: str, old_mark: str, new_mark: str) -> bool:
        """Read the names of both files, above a hunk."""
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
        old, new = _name_of(old_line), _name_of(new_line)
        if old == NO_FILE or (not file.by_git and _EPOCH.search(old_line)):
            file.created = True
        elif new == NO_FILE or (not file.by_git and _EPOCH.search(new_line)):
            file.deleted = True
        if file.by_git and file.old_name:
            return
        if self.index_name:
            file.old_name = file.new_name = self.index_name
            return
        file.old_name, file.new_name = _plain_names(old, new)

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
        """Join the wrapped rest of a hunk's head."""
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
                self._fault_at(at, "the first blank of a line is lost")
                line, old, new = f" {line}", old - 1, new - 1
            elif body and self._is_wrapped(at):
                self._fault_at(at, "a line is wrapped")
                self.diff.mended = True
                body[-1] = f"{body[-1].rstrip()} {line.strip()}"
                at += 1
                continue
            else:
                self._fault_at(at, "a hunk ends before the lines that its head announces")
                break
            body.append(line)
            at += 1
        if (old > 0 or new > 0) and at >= stop - 1:
            self._fault_at(at, "the diff ends within a hunk")
        elif old < 0 or new < 0:
            self._fault_at(at, "a hunk has more lines than its head announces")
        if at < stop and lines[at].startswith("\\ "):
            body.append(lines[at])
            at += 1
        elif body and at + 1 < stop and self._is_rest(at):
            self._fault_at(at, "a line is wrapped")
            self.diff.mended = True
            body[-1] = f"{body[-1].rstrip()} {lines[at].strip()}"
            at += 1
        return body, at

    def _fault_at(self, at: int, reason: str) -> None:
        self.diff.fault = self.diff.fault or f"line {at + 1}: {reason}"

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
        head = _COMBINED_HUNK.match(line)
        if head is None:
            return False
        old = [int(count or 1) for count in _OLD_COUNT.findall(head[2])]
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
        file.hunks.append(Hunk(0, 0, head[4].strip(), tuple(body)))
        self.at = at
        return True

    def _read_context(self, line: str) -> bool:
        """Read a hunk of diff -c as a unified one."""
        stars = _STARS.match(line)
        if stars is None or self.at + 1 >= len(self.lines):
            return False
        old_head = _CONTEXT_OLD.match(self.lines[self.at + 1])
        if old_head is None:
            return False
        old, at = self._half(self.at + 2, _count(old_head[1], old_head[2]))
        while at < len(self.lines) and not self.lines[at].strip():
            at += 1
        new_head = _CONTEXT_NEW.match(self.lines[at]) if at < len(self.lines) else None
        new: list[str] = []
        if new_head is not None:
            count = _count(new_head[1], new_head[2])
            only_removed = {line[:1] for line in old} & {"-", "!"} == {"-"}
            has_half = at + 1 < len(self.lines) and (
                not only_removed or self.lines[at + 1][:2] in {"  ", "+ ", "! "}
            )
            new, at = self._half(at + 1, count) if has_half else ([], at + 1)
        else:
            self._fault("a hunk of a context diff without its second half")
        file = self.file or self._begin()
        starts = int(old_head[1]), int(new_head[1]) if new_head else int(old_head[1])
        file.hunks.append(Hunk(*starts, (stars[1] or "").strip(), tuple(_unite(old, new))))
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
            if _CONTEXT_NEW.match(line) or _STARS.match(line):
                break
            half.append(line or "  ")
            at += 1
        if at < len(self.lines) and self.lines[at].startswith("\\ "):
            at += 1
        return half, at

    def _read_plain(self, line: str) -> bool:
        """Read a change of diff without options: "3,4c3"."""
        head = _PLAIN.match(line)
        if head is None or self.file is None:
            return False
        old = _count(head[1], head[2]) if head[3] != "a" else 0
        new = _count(head[4], head[5]) if head[3] != "d" else 0
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
            at, lines = self.at + 1, self.lines
            while at < len(lines) and lines[at].startswith(("literal ", "delta ")):
                at += 1
                while at < len(lines) and _BASE85.match(lines[at]):
                    at += 1
                while at < len(lines) and not lines[at].strip():
                    at += 1
            self.at = at
            return True
        if not line.rstrip().endswith(" differ"):
            return False
        file.binary = line.rstrip()
        self.at += 1
        if not file.by_git or "index" not in "".join(file.extended):
            self._fault("a binary file without its content")
        return True


def _says_something(file: FileDiff) -> bool:
    """Return whether a header is one of a diff: hunks, a binary file, or git's own changes."""
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


def _count(first: str, last: str | None) -> int:
    return int(last) - int(first) + 1 if last else int(first != "0")


# --- names ---


def _split_names(text: str) -> tuple[str, str]:
    """Return both names of a "diff --git" line, without "a/" and "b/"."""
    if text.startswith('"') and (end := _end_of_quoted(text)):
        return _strip(_unquote(text[:end])), _strip(_unquote(text[end + 1 :]))
    if text.endswith('"') and (start := text.find(' "')) > 0:
        return _strip(text[:start]), _strip(_unquote(text[start + 1 :]))
    middle = len(text) // 2
    if len(text) % 2 and text[middle] == " ":
        old, new = _strip(text[:middle]), _strip(text[middle + 1 :])
        if old == new:
            return old, new
    if (at := text.find(" b/")) > 0:
        return _strip(text[:at]), _strip(text[at + 1 :])
    old, _, new = text.partition(" ")
    return _strip(old), _strip(new or old)


def _end_of_quoted(text: str) -> int:
    at = 1
    while at < len(text):
        if text[at] == "\\":
            at += 1
        elif text[at] == '"':
            return at + 1
        at += 1
    return 0


def _strip(name: str) -> str:
    """Return a name without the letter that git puts in front: a/, b/, i/, w/, c/, o/."""
    return name[2:] if name[1:2] == "/" and name[0] in "abciwo" else name


def _name_of(line: str) -> str:
    """Return the name in a "---" line: without a time after it."""
    line = line.rstrip()
    if line.startswith('"') and (end := _end_of_quoted(line)):
        return _unquote(line[:end])
    name = line.split("\t", 1)[0]
    if time := _TIME.search(name):
        name = name[: time.start()]
    return name.rstrip()


def _plain_names(old: str, new: str) -> tuple[str, str]:
    """Return the names of a diff without git's header, as it is to be applied."""
    if old == NO_FILE or new == NO_FILE:
        name = new if old == NO_FILE else old
        name = _strip(name)
        return name, name
    if old == new:
        return _strip(old), _strip(new)
    old_rest, new_rest = old.partition("/")[2], new.partition("/")[2]
    if old_rest and old_rest == new_rest:
        return old_rest, new_rest
    new = _strip(new) if old[1:2] == "/" else new
    return new, new  # x.c.orig and x.c: one file


def _last_word(line: str) -> str:
    word = line.rstrip().rpartition(" ")[2]
    return "" if word.startswith("-") else _strip(word)


def _unquote(name: str) -> str:
    """Return a name that git may have quoted as C does."""
    name = name.strip()
    if len(name) < 2 or name[0] != '"' or name[-1] != '"':
        return name
    raw, at, inner = bytearray(), 0, name[1:-1]
    for escape in _ESCAPE.finditer(inner):
        raw += inner[at : escape.start()].encode(errors="surrogatepass")
        code = escape[1]
        raw.append(_ESCAPES[code] if code in _ESCAPES else int(code, 8) & 255)
        at = escape.end()
    raw += inner[at:].encode(errors="surrogatepass")
    return raw.decode(errors="replace").replace("\0", "\ufffd")


def _quote(name: str) -> str:
    """Return a name as git writes it with its default core.quotePath."""
    raw = name.encode(errors="surrogatepass")
    if all(31 < byte < 127 and byte not in b'"\\' for byte in raw):
        return name
    quoted = (
        _QUOTE.get(byte) or (chr(byte) if 31 < byte < 127 else f"\\{byte:03o}") for byte in raw
    )
    return f'"{"".join(quoted)}"'


def _name_line(name: str) -> str:
    """Return a name for a "---" line, where git writes a tab after one with a blank."""
    quoted = _quote(name)
    return f"{quoted}\t" if " " in name else quoted


# --- patch-id ---

_SPACE = b" \t\r\n"
_HEX = re.compile(rb"(?:commit |From )?[0-9a-fA-F]{40}")
_HUNK_OLD = re.compile(rb"@@ -(?:\d{0,30},(\d{0,30})|(\d{0,30}))( \+)?")
_HUNK_NEW = re.compile(rb"(?:\d{0,30},(\d{0,30})|\d{0,30})")
_BINARY_LINES = (b"GIT binary patch", b"Binary files")
_MODULUS = 1 << 160


def patch_id(text: str) -> str:
    """Return what `git patch-id --stable` says of a text, "" if that is nothing.

    The sum of a SHA-1 for each file. Blanks, line numbers and the lines of the index do not count.
    """
    lines = text.encode(errors="surrogatepass").split(b"\n")
    if not lines[-1]:
        lines.pop()
    at, size, found = 0, 0, b""
    while at < len(lines) and not size:
        size, found, at = _read_one_id(lines, at)
    return found.hex() if size else ""


def _read_one_id(lines: list[bytes], at: int) -> tuple[int, bytes, int]:
    """Follow builtin/patch-id.c line by line: size of what was hashed, the id, the next line."""
    size = total = 0
    pieces: list[bytes] = []
    before = after = -1
    is_binary = False
    ids = b""
    while at < len(lines):
        line = lines[at].partition(b"\0")[0]
        at += 1
        if line.startswith(b"\\ ") and len(line) > 11:
            continue
        if _HEX.match(line):
            break
        if not size and not line.startswith(b"diff "):
            continue
        if before == -1:
            if line.startswith(_BINARY_LINES):
                is_binary, before = True, 0
                pieces.append(ids)
                total, pieces = _add(total, pieces), []
                continue
            if line.startswith(b"index "):
                old, dots, new = line[6:].partition(b"..")
                ids = old[:64] + new.split(b" ")[0][:64] if dots else ids
                continue
            if line.startswith(b"--- "):
                before = after = 1
            elif not line[:1].isalpha():
                break
        if is_binary:
            if line.startswith(b"diff "):
                is_binary, before = False, -1
            continue
        if before == 0 and after == 0:
            if line.startswith(b"@@ -"):
                before, after = _read_counts(line, before, after)
                continue
            if not line.startswith(b"diff "):
                break
            total, pieces = _add(total, pieces), []
            before = after = -1
        sign = line[:1]
        before -= sign in (b"-", b" ")
        after -= sign in (b"+", b" ")
        kept = line.translate(None, _SPACE)
        size += len(kept)
        pieces.append(kept)
    return size, _add(total, pieces).to_bytes(20, "little"), at


def _add(total: int, pieces: list[bytes]) -> int:
    digest = hashlib.sha1(b"".join(pieces), usedforsecurity=False).digest()
    return (total + int.from_bytes(digest, "little")) % _MODULUS


def _read_counts(line: bytes, before: int, after: int) -> tuple[int, int]:
    """Return how many lines of either file a hunk has; as git, also of a broken head."""
    old = _HUNK_OLD.match(line)
    if old is None:
        return before, after
    before = int(old[1] or 0) if old[1] is not None else 1
    if not (old[1] or old[2]) or not old[3]:
        return before, after
    new = _HUNK_NEW.match(line, old.end())
    return before, after if new is None else int(new[1] or 0) if new[1] is not None else 1
