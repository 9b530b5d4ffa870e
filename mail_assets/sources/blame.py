"""Find the commits that wrote the lines of a file in a checkout, with git blame.

git blames the file of the newest commit, and the lines of the work tree are matched to that file.
The file of the work tree is not blamed itself, because git would run the filters that the
repository's configuration names on it.
"""

import difflib
import re
from dataclasses import dataclass
from pathlib import Path

from mail_assets.errors import NotFoundError
from mail_assets.sources.git import run_git
from mail_assets.sources.source import SourceError

#: Lines to blame around the wanted ones: git finds moved lines by blocks of 40 letters and digits.
AROUND = 20

#: Size limit of a blamed file, in bytes.
MAX_FILE = 16 << 20

_HEAD = re.compile(r"(?P<sha>[0-9a-f]{40,64}) (?P<old>\d+) (?P<line>\d+)(?: \d+)?")


class NoLineError(NotFoundError):
    """The file or line is in no commit."""


@dataclass(frozen=True)
class Blamed:
    """A commit, and the numbers of the lines in the work tree that it wrote last.

    `is_cut`: the history of a shallow clone begins here; the lines may be older.
    """

    sha: str
    lines: tuple[int, ...]
    is_cut: bool = False


def _top_folder(place: Path) -> Path:
    """Return the top folder of the checkout that contains a folder.

    Raises:
        SourceError: the folder is not in a checkout.
    """
    try:
        out = run_git(["-C", str(place), "rev-parse", "--show-toplevel"])
    except SourceError as error:
        raise SourceError(f"{place} is not in a checkout of a git repository: {error}") from error
    return Path(out.decode("utf-8", "surrogateescape").rstrip("\n"))


def blame_file(
    path: Path, wanted: range | None = None, *, follows_moves: bool = True
) -> list[Blamed]:
    """Return the commits that wrote the wanted lines of a file, or all lines; most lines first.

    Commits that changed only white space are passed over. With `follows_moves`, commits that only
    moved or copied lines are passed over too.

    Raises:
        NoLineError: the newest commit has no such file, or none of these lines.
        SourceError: the file is not in a checkout.
    """
    if path.is_dir():
        raise NoLineError(f"{path} is a folder; name a file in it")
    top = _top_folder(path.absolute().parent)
    name = str(path.absolute().resolve().relative_to(top.resolve()))
    committed = _committed_lines(top, name, path)
    own = _own_lines(path, committed)
    numbers = _match_lines(own, committed)
    kept = [mine for mine in numbers if wanted is None or mine in wanted]
    if wanted and not kept:
        which = f"line {wanted[0]}" if len(wanted) == 1 else f"lines {wanted[0]} to {wanted[-1]}"
        if wanted[0] > len(own):
            raise NoLineError(f"{path} has no {which}: it has {len(own)}")
        raise NoLineError(f"{which} of {path}: not committed yet")
    command = ["-C", str(top), "blame", "--porcelain", "-w", "--no-progress", "--no-textconv"]
    if follows_moves:
        command.append("-C")
    if wanted and kept:
        first, last = numbers[kept[0]], numbers[kept[-1]]
        command.append(f"-L{max(1, first - AROUND)},{min(len(committed), last + AROUND)}")
    out = run_git([*command, "HEAD", "--", name]).decode("utf-8", "replace")
    wrote: dict[int, str] = {}
    for text in out.split("\n"):
        if head := _HEAD.fullmatch(text):
            wrote[int(head["line"])] = head["sha"]
    found: dict[str, list[int]] = {}
    for mine in kept:
        if sha := wrote.get(numbers[mine]):
            found.setdefault(sha, []).append(mine)
    cut = _shallow_commits(top)
    blamed = [Blamed(sha, tuple(lines), sha in cut) for sha, lines in found.items()]
    return sorted(blamed, key=lambda one: (-len(one.lines), one.lines))


def _committed_lines(top: Path, name: str, path: Path) -> list[bytes]:
    try:
        data = run_git(["-C", str(top), "cat-file", "blob", f"HEAD:{name}"])
    except SourceError as error:
        raise NoLineError(_explain_missing(top, name, path)) from error
    if len(data) > MAX_FILE:
        raise NoLineError(f"{name} is too long to be blamed; name a smaller file")
    return data.splitlines()


def _explain_missing(top: Path, name: str, path: Path) -> str:
    missing = f"{name} is not in the newest commit of {top}"
    try:
        log = ["--literal-pathspecs", "-C", str(top), "log", "-1", "--format=%h", "HEAD", "--"]
        last = run_git([*log, name]).decode().strip()
    except SourceError:
        return f"{top} has no commit yet"
    if last:
        return f"{missing}: {last} deleted or renamed it; `git show --stat {last}` has its new name"
    return f"{missing}; it is not committed yet" if path.exists() else missing


def _shallow_commits(top: Path) -> frozenset[str]:
    out = run_git(["-C", str(top), "rev-parse", "--git-path", "shallow"])
    file = top / out.decode("utf-8", "surrogateescape").rstrip("\n")
    return frozenset(file.read_text().split()) if file.exists() else frozenset()


def _own_lines(path: Path, committed: list[bytes]) -> list[bytes]:
    try:
        return path.read_bytes().splitlines()
    except FileNotFoundError:
        return committed  # deleted in the work tree, but in the commit


def _match_lines(lines: list[bytes], committed: list[bytes]) -> dict[int, int]:
    """Map line numbers (from 1) of the work tree to those of equal lines in the newest commit."""
    if lines == committed:
        return {number: number for number in range(1, len(lines) + 1)}
    blocks = difflib.SequenceMatcher(None, lines, committed, autojunk=False).get_matching_blocks()
    return {
        block.a + place + 1: block.b + place + 1 for block in blocks for place in range(block.size)
    }
