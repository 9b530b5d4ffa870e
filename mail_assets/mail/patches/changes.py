"""Values of a diff: hunks, files and all files together, and how git writes them."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from mail_assets.mail.patches.names import NO_FILE, format_name, quote
from mail_assets.mail.patches.patch import (
    MAX_DIGESTS,
    MAX_FILES,
    MAX_FUNCTION,
    MAX_FUNCTIONS,
    MAX_PATH,
    FileChange,
)
from mail_assets.mail.patches.patch_id import patch_id

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
        yield f"diff --git {quote(f'a/{old}')} {quote(f'b/{new}')}"
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
            yield f"--- {NO_FILE if self.created else format_name(f'a/{old}')}"
            yield f"+++ {NO_FILE if self.deleted else format_name(f'b/{new}')}"
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
        """Return git's stable patch-id of what is applied; "" where that cannot be known."""
        if any(file.combined or not file.path for file in self.files):
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
