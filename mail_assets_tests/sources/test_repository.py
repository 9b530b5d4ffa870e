"""Commits of git repositories: their contents, odd ones, months, and a history that changes."""

import os
import subprocess
from pathlib import Path

import pytest

from mail_assets.sources import repository
from mail_assets.sources.git import run_git
from mail_assets.sources.repository import CommitSource, GitFolder, read_commits
from mail_assets.sources.source import HttpOptions, SourceError
from mail_assets_tests.sources.repositories import Change, Made, make_repository

MESSAGE = """crane: know the limit

The crane must know its limit.

Discussion: https://lists.example.org/r/limit@example.org
Reviewed-by: Bo Pier <bo@example.org>
"""


def source(made: Made, tmp_path: Path, branch: str = "") -> CommitSource:
    return CommitSource("crane", str(made.folder), branch, tmp_path / "cache", HttpOptions())


def test_commit_has_what_git_says(tmp_path: Path) -> None:
    made = make_repository(tmp_path / "r")
    made.commit({"crane.c": b"int load;\n"}, "first")
    sha = made.commit(
        {"crane.c": b"int load;\nint limit;\n", "old name": b"x\n"},
        MESSAGE,
        authored=1_709_632_800,
        committed=1_712_000_000,
    )
    (one,) = read_commits(made.folder, [sha])
    assert (one.sha, one.subject) == (sha, "crane: know the limit")
    assert (one.author_name, one.author_email) == ("Ann Harbor", "ann@example.org")
    assert (one.committer_name, f"{one.committed_at:%Y-%m}") == ("Cem Gate", "2024-04")
    assert [t.key for t in one.trailers] == ["Discussion", "Reviewed-by"]
    files = {file.path: (file.added, file.removed) for file in one.files}
    assert files == {"crane.c": (1, 0), "old name": (1, 0)}
    assert one.patch_id == made.patch_id(sha) != ""
    assert not one.is_merge


def test_merge_has_no_diff(tmp_path: Path) -> None:
    made = make_repository(tmp_path / "r")
    first = made.commit({"a": b"1\n"}, "first")
    side = made.commit({"b": b"2\n"}, "side", branch="side", parents=[first])
    merge = made.commit({"b": b"2\n"}, "Merge branch 'side'", parents=[first, side])
    (one,) = read_commits(made.folder, [merge])
    assert (one.is_merge, one.files, one.patch_id) == (True, (), "")


ODD: list[tuple[Change, bytes, str]] = [
    # a line that looks like the mark between commits, a long line, no line end, carriage returns
    ({"f": b"\x01" + b"a" * 40 + b"\x00 b\n"}, b"mark", "mark"),
    ({"f": b"x" * (3 << 20) + b"\n\x01y\n"}, b"long line", "long line"),
    ({"f": b"no end"}, b"no end", "no end"),
    ({"f": b"a\r\nb\r\n"}, b"returns", "returns"),
    ({"f": bytes(range(256))}, b"binary", "binary"),
    ({"weird\tname\n\xff": b"a\n"}, b"name", "name"),
    ({"f": b"a\n"}, "läuft".encode("latin-1"), "läuft"),
    ({"f": b"a\n"}, b"\x01 begins so\n\n\x01and goes on", "begins so"),
    ({"f": b"a\n"}, b"one\ntwo\n\nbody", "one two"),
    ({}, b"empty", "empty"),
    ({"f": b"a\n"}, b"", ""),
]


@pytest.mark.parametrize(("change", "message", "subject"), ODD)
def test_odd_commit_is_read_and_so_is_the_next(
    tmp_path: Path, change: Change, message: bytes, subject: str
) -> None:
    made = make_repository(tmp_path / "r")
    shas = [made.commit(change, message), made.commit({"next": b"1\n2\n3\n"}, "next")]
    one, after = read_commits(made.folder, shas)
    assert [one.sha, after.sha] == shas
    assert one.subject == subject
    assert (after.subject, [file.path for file in after.files]) == ("next", ["next"])
    assert after.patch_id == made.patch_id(shas[1])


def test_text_of_a_commit_has_no_control_characters(tmp_path: Path) -> None:
    made = make_repository(tmp_path / "r")
    path = "a\u202e\x1b[31mb".encode().decode("latin-1")
    author = "Ann\u202e\x1b[0m Pier <ann@example.org>"
    sha = made.commit({path: b"1\n"}, "one \u202e\x1b]0;x\x07\u2066two", author=author)
    [one] = read_commits(made.folder, [sha])
    assert one.subject == "one ]0;xtwo"
    assert one.author_name == "Ann[0m Pier"
    assert [file.path for file in one.files] == ["a[31mb"]


def test_huge_diff_is_cut_with_a_mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repository, "MAX_DIFF", 1 << 20)
    made = make_repository(tmp_path / "r")
    lines = b"".join(b"line %d\n" % number for number in range(100_000))
    sha = made.commit({"big": lines}, "big")
    (one,) = read_commits(made.folder, [sha])
    assert (one.flags, one.patch_id, len(one.files)) == (("diff_capped",), "", 1)


