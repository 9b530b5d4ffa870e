"""`mail-assets thread`."""

import json

import pytest

from mail_assets_tests.cli.conftest import Run
from mail_assets_tests.sample_corpus import ROOT


@pytest.mark.parametrize("given", [ROOT, f"<{ROOT}>"])
def test_thread_prints_the_conversation_and_marks_what_was_asked_for(run: Run, given: str) -> None:
    result = run("thread", given)
    assert (result.exit_code, result.stderr) == (0, "")
    lines = [line.lstrip("│ ") for line in result.stdout.splitlines()]
    subject, figures, *_ = lines
    assert subject
    assert figures.endswith(", in harbor-dev, harbor-users")
    [marked] = [n for n, line in enumerate(lines) if line.startswith("→ ")]
    assert f"<{ROOT}>" in lines[marked + 1 : marked + 3]
    assert " quoted]\n" in result.stdout
    assert "\n│ > " in run("thread", "--full", given).stdout


def test_thread_as_json_is_the_same_from_each_of_its_messages(run: Run) -> None:
    first = run("thread", ROOT, "--json")
    assert (first.exit_code, first.stderr) == (0, "")
    said = json.loads(first.stdout)
    assert len(said["posts"]) > 2
    for post in said["posts"]:
        assert json.loads(run("thread", post["message_id"], "--json").stdout) == said


@pytest.mark.parametrize("given", ["nobody@nowhere.example", "", "<>", "' or true --", "\udcff"])
def test_thread_of_an_unknown_id_says_so_and_exits_1(run: Run, given: str) -> None:
    result = run("thread", "--", given)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("mail-assets: no thread has ")
