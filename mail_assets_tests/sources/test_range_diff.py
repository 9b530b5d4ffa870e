"""git range-diff of patches that are no commits: what it compares, and what it leaves alone."""

from pathlib import Path

import pytest

from mail_assets.mail.patches.diff import read_diff
from mail_assets.mail.patches.interdiff import Version
from mail_assets.sources.range_diff import compare_in_git
from mail_assets.sources.source import SourceError
from mail_assets_tests.sources.inboxes import git
from mail_assets_tests.sources.repositories import Made, make_repository

OLD = b"int load;\nint weight;\nint height;\nint width;\n"
NAMES = ("crane.c", "a b/crane.c", "kr\u00e4n.c", 'a"b.c', "deep/er/crane.c")


@pytest.fixture
def made(tmp_path: Path) -> Made:
    made = make_repository(tmp_path / "crane.git")
    made.commit(dict.fromkeys(NAMES, OLD), "first")
    return made


def version(
    made: Made, name: str, change: dict[str, bytes], title: str = "crane: limit"
) -> Version:
    """Return a patch of the first commit as it was mailed: no commit of the branch has it."""
    sha = made.commit(change, title, branch=name, parents=["main"])
    diff = git(made.folder, "-c", "core.quotePath=true", "show", "--format=", "--binary", sha)
    git(made.folder, "update-ref", "-d", f"refs/heads/{name}")
    return Version(name, f"{name}@example.org", title, read_diff(diff.decode()))


@pytest.mark.parametrize("name", NAMES)
def test_two_mails_are_compared_by_git(made: Made, name: str) -> None:
    old = version(made, "v1", {name: OLD + b"int limit_of_crane;\n"})
    new = version(made, "v2", {name: OLD + b"int limit;\n"})
    (pair,) = compare_in_git(made.folder, [old], [new])
    assert (pair.old, pair.new, pair.is_same) == (0, 0, False)
    assert "-+int limit_of_crane;" in pair.lines
    assert "++int limit;" in pair.lines


def test_series_is_paired_and_the_rest_is_named(made: Made) -> None:
    first = version(made, "a", {"crane.c": OLD + b"int limit;\n"}, "crane: limit")
    other = version(made, "b", {"hook.c": b"int hook;\nint rope;\nint drum;\n"}, "hook: new")
    gone = version(made, "c", {"a b/crane.c": b""}, "crane: gone")
    pairs = compare_in_git(made.folder, [first, gone], [other, first])
    assert {(x.old, x.new, x.is_same) for x in pairs} == {
        (0, 1, True),
        (None, 0, False),
        (1, None, False),
    }


def test_patches_stand_on_each_other(made: Made) -> None:
    one = version(made, "a", {"crane.c": OLD + b"int limit;\n"})
    sha = made.commit({"crane.c": OLD + b"int limit;\n"}, "x", branch="x", parents=["main"])
    top = made.commit({"crane.c": OLD + b"int limit;\nint top;\n"}, "y", branch="x", parents=[sha])
    two = Version("b", "b@example.org", "top", read_diff(git(made.folder, "show", top).decode()))
    pairs = compare_in_git(made.folder, [one, two], [one, two])
    assert [(x.old, x.new, x.is_same) for x in pairs] == [(0, 0, True), (1, 1, True)]


@pytest.mark.parametrize(
    ("diff", "said"),
    [
        ("--- a/crane.c\n+++ b/crane.c\n@@ -1 +1 @@\n-a\n+b\n", "does not say which version of"),
        (
            "diff --git a/crane.c b/crane.c\nindex 0123456789ab..ba9876543210 100644\n"
            "--- a/crane.c\n+++ b/crane.c\n@@ -1 +1 @@\n-a\n+b\n",
            "lacks the version 0123456789ab of crane.c",
        ),
        ("diff --cc crane.c\nindex 01234567,1234567..2345678\n--- a/crane.c\n+++ b/crane.c\n"
         "@@@ -1,1 -1,1 +1,1 @@@\n- a\n++b\n", "combined diff"),
    ],
)  # fmt: skip
def test_patch_that_git_cannot_place_says_why(made: Made, diff: str, said: str) -> None:
    one = Version("v1", "v1@example.org", "x", read_diff(diff))
    with pytest.raises(SourceError, match=said):
        compare_in_git(made.folder, [one], [one])


@pytest.mark.parametrize("name", ["../../out.c", ".git/config", "a/../../out.c"])
def test_patch_outside_of_its_tree_is_refused(made: Made, tmp_path: Path, name: str) -> None:
    diff = (f"diff --git a/{name} b/{name}\nnew file mode 100644\nindex 0000000..1234567\n"
            f"--- /dev/null\n+++ b/{name}\n@@ -0,0 +1 @@\n+evil\n")  # fmt: skip
    one = Version("v1", "v1@example.org", "x", read_diff(diff))
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(SourceError):
        compare_in_git(made.folder, [one], [one])
    assert sorted(tmp_path.rglob("*")) == before


def test_repository_is_not_written_and_runs_nothing(made: Made, tmp_path: Path) -> None:
    ran, tool = tmp_path / "ran", tmp_path / "tool"
    tool.write_text(f"#!/bin/sh\ntouch {ran}\ncat\n")
    tool.chmod(0o755)
    for key in ("diff.evil.textconv", "diff.evil.command", "diff.external", "filter.evil.clean",
                "core.fsmonitor", "core.pager", "apply.whitespace"):  # fmt: skip
        git(made.folder, "config", key, str(tool))
    (made.folder / "info").mkdir(exist_ok=True)
    (made.folder / "info" / "attributes").write_text("* diff=evil filter=evil\n")
    old = version(made, "v1", {"crane.c": OLD + b"a\n", ".gitattributes": b"* diff=evil\n"})
    new = version(made, "v2", {"crane.c": OLD + b"b\n", ".gitattributes": b"* diff=evil\n"})
    ran.unlink(missing_ok=True)
    before = sorted((one, one.stat().st_mtime_ns) for one in made.folder.rglob("*"))
    compare_in_git(made.folder, [old], [new])
    assert sorted((one, one.stat().st_mtime_ns) for one in made.folder.rglob("*")) == before
    assert not ran.exists()
