"""The commits that wrote the lines of a file in a checkout, by git blame.

The file is blamed as the newest commit has it: git would run the filters that the repository's own
configuration names on a file of the work tree. Lines of the work tree are matched to it.
"""

import difflib
import re
from dataclasses import dataclass
from pathlib import Path

from mail_assets.errors import NotFoundError
from mail_assets.sources.git import run_git
from mail_assets.sources.source import SourceError

#: Lines around the one that is asked for: git finds moved lines by blocks of 40 letters and digits.
AROUND = 20

#: Bytes of a file that is blamed.
MAX_FILE = 16 << 20

_HEAD = re.compile(r"(?P<sha>[0-9a-f]{40,64}) (?P<old>\d+) (?P<line>\d+)(?: \d+)?")


class NoLineError(NotFoundError):
    """A file or line that no commit has."""


@dataclass(frozen=True)
class Blamed:
    """A commit, and the numbers of the lines in the work tree that it wrote last."""

    sha: str
    lines: tuple[int, ...]


def top_folder(place: Path) -> Path:
    """Return the top folder of the checkout that holds a folder.

    Raises:
        SourceError: it is in none.
    """
    try:
        out = run_git(["-C", str(place), "rev-parse", "--show-toplevel"])
    except SourceError as error:
        raise SourceError(f"{place} is in no checkout of a git repository: {error}") from error
    return Path(out.decode("utf-8", "surrogateescape").rstrip("\n"))


def blame_file(path: Path, line: int | None = None) -> list[Blamed]:
    """Return the commits that wrote a line of a file, or all lines, those with most lines first.

    Moved and copied lines, and changes of blanks alone, are followed to the commit before.

    Raises:
        NoLineError: the newest commit has no such file or line.
        SourceError: the file is in no checkout.
    """
    top = top_folder(path.absolute().parent)
    name = str(path.absolute().resolve().relative_to(top.resolve()))
    committed = _committed_lines(top, name)
    numbers = _match_lines(path, committed)
    if line is not None and line not in numbers:
        there = f"it has {len(numbers)} lines that are committed" if numbers else "it is empty"
        raise NoLineError(f"line {line} of {path} is in no commit; {there}")
    command = ["-C", str(top), "blame", "--porcelain", "-w", "-C", "--no-progress"]
    command.append("--no-textconv")
    if line is not None:
        at = numbers[line]
        command.append(f"-L{max(1, at - AROUND)},{min(len(committed), at + AROUND)}")
    out = run_git([*command, "HEAD", "--", name]).decode("utf-8", "replace")
    wrote: dict[int, str] = {}
    for text in out.split("\n"):
        if head := _HEAD.fullmatch(text):
            wrote[int(head["line"])] = head["sha"]
    found: dict[str, list[int]] = {}
    for mine, theirs in numbers.items():
        if theirs in wrote and line in (None, mine):
            found.setdefault(wrote[theirs], []).append(mine)
    blamed = [Blamed(sha, tuple(lines)) for sha, lines in found.items()]
    return sorted(blamed, key=lambda one: (-len(one.lines), one.lines))


def _committed_lines(top: Path, name: str) -> list[bytes]:
    try:
        data = run_git(["-C", str(top), "cat-file", "blob", f"HEAD:{name}"])
    except SourceError as error:
        raise NoLineError(f"{name} is not in the newest commit of {top}") from error
    if len(data) > MAX_FILE:
        raise NoLineError(f"{name} is too long to be blamed; name a smaller file")
    return data.splitlines()


def _match_lines(path: Path, committed: list[bytes]) -> dict[int, int]:
    """Return line of the work tree -> line of the newest commit, from 1, where both are equal."""
    try:
        lines = path.read_bytes().splitlines()
    except FileNotFoundError:
        lines = committed  # deleted here, and still in the commit
    if lines == committed:
        return {number: number for number in range(1, len(lines) + 1)}
    blocks = difflib.SequenceMatcher(None, lines, committed, autojunk=False).get_matching_blocks()
    return {
        block.a + place + 1: block.b + place + 1 for block in blocks for place in range(block.size)
    }
