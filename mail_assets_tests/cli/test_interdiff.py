"""`mail-assets interdiff`: two mails, two series, a mail and a commit."""

import json
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from mail_assets.cli import main
from mail_assets_tests.cli.conftest import Run, assert_fails
from mail_assets_tests.steps.test_read_patches import ATTACHED, DIFF, MIXED, PATCH, patch_mail
from mail_assets_tests.world import HARBOR, World, mail

SECOND = PATCH.replace("limit_of_crane", "limit")


@pytest.fixture
def run(world: World) -> Run:
    """A command over two versions of a series and a patch in an attachment."""
    world.load(
        patch_mail("one"),
        patch_mail("two", SECOND, "[PATCH v3 1/2] Limit"),
        mail("three", MIXED, subject="floating crane", headers=ATTACHED),
        mail("cover", "All.", subject="[PATCH v3 0/2] Cranes"),
        mail("part1", SECOND, subject="[PATCH v3 1/2] Limit", references="<cover@example.org>"),
        mail("part2", PATCH, subject="[PATCH v3 2/2] Load", references="<cover@example.org>"),
        mail("talk", "No patch."),
        last="patches",
    )
    lists = world.home / "lists.toml"
    lists.write_text(f'[{HARBOR}]\nsource = "{world.folder()}"\n')
    environ = {
        "MAIL_HOME": str(world.home),
        "MAIL_LISTS": str(lists),
        "MAIL_PG_DSN": world.dsn,
        "MAIL_STORE": str(world.home / "store"),
    }
    return lambda *arguments: CliRunner().invoke(main, arguments, env=environ)


def test_two_mails_are_compared(run: Run) -> None:
    result = run("interdiff", "one@example.org", "<two@example.org>")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith("v2 1/2 -> v3 1/2  Limit: changed\n    | Changes since v1:\n")
    assert "    -+int limit_of_crane;\n    ++int limit;\n" in result.stdout


def test_patch_is_compared_with_the_version_before_it(world: World, run: Run) -> None:
    world.series()
    result = run("interdiff", "two@example.org")
    assert (result.exit_code, result.stderr) == (0, "")
    assert " -> v3 1/2  Limit: changed\n" in result.stdout
    assert_fails(run("interdiff", "one@example.org"), 1, "no earlier version of one@example.org")


def test_attached_patch_is_compared(run: Run) -> None:
    result = run("interdiff", "one@example.org", "three@example.org", "--json")
    [patch] = json.loads(result.stdout)["patches"]
    assert (patch["state"], patch["new"]["name"]) == ("same", "v3")


def test_cover_letter_stands_for_its_series(run: Run) -> None:
    result = run("interdiff", "one@example.org", "cover@example.org", "--json")
    assert result.stderr == ""
    found = json.loads(result.stdout)["patches"]
    assert [(one["state"], one["new"] and one["new"]["name"]) for one in found] == [
        ("added", "v3 1/2"), ("same", "v3 2/2"),
    ]  # fmt: skip


def test_commit_is_compared_with_its_mail(run: Run, tmp_path: Path) -> None:
    def git(*arguments: str) -> None:
        name = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org")
        subprocess.run(["git", "-C", str(tmp_path), *name, *arguments], check=True)

    git("init", "-q")
    (tmp_path / "crane.c").write_text("int load;\nint weight;\nint height;\n")
    git("add", "crane.c")
    git("commit", "-q", "-m", "Crane")
    (tmp_path / "p").write_text(DIFF.replace("weight_of_load", "mass"))
    git("apply", "p")
    git("commit", "-q", "-a", "-m", "Limit of the crane")
    sha = subprocess.run(
        ["git", "-C", str(tmp_path), "rev-parse", "HEAD"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    result = run("interdiff", "one@example.org", sha, "--git", str(tmp_path))
    assert f"-> commit {sha[:12]}  Limit of the crane: changed\n" in result.stdout
    assert "    ++int mass;\n" in result.stdout
    assert_fails(
        run("interdiff", "one@example.org", "f" * 12, "--git", str(tmp_path)), 1, "no commit"
    )


@pytest.mark.parametrize(
    ("message_id", "reason"),
    [("talk@example.org", "has no patch"), ("nobody@example.org", "no message")],
)
def test_message_without_a_patch_is_named(run: Run, message_id: str, reason: str) -> None:
    assert_fails(run("interdiff", "one@example.org", message_id), 1, reason)