def test_hooks_filters_and_drivers_are_not_run(tmp_path: Path) -> None:
    made = make_repository(tmp_path / "r")
    ran = tmp_path / "ran"
    tool = tmp_path / "tool"
    tool.write_text(f"#!/bin/sh\ntouch {ran}\ncat\n")
    tool.chmod(0o755)
    programs = ("diff.external", "core.pager", "core.fsmonitor", "gpg.program")
    drivers = ("diff.evil.textconv", "diff.evil.command", "filter.evil.smudge")
    for key in (*programs, *drivers):
        run_git([f"--git-dir={made.folder}", "config", key, str(tool)])
    for key in ("diff.noprefix", "log.showSignature"):
        run_git([f"--git-dir={made.folder}", "config", key, "true"])
    sha = made.commit({".gitattributes": b"* diff=evil filter=evil\n", "a": b"1\n"}, "evil")
    one = source(made, tmp_path)
    assert one.history().head == sha
    (read,) = one.read([sha])
    assert (read.patch_id, ran.exists()) == (made.patch_id(sha), False)


def test_months_are_of_the_committer_and_only_new_ones_walked(tmp_path: Path) -> None:
    made = make_repository(tmp_path / "r")
    first = made.commit({"a": b"1\n"}, "first", committed=1_709_632_800)
    assert source(made, tmp_path).history().months == {"2024-03": [first]}
    second = made.commit({"a": b"2\n"}, "second", committed=1_712_000_000)
    after = source(made, tmp_path).history()
    assert after.months == {"2024-03": [first], "2024-04": [second]}
    assert (after.head, after.rewritten) == (second, "")


def test_bundle_is_mirrored_and_read_again_as_it_grows(tmp_path: Path) -> None:
    made = make_repository(tmp_path / "r")
    bundle = tmp_path / "crane.bundle"
    for name in ("first", "second"):
        sha = made.commit({name: b"1\n"}, name)
        run_git(
            ["-C", str(made.folder), "bundle", "create", "--quiet", str(bundle), "HEAD", "main"]
        )
        read = CommitSource("crane", str(bundle), "", tmp_path / "cache", HttpOptions())
        assert read.history().head == sha
        assert [one.subject for one in read.read([sha])] == [name]
    kept = GitFolder.kept("crane", str(bundle), "", tmp_path / "cache")
    assert kept is not None
    assert kept.find([sha[:9]]) == {sha[:9]: sha}


def test_rewritten_branch_is_noticed(tmp_path: Path) -> None:
    made = make_repository(tmp_path / "r")
    made.commit({"a": b"1\n"}, "first")
    gone = made.commit({"a": b"2\n"}, "second")
    before = source(made, tmp_path).history()
    new = made.commit({"a": b"3\n"}, "second again", parents=[])
    after = source(made, tmp_path).history()
    assert (after.rewritten, after.months) == (gone, {"2024-03": [new]})
    assert before.version("2024-03") != after.version("2024-03")


@pytest.mark.parametrize("branch", ["", "main", "side"])
def test_branch_is_that_of_lists_toml(tmp_path: Path, branch: str) -> None:
    made = make_repository(tmp_path / "r")
    first = made.commit({"a": b"1\n"}, "first")
    side = made.commit({"b": b"2\n"}, "side", branch="side", parents=[first])
    head = source(made, tmp_path, branch).history().head
    assert head == (side if branch == "side" else first)


@pytest.mark.parametrize(("place", "branch", "said"), [
    ("r", "gone", "there is no branch 'gone'; name an existing branch in lists.toml"),
    ("nothing", "", "there is no folder or bundle"),
    ("plain", "", "is not a git repository"),
    ("empty", "", "HEAD names no commit"),
])  # fmt: skip
def test_missing_repository_is_one_line(tmp_path: Path, place: str, branch: str, said: str) -> None:
    make_repository(tmp_path / "r").commit({"a": b"1\n"}, "first")
    make_repository(tmp_path / "empty")
    (tmp_path / "plain").mkdir()
    one = CommitSource("crane", str(tmp_path / place), branch, tmp_path / "c", HttpOptions())
    with pytest.raises(SourceError) as caught:
        one.history()
    text = str(caught.value)
    assert said in text
    assert text.startswith("repository crane (")
    assert "\n" not in text


def test_checkout_and_abbreviated_id_are_found(tmp_path: Path) -> None:
    made = make_repository(tmp_path / "r")
    sha = made.commit({"deep/a": b"1\n"}, "first")
    work = tmp_path / "work"
    subprocess.run(
        ["git", "clone", "--quiet", str(made.folder), str(work)],
        check=True,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
    )
    found = GitFolder.around(work / "deep")
    assert found is not None
    assert found.find([sha[:9], "beef" * 10, "--help", sha]) == {sha[:9]: sha, sha: sha}
    assert GitFolder.around(tmp_path) is None
