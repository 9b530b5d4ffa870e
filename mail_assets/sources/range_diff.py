"""Run git range-diff on mailed patches, which need not be commits of the repository.

The patches are applied in a temporary repository that reads the objects of the given one. The given
repository is not changed, and its configuration, hooks and attributes are not used. Each file
starts from the version in the "index" line of its first diff, so the repository must have that
version.
"""

import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from mail_assets.mail.patches.interdiff import Version
from mail_assets.mail.patches.patch import FileDiff
from mail_assets.sources.git import run_git, running
from mail_assets.sources.source import SourceError

#: Patches per side; git compares each patch of one side with each of the other.
MOST_PATCHES = 200
#: git's --creation-factor in percent: how much two versions of a patch may differ. If each side has
#: a single patch, they always count as versions of each other.
_ALONE, _AMONG_OTHERS = 999, 60

_INDEX = re.compile(r"index ([0-9a-f]{7,64})\.\.[0-9a-f]{7,64}(?: (\d{6}))?\Z")
_OLD_MODE = re.compile(r"(?:old|deleted file) mode (\d{6})\Z")
_HEAD = re.compile(
    r" *(?P<old>\d+|-+): +(?:[0-9a-f]+|-+) (?P<sign>[=!<>]) +(?P<new>\d+|-+): +(?:[0-9a-f]+|-+) .*"
)
_NOBODY = {
    "GIT_AUTHOR_NAME": "-",
    "GIT_AUTHOR_EMAIL": "-",
    "GIT_AUTHOR_DATE": "1000000000 +0000",
    "GIT_COMMITTER_NAME": "-",
    "GIT_COMMITTER_EMAIL": "-",
    "GIT_COMMITTER_DATE": "1000000000 +0000",
}


class Pair(NamedTuple):
    """Positions of a patch in both sides (None: not in that side), and git's lines about it."""

    old: int | None
    new: int | None
    is_same: bool
    lines: tuple[str, ...]


def compare_in_git(folder: Path, old: Sequence[Version], new: Sequence[Version]) -> list[Pair]:
    """Return the pairs that `git range-diff` reports for two versions of a series, in its order.

    Raises:
        SourceError: the repository lacks a version of a file, a patch does not apply, or git fails.
    """
    if max(len(old), len(new)) > MOST_PATCHES:
        raise SourceError(f"git compares at most {MOST_PATCHES} patches here")
    with tempfile.TemporaryDirectory(prefix="range-diff-") as place:
        scratch = _Scratch(folder, Path(place))
        ranges = [scratch.commit(side, name) for side, name in ((old, "old"), (new, "new"))]
        factor = _ALONE if len(old) == len(new) == 1 else _AMONG_OTHERS
        options = ("--no-color", "--no-notes", f"--creation-factor={factor}")
        said = scratch.run("range-diff", *options, *ranges)
    return _read(said.decode("utf-8", "replace"))


class _Scratch:
    """A bare repository in a temporary folder that reads the objects of another one."""

    def __init__(self, folder: Path, place: Path) -> None:
        source = f"--git-dir={folder}"
        kind = run_git([source, "rev-parse", "--show-object-format"]).decode().strip()
        objects = run_git([source, "rev-parse", "--git-path", "objects"]).rstrip(b"\n")
        self._place, self._folder = place, place / "git"
        options = ["--quiet", "--bare", "--template=", f"--object-format={kind}"]
        run_git(["init", *options, str(self._folder)])
        info = self._folder / "objects" / "info"
        info.mkdir(exist_ok=True)
        (info / "alternates").write_bytes(_absolute(folder, objects) + b"\n")

    def run(self, *arguments: str, data: bytes = b"", index: str = "") -> bytes:
        variables: Mapping[str, str] = _NOBODY
        if index:
            variables = {**_NOBODY, "GIT_INDEX_FILE": str(self._place / index)}
        command = [f"--git-dir={self._folder}", *arguments]
        with running(command, variables=variables, given=[data]) as out:
            return out.read()

    def commit(self, patches: Sequence[Version], index: str) -> str:
        """Commit patches one after another; return their range."""
        entries = "".join(self._entry(file) for file in _first_diffs(patches))
        data = entries.encode("utf-8", "surrogateescape")
        self.run("update-index", "-z", "--index-info", data=data, index=index)
        base = newest = self._commit_tree("base", index)
        for one in patches:
            diff = one.diff.as_git().encode("utf-8", "surrogateescape")
            try:
                self.run("apply", "--cached", "--whitespace=nowarn", "-", data=diff, index=index)
            except SourceError as error:
                raise SourceError(f"{one.name} does not apply: {error}") from error
            newest = self._commit_tree(one.title, index, newest)
        return f"{base}..{newest}"

    def _commit_tree(self, title: str, index: str, parent: str = "") -> str:
        tree = self.run("write-tree", "--missing-ok", index=index).decode().strip()
        above = ("-p", parent) if parent else ()
        message = " ".join(title.split()) or "-"
        made = self.run("commit-tree", *above, tree, data=message.encode("utf-8", "replace"))
        return made.decode().strip()

    def _entry(self, file: FileDiff) -> str:
        """Return the input line of `git update-index` for a file before its first diff."""
        lines = [x for x in map(_INDEX.match, file.extended) if x]
        if not lines:
            raise SourceError(f"a patch does not say which version of {file.old_name} it changes")
        modes = [x[1] for x in map(_OLD_MODE.match, file.extended) if x]
        mode = lines[0][2] or (modes[0] if modes else "100644")
        name = f"{lines[0][1]}^{{blob}}"
        try:
            blob = self.run("rev-parse", "--verify", "--quiet", "--end-of-options", name)
        except SourceError as error:
            what = f"the repository lacks the version {lines[0][1]} of {file.old_name}"
            raise SourceError(what) from error
        return f"{mode} {blob.decode().strip()}\t{file.old_name}\0"


def _absolute(folder: Path, path: bytes) -> bytes:
    return bytes(folder / path.decode("utf-8", "surrogateescape")) if path else b""


def _first_diffs(patches: Sequence[Version]) -> list[FileDiff]:
    seen: set[str] = set()
    found = []
    for file in (file for one in patches for file in one.diff.files):
        if not file.created and file.old_name not in seen:
            if file.combined:
                raise SourceError(f"git cannot apply a combined diff ({file.old_name})")
            found.append(file)
        seen |= {file.old_name, file.new_name}
    return found


def _read(said: str) -> list[Pair]:
    heads: list[re.Match[str]] = []
    lines: list[list[str]] = []
    for line in said.split("\n")[:-1]:
        if not line.startswith("    ") and (head := _HEAD.fullmatch(line)):
            heads.append(head)
            lines.append([])
        elif lines:
            lines[-1].append(line.removeprefix("    "))
    return [
        Pair(_place(head["old"]), _place(head["new"]), head["sign"] == "=", tuple(some))
        for head, some in zip(heads, lines, strict=True)
    ]


def _place(number: str) -> int | None:
    return None if number.startswith("-") else int(number) - 1
