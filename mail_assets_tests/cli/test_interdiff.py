"""`mail-assets interdiff`: two mails, two series, a mail and a commit."""

import json
import subprocess
from pathlib import Path

import pytest

from mail_assets_tests.cli.conftest import Run, assert_fails, invoke
from mail_assets_tests.crane import Crane
from mail_assets_tests.kept_worlds import standing_world
from mail_assets_tests.steps.test_read_patches import ATTACHED, DIFF, MIXED, PATCH, patch_mail
from mail_assets_tests.world import HARBOR, World, mail

SECOND = PATCH.replace("limit_of_crane", "limit")


def fill(world: World) -> None:
    """Load two versions of a series and a patch in an attachment."""
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
    world.series()


versions = standing_world(fill)


@pytest.fixture
def run(versions: World) -> Run:
    environ = versions.environ()
    return lambda *arguments: invoke(*arguments, env=environ)


def test_open_patches_of_namesakes_have_addresses(world: World) -> None:
    forged = patch_mail("four", SECOND, "[PATCH] Hoist").replace(b"ann@", b"ann@evil.")
    world.load(patch_mail("one"), forged, last="patches")
    world.series()
    shown = invoke("patches", "--open", "--list", HARBOR, env=world.environ()).stdout
    assert "Ann <ann@example.org>     Limit" in shown
    assert "Ann <ann@evil.example.org>  Hoist" in shown


def test_two_mails_are_compared(run: Run) -> None:
    result = run("interdiff", "one@example.org", "<two@example.org>")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith("v2 1/2 -> v3 1/2  Limit: changed\n    | Changes since v1:\n")
    assert "    -+int limit_of_crane;\n    ++int limit;\n" in result.stdout


def test_patch_is_compared_with_the_version_before_it(run: Run) -> None:
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


def land(world: World) -> None:
    """Load three versions of a patch, the last of which is a commit."""
    crane = Crane(world)
    sha = crane.commit()
    diff = crane.diff(sha)
    world.load(
        *(
            mail(name, f"It must.\n---\n{text}", subject=f"[PATCH{label}] crane: know the limit",
                 date=f"Sun, 0{day} Mar 2024 09:00:00 +0000")
            for name, label, text, day in (
                ("v1", "", diff.replace("limit_of_crane", "limit_of_the_crane"), 3),
                ("v2", " v2", diff.replace("limit_of_crane", "limit_of_a_crane"), 4),
                ("v3", " v3", diff.replace("limit_of_crane", "limit_of_crane;  "), 5),
            )
        ),
        mail("lost", f"x\n---\n{diff.replace('crane.c', 'lost.c')}", subject="[PATCH] lost it"),
        last="patches",
    )  # fmt: skip
    crane.read()
    world.threads()
    world.series()
    crane.link()


yard = standing_world(land)


@pytest.fixture
def landed(yard: World) -> tuple[Run, str]:
    """A command over a patch that landed, and the id of its commit."""
    environ = yard.environ(f'[repositories.crane]\nsource = "{yard.home / "crane.git"}"\n')
    [(sha,)] = yard.rows("commits", "sha", "subject <> 'first'")
    return lambda *arguments: invoke(*arguments, env=environ), sha


def test_versions_are_named_by_numbers_and_compared_by_git(landed: tuple[Run, str]) -> None:
    run, _ = landed
    for more, ids in (
        (("--from", "1", "--to", "2"), ["v1", "v2"]),
        (("--from", "1"), ["v1", "v3"]),
        (("--to", "2"), ["v1", "v2"]),
        (("--to", "3"), ["v2", "v3"]),
    ):
        result = run("interdiff", "v1@example.org", *more, "--json")
        assert (result.exit_code, result.stderr) == (0, "")
        found = json.loads(result.stdout)
        assert (found["by"], found["why_not_git"]) == ("git range-diff", None)
        (patch,) = found["patches"]
        assert [patch[x]["message_id"] for x in ("old", "new")] == [f"{x}@example.org" for x in ids]
        assert patch["range_diff"]
    text = run("interdiff", "v3@example.org", "--from", "1", "--to", "2").stdout
    assert text.startswith("v1 -> v2  crane: know the limit: changed\n    @@ crane.c\n")
    assert "    -+int limit_of_the_crane;\n" in text


def test_applied_commit_is_compared_with_its_mail(landed: tuple[Run, str]) -> None:
    run, sha = landed
    result = run("interdiff", "v3@example.org", "--applied")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith(f"v3 -> commit {sha[:12]}  crane: know the limit: changed\n")
    earlier = run("interdiff", "v3@example.org", "--from", "1", "--applied").stdout
    assert "    -+int limit_of_the_crane;\n    ++int limit_of_crane;\n" in earlier
    assert earlier == run("interdiff", "v1@example.org", sha[:10]).stdout
    turned = run("interdiff", sha, "v1@example.org").stdout
    assert "    -+int limit_of_crane;\n    ++int limit_of_the_crane;\n" in turned


def test_without_the_files_it_is_compared_here(
    landed: tuple[Run, str], yard: World, tmp_path: Path
) -> None:
    run, _ = landed
    gone = (yard.home / "crane.git").rename(tmp_path / "gone.git")
    result = run("interdiff", "v1@example.org", "--to", "2", "--json", "--git", str(tmp_path))
    gone.rename(yard.home / "crane.git")
    found = json.loads(result.stdout)
    assert (found["by"], found["why_not_git"]) == ("mail_assets", "no repository is at hand")
    assert found["patches"][0]["files"][0]["lines"]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["v1@example.org", "--to", "7"], 1, "no v7 of this patch is known; there are: v1, v2, v3"),
        (["v1@example.org", "--to", "1"], 1, "no version before v1"),
        (["v1@example.org", "--from", "2", "--to", "2"], 1, "name two"),
        (["lost@example.org", "--applied"], 1, "no commit of a repository in lists.toml is known"),
        (["v1@example.org", "v2@example.org", "--to", "2"], 2, "give NEW, or"),
        (["v1@example.org", "v2@example.org", "--applied"], 2, "give NEW, or"),
        (["v1@example.org", "--applied", "--to", "2"], 2, "takes --from alone"),
        (["v1@example.org", "--to", "0"], 2, "0"),
        (["beefbeef"], 2, "name a mail too"),
        (["v1@example.org", "beefbeef"], 1, "there is no commit beefbeef in a repository"),
    ],
)
def test_what_cannot_be_compared_is_one_line(
    landed: tuple[Run, str], arguments: list[str], code: int, said: str
) -> None:
    assert_fails(landed[0]("interdiff", *arguments), code, said)


@pytest.mark.parametrize(
    ("message_id", "reason"),
    [("talk@example.org", "has no patch"), ("nobody@example.org", "no message")],
)
def test_message_without_a_patch_is_named(run: Run, message_id: str, reason: str) -> None:
    assert_fails(run("interdiff", "one@example.org", message_id), 1, reason)
