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


@pytest.mark.parametrize("given", ["nobody@nowhere.example", "' or true --", "\udcff"])
def test_thread_of_an_unknown_id_says_so_and_exits_1(run: Run, given: str) -> None:
    result = run("thread", "--", given)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("mail-assets: no thread has ")


def test_the_summary_of_a_thread_is_printed_with_the_messages_of_its_sentences(run: Run) -> None:
    result = run("thread", ROOT, "--summary")
    assert (result.exit_code, result.stderr) == (0, "")
    said = json.loads(run("thread", ROOT, "--summary", "--json").stdout)
    assert said == json.loads(run("thread", ROOT, "--json").stdout)["summary"]
    assert said["sentences"]
    lines = result.stdout.splitlines()
    assert f"{said['messages']} messages, " in lines[1]
    for one in said["sentences"]:
        assert " ".join(one["text"].split()) in " ".join(result.stdout.split())
        assert any(line.endswith(f"<{one['message_id']}>") for line in lines)
    assert run("thread", "nobody@nowhere.example", "--summary").exit_code == 1
