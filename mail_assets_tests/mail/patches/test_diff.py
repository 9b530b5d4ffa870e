"""Diffs, and their patch-ids as computed by git."""

import os
import random
import subprocess
from pathlib import Path

from mail_assets.mail.patches.diff import read_diff
from mail_assets.mail.patches.patch import patch_id

ENVIRONMENT = {
    "PATH": os.environ["PATH"],
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "A U Thor",
    "GIT_AUTHOR_EMAIL": "author@example.org",
    "GIT_COMMITTER_NAME": "C O Mitter",
    "GIT_COMMITTER_EMAIL": "committer@example.org",
    "LC_ALL": "C.UTF-8",
}
WORDS = ("int x;", "return 0;", "{", "}", "", "\tif (a)", "-- ", "++i;", "@@ -1 +1 @@", "é ü")


def git(folder: Path, *arguments: str, text: str = "") -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=folder, input=text.encode(), env=ENVIRONMENT, capture_output=True,
        check=True,
    )  # fmt: skip
    return done.stdout.decode(errors="surrogateescape")


def git_id(folder: Path, text: str) -> str:
    """Return the first id that `git patch-id --stable` prints for a text."""
    return git(folder, "patch-id", "--stable", text=text).partition(" ")[0]


def change(chance: random.Random, lines: list[str]) -> list[str]:
    lines = [*lines]
    for _ in range(chance.randint(1, 6)):
        at = chance.randint(0, len(lines))
        match chance.randint(0, 2):
            case 0:
                lines.insert(at, chance.choice(WORDS) + str(chance.randint(0, 99)))
            case 1:
                del lines[at : at + chance.randint(1, 3)]
            case 2:
                lines[at : at + 1] = [chance.choice(WORDS)]
    return lines


def write(path: Path, chance: random.Random, lines: list[str]) -> None:
    """Write lines to a file; some files have no final line end."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n" * (chance.random() < 0.9), encoding="utf-8")


NAMES = ("a.c", "b c.txt", "dir/ä.py", 'q"uote', "x/y/z.h", "a b/c b/d", "tab\tname")


def make_commits(folder: Path, chance: random.Random, count: int) -> None:
    """Fill a repository with commits that add, change, rename, copy and delete files."""
    git(folder, "init", "-q", "-b", "main")
    for number in range(count):
        for name in chance.sample(NAMES, chance.randint(1, 3)):
            path = folder / name
            action = chance.randint(0, 9)
            if not path.exists():
                base = [chance.choice(WORDS) + str(x) for x in range(chance.randint(0, 40))]
                write(path, chance, base)
            elif action == 0:
                path.unlink()
            elif action == 1:
                path.rename(path.with_name(f"{path.name}.{number}"))
            elif action == 2:
                path.chmod(0o755 if not os.access(path, os.X_OK) else 0o644)
            elif action == 3:
                path.write_bytes(bytes(chance.randbytes(200)) + b"\0")
            else:
                text = path.read_text(encoding="utf-8", errors="replace")
                write(path, chance, change(chance, text.split("\n")))
        git(folder, "add", "-A")
        git(folder, "commit", "-q", "--allow-empty", "-m", f"commit {number}")


OPTIONS = (
    (), ("-M",), ("-M", "-C", "--find-copies-harder"), ("--no-renames",), ("-U0",), ("-U10",),
    ("--binary",), ("--full-index",), ("--function-context",),
)  # fmt: skip


def test_patch_id_is_gits_for_commits(tmp_path: Path) -> None:
    chance = random.Random(41)
    make_commits(tmp_path, chance, 40)
    for sha in git(tmp_path, "rev-list", "HEAD").split():
        for options in (chance.choice(OPTIONS), chance.choice(OPTIONS)):
            text = git(tmp_path, "diff-tree", "-p", "--root", *options, sha)
            text = text.partition("\n")[2]
            expected = git_id(tmp_path, text)
            assert patch_id(text) == expected, text
            diff = read_diff(text)
            assert not diff.fault, text
            assert diff.patch_id() == expected, text


def test_patch_id_is_gits_for_broken_text(tmp_path: Path) -> None:
    chance = random.Random(42)
    pieces = [
        "diff --git a/x b/x", "index 01ab..23cd 100644", "index 01ab..23cd", "--- a/x", "+++ b/x",
        "@@ -1,2 +1,3 @@ f", "@@ -1 +1 @@", "@@ -,1 +2", "@@ -x", " a", "-b", "+c", "+ d e", "",
        "\\ No newline at end of file", "\\ short", "Binary files a/x and b/x differ",
        "GIT binary patch", "literal 3", "-- ", "2.30.0", "new file mode 100644", "diff ", "Text",
        "From " + "a" * 40, "commit " + "B" * 40 + " x", "c" * 40, "+x\0y", "-\tx\r", "deleted é",
    ]  # fmt: skip
    texts = [
        "\n".join(["diff --git a/x b/x", *chance.choices(pieces, k=chance.randint(1, 25))])
        + "\n" * chance.randint(0, 1)
        for _ in range(1_500)
    ]
    for text in texts:
        before_first_id = text.partition("GIT binary")[0].partition("Binary files")[0]
        if text != before_first_id and "index " not in before_first_id:
            continue  # git hashes uninitialized memory
        assert patch_id(text) == git_id(tmp_path, text), text
