"""Git repositories of code, made by git fast-import: any bytes, any dates."""

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from mail_assets_tests.sources.inboxes import git

#: Path -> content of the files that a commit writes.
Change = Mapping[str, bytes]

AUTHOR = "Ann Harbor <ann@example.org>"
COMMITTER = "Cem Gate <cem@example.org>"
MARCH_5 = 1_709_632_800


class Made:
    """A bare repository whose branch is `main`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._heads: dict[str, str] = {}

    def commit(
        self,
        change: Change,
        message: str | bytes,
        *,
        author: str = AUTHOR,
        authored: int = MARCH_5,
        committed: int = MARCH_5,
        branch: str = "main",
        parents: Sequence[str] | None = None,
    ) -> str:
        """Commit files to a branch and return the id; without `parents`, after its last commit."""
        text = message.encode() if isinstance(message, str) else message
        above = [self._heads[branch]] if branch in self._heads else []
        above = above if parents is None else [*parents]
        lines = [
            f"reset refs/heads/{branch}\n\ncommit refs/heads/{branch}".encode(),
            f"author {author} {authored} +0000".encode(),
            f"committer {COMMITTER} {committed} +0000".encode(),
            b"data %d\n%s" % (len(text), text),
            *(f"{'merge' if place else 'from'} {sha}".encode() for place, sha in enumerate(above)),
        ]
        for path, data in change.items():
            quoted = '"' + "".join(
                char if 31 < byte < 127 and char not in '"\\' else f"\\{byte:03o}"
                for byte in path.encode("latin-1")
                for char in [chr(byte)]
            ) + '"'  # fmt: skip
            lines += [f"M 100644 inline {quoted}".encode(), b"data %d\n%s" % (len(data), data)]
        git(self.folder, "fast-import", "--quiet", "--force", stdin=b"\n".join(lines) + b"\n\n")
        head = git(self.folder, "rev-parse", branch).decode().strip()
        self._heads[branch] = head
        return head

    def patch_id(self, sha: str) -> str:
        """Return what git itself says is the stable patch-id of a commit, without configuration."""
        show = ["git", f"--git-dir={self.folder}", "-c", "diff.noprefix=false", "diff-tree", "-p"]
        plain = ["--no-ext-diff", "--no-textconv", "--full-index", "-M", "--root", sha]
        diff = subprocess.run([*show, *plain], capture_output=True, check=True).stdout
        said = subprocess.run(
            ["git", "patch-id", "--stable"], input=diff, capture_output=True, check=True
        ).stdout.decode()
        return said.split(" ")[0]


def make_repository(folder: Path) -> Made:
    folder.parent.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "--quiet", "--bare", "--initial-branch=main", str(folder))
    return Made(folder)
