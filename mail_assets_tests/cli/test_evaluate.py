"""`mail-assets evaluate`: a table for people, one object for machines."""

import json
from pathlib import Path

import pytest

from mail_assets.search.language.request import GROUPS
from mail_assets_tests.cli.conftest import Run, assert_fails
from mail_assets_tests.sample_corpus import QUERY, ROOT


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    queries, qrels = tmp_path / "queries.jsonl", tmp_path / "qrels.tsv"
    queries.write_text(
        json.dumps({"_id": "lease", "text": QUERY}) + '\n{"_id": "other", "text": "lock"}\n'
    )
    qrels.write_text(f"query-id\tmessage-id\tscore\nlease\t<{ROOT}>\t1\n")
    return ["--set", str(tmp_path), "--min-relevant", "1"]


def test_evaluate_prints_a_row_for_each_mode(run: Run, files: list[str]) -> None:
    result = run("evaluate", "--min-relevant", "1", MAIL_QUALITY_SET=files[1])
    said = "1 of 2 queries are asked: 1 no relevant message judged\n"
    assert (result.exit_code, result.stderr) == (0, said)
    lines = result.stdout.splitlines()
    assert lines[0].split() == [
        *("mode", "group", "queries", "ndcg@10", "mrr", "recall@50", "success@10", "threads@10"),
        *("thread_mrr", "thread_success@10", "p50_ms", "p95_ms"),
    ]
    assert [line.split()[:3] for line in lines[1:]] == [
        ["hybrid", "message", "1"],
        ["semantic", "message", "1"],
        ["fulltext", "message", "1"],
    ]


def test_evaluate_states_the_group_it_judged(run: Run, files: list[str]) -> None:
    group = GROUPS[0]
    options = ("evaluate", *files, "--mode", "fulltext", "--group", group)
    assert run(*options).stdout.splitlines()[1].split()[1:3] == ["fulltext", group]
    answer = json.loads(run(*options, "--json").stdout)
    assert answer["group"] == group
    left_out = {"no relevant message judged": 1}
    [asked] = answer["sets"]
    assert asked == {"set": Path(files[1]).name, "lists": [], "queries": 1, "left_out": left_out}


def test_set_of_another_archive_is_an_error(run: Run, files: list[str], tmp_path: Path) -> None:
    (tmp_path / "qrels.tsv").write_text("lease\t<nobody@example.org>\t1\n")
    assert_fails(run("evaluate", *files), 2, "of another archive")


def test_evaluate_json_has_summaries_and_every_query(run: Run, files: list[str]) -> None:
    result = run("evaluate", *files, "--mode", "semantic", "--list", "harbor-users", "--json")
    answer = json.loads(result.stdout)
    (mode,) = answer["modes"]
    assert (mode["mode"], mode["queries"]) == ("semantic", 1)
    assert mode["measures"]["success_10"] == {"mean": 1.0, "low": 1.0, "high": 1.0}
    assert [one["query_id"] for one in answer["queries"]] == ["lease"]


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_judged_messages_missing_from_the_archive_are_noted(
    run: Run, files: list[str], tmp_path: Path, options: tuple[str, ...]
) -> None:
    with (tmp_path / "qrels.tsv").open("a") as qrels:
        qrels.write("other\t<nobody@example.org>\t1\nother\t<never@example.org>\t1\n")
    result = run("evaluate", *files, "--mode", "fulltext", *options)
    assert result.exit_code == 0
    said = "2 of 3 judged messages are not in this archive, <never@example.org> among them"
    assert said in result.stderr
    assert "1 of 2 queries are asked: 1 no relevant message in the archive" in result.stderr


def test_several_sets_are_asked_each_of_its_list(
    run: Run, files: list[str], tmp_path: Path
) -> None:
    mode = ("--mode", "fulltext", "--min-relevant", "1")
    found = run("evaluate", "--set", f"harbor-users={tmp_path}", "--set", str(tmp_path), *mode)
    lines = [line.split()[:4] for line in found.stdout.splitlines()]
    assert lines == [
        ["set", "mode", "group", "queries"],
        *[[tmp_path.name, "fulltext", "message", "1"]] * 2,
    ]
    answer = json.loads(run("evaluate", "--set", str(tmp_path), *mode, "--json").stdout)
    assert {one["set"] for key in ("sets", "modes", "queries") for one in answer[key]} == {
        tmp_path.name
    }


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--set", "nowhere"), "is no file"),
        (("--set", "unknown={folder}"), "there are: "),
        (("--set", "{folder}", "--mode", "fuzzy"), "mode 'fuzzy': allowed are"),
        (("--set", "{folder}", "--group", "pile"), "group 'pile': allowed are"),
        ((), "give --set, or set MAIL_QUALITY_SET"),
    ],
)
def test_wrong_argument_is_named(
    run: Run, files: list[str], tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    wrong = run("evaluate", "--min-relevant", "1", *(a.format(folder=tmp_path) for a in arguments))
    assert_fails(wrong, 2, said)
