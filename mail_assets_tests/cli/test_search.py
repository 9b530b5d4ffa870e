"""`mail-assets search` and `similar`: shape, streams, exit codes, imports."""

import json
import re
from pathlib import Path

import pytest

from mail_assets_tests.cli.conftest import Run, assert_fails, spawn
from mail_assets_tests.sample_corpus import ROOT, Corpus

HIT = {
    "message_id": str,
    "lists": list,
    "month": str,
    "subject": str,
    "from_name": str,
    "from_email": str,
    "sent_at": str,
    "score": float,
    "thread_id": str,
    "contested": bool,
    "text": int,
    "chunks": list,
    "why": dict,
    "attachments": list,
    "copies": list,
    "other_versions": list,
    "subject_highlights": list,
}
CONVERSATION = {
    "thread_id": str,
    "subject": str,
    "lists": list,
    "first_sent_at": str,
    "last_sent_at": str,
    "messages": int,
    "people": int,
    "names": list,
    "first": dict,
    "best": list,
    "more": int,
    "others": list,
}
FIRST = ["message_id", "from_name", "from_email", "sent_at", "text", "contested"]
CHUNK = {"key": str, "index": int, "text": str, "spans": list, "score": float, "highlights": list,
         "focus": int}  # fmt: skip
ANSWER = [
    *("query_id", "query", "mode", "took_ms", "short", "hits", "conversations", "permalink"),
    *("explain", "facets", "looked_back_to", "without_quotes", "notes", "near", "end"),
]


@pytest.mark.parametrize("mode", ["semantic", "fulltext", "hybrid"])
def test_search_json_has_the_agreed_shape(run: Run, mode: str) -> None:
    result = run("search", "lease ran out", "--json", "--mode", mode, "--limit", "3")
    assert (result.exit_code, result.stderr) == (0, "")
    (line,) = result.stdout.splitlines()
    answer = json.loads(line)
    assert [*answer] == ANSWER
    assert (answer["query_id"], answer["query"], answer["mode"]) == ("", "lease ran out", mode)
    assert (answer["short"], len(answer["conversations"])) == (False, 3)
    for one in answer["conversations"]:
        assert {name: type(value) for name, value in one.items()} == CONVERSATION
        assert [*one["first"]] == FIRST
    shown = [id for one in answer["conversations"] for id in one["best"]]
    assert shown == [hit["message_id"] for hit in answer["hits"]]
    for hit in answer["hits"]:
        assert hit.pop("newer_copy") is None
        assert hit.pop("patch") is None
        assert hit.pop("best_version") is None
        assert {name: type(value) for name, value in hit.items()} == HIT
        assert "<" not in hit["message_id"]
        assert hit["chunks"]
        for chunk in hit["chunks"]:
            distance = chunk.pop("distance")
            assert distance is None or 0 <= distance <= 2
            assert {name: type(value) for name, value in chunk.items()} == CHUNK
            assert all(len(span) == 2 for span in chunk["spans"])


def test_search_prints_hits_and_notes_the_time(run: Run) -> None:
    result = run("search", "40P01", "--mode", "fulltext", "--limit", "2")
    assert result.exit_code == 0
    assert result.stdout.startswith(" 1. ")
    assert result.stdout.count("\n    first: ") == 2
    assert re.match(r"\d hits? of 2 conversations in ", result.stderr)


def test_explain_prints_the_reasons_of_a_hit(run: Run) -> None:
    result = run("search", "lease worker", "--limit", "1", "--explain")
    assert result.exit_code == 0
    assert re.search(r"why: fulltext \d+, semantic \d+; distance", result.stdout)
    assert "words " in result.stdout
    assert "again: mail-assets search 'limit:1 lease worker'" in result.stderr
    assert "mix: " in result.stderr


def test_permalink_gives_the_same_hits(run: Run) -> None:
    options = ["--list", "harbor-users", "--after", "2024-03-02", "--limit", "4", "--json"]
    first = json.loads(run("search", "upgrade lease", *options).stdout)
    again = json.loads(run("search", first["permalink"], "--json").stdout)
    assert again["hits"] == first["hits"] != []
    assert again["permalink"] == first["permalink"]


def test_search_from_a_thread_leaves_it_out(run: Run) -> None:
    answer = json.loads(run("search", "worker", "--near", ROOT, "--json").stdout)
    assert answer["near"]["message_id"] == ROOT
    assert answer["near"]["thread_id"] not in {one["thread_id"] for one in answer["conversations"]}
    missing = run("search", "worker", "--near", "nobody@nowhere")
    assert_fails(missing, 1, "near: no message or thread has the id 'nobody@nowhere'")


def test_similar_prints_messages_near_one(run: Run) -> None:
    result = run("similar", ROOT, "--limit", "2", "--json")
    answer = json.loads(result.stdout)
    assert (result.exit_code, answer["mode"], len(answer["hits"])) == (0, "similar", 2)
    missing = run("similar", "nobody@nowhere")
    assert_fails(missing, 1, "no message 'nobody@nowhere' with text")


def test_nothing_found_exits_0(run: Run) -> None:
    result = run("search", "xyzzy", "--mode", "fulltext")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr.startswith("No message has xyzzy. Is the spelling right?\n0 hits in ")


@pytest.mark.parametrize("command", ["search", "answer"])
@pytest.mark.parametrize("option", ["--after", "--before", "--sender"])
@pytest.mark.parametrize("value", ["", " "])
def test_empty_filter_is_refused(run: Run, command: str, option: str, value: str) -> None:
    result = run(command, "lease", option, value)
    assert_fails(result, 2, f"'{option}': must not be empty")


@pytest.mark.parametrize("command", ["search", "answer"])
@pytest.mark.parametrize("asked", ["", " "])
def test_empty_question_is_refused(run: Run, command: str, asked: str) -> None:
    result = run(command, asked)
    assert_fails(result, 2, "is empty")


def test_filters_reach_the_search(run: Run) -> None:
    filters = ["--list", "harbor-users", "--list", "harbor-es", "--after", "2024-04", "--json"]
    result = run("search", "upgrade", *filters, "--before", "2024-04-20", "--sender", "ingrid")
    hits = json.loads(result.stdout)["hits"]
    assert hits
    for hit in hits:
        assert "harbor-users" in hit["lists"]
        assert "2024-04-01" <= hit["sent_at"] < "2024-04-20"
        assert hit["from_email"].startswith("ingrid@")


@pytest.mark.parametrize(("arguments", "said"), [
    (["search"], "give either a QUERY or --queries FILE"),
    (["search", ""], "the query is empty"),
    (["search", "x" * 60_000], "the query has 60000 characters"),
    (["search", "a\udcffb"], "not valid Unicode"),
    (["search", "x", "--mode", "fuzzy"], "mode 'fuzzy': allowed are hybrid"),
    (["search", "x", "--limit", "0"], "limit 0: allowed are 1 to 100"),
    (["search", "x", "--limit", "many"], "'many' is not a valid integer"),
    (["search", "x", "--list", "nope"], "--list='nope': there are: harbor-dev, harbor-es"),
    (["search", "x", "--after", "someday"], "'someday' is no day"),
    (["search", "x", "--after", "2024", "--before", "2023"], "nothing is after 2024-01-01"),
    (["search", "x before:someday"], "'someday' is no day"),
    (["search", "x", "--group", "list"], "group 'list': allowed are conversation, message"),
    (["search", "x", "--queries", "/dev/null"], "--queries"),
    (["search", "--queries", "/does/not/exist"], "does not exist"),
    (["list", "nope"], "--list='nope'"),
    (["list", "harbor-dev", "--month", "2024-13"], "--month='2024-13'"),
    (["list", "harbor-dev", "--month", "2024-3"], "must be a month such as"),
    (["list", "harbor-dev", "--month", ""], "--month=''"),
    (["backfill", "--list", "nope"], "--list='nope'"),
    (["backfill", "--from", "March"], "--from='March'"),
    (["backfill", "--to", "2024-00"], "--to='2024-00'"),
], ids=lambda x: " ".join(x)[:40] if isinstance(x, list) else "")  # fmt: skip
def test_wrong_argument_exits_2_before_anything_is_opened(
    run: Run, arguments: list[str], said: str
) -> None:
    # there is no server at this address
    result = run(*arguments, MAIL_PG_DSN="postgresql://nobody@127.0.0.1:1/none")
    assert_fails(result, 2, said)


@pytest.mark.parametrize(
    ("command", "environ", "code", "said"),
    [
        ("status", {"MAIL_PG_DSN": "postgresql+psycopg2://u:secret@h/d"}, 2, "MAIL_PG_DSN="),
        ("search x", {"MAIL_CHAT_KEY": "a secret"}, 2, "MAIL_CHAT_KEY='***'"),
        (
            "search x",
            {"MAIL_VECTORS": "supabase://h.example/bucket", "SUPABASE_SERVICE_KEY": ""},
            2,
            "SUPABASE_SERVICE_KEY",
        ),
        ("search x", {"MAIL_PG_DSN": "postgresql://u:secret@127.0.0.1:1/d"}, 1, "127.0.0.1"),
        ("search x --json", {"MAIL_VECTORS": "lance:{empty}"}, 1, "run `mail-assets backfill`"),
    ],
)
def test_unusable_setting_is_one_line_without_secrets(
    run: Run, tmp_path: Path, command: str, environ: dict[str, str], code: int, said: str
) -> None:
    values = {name: value.format(empty=tmp_path) for name, value in environ.items()}
    result = run(*command.split(), **values)
    assert_fails(result, code, said)
    [line] = result.stderr.splitlines()
    assert line.startswith("mail-assets: ")
    assert "secret" not in line


def test_queries_give_one_json_object_a_line_in_order(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "queries.jsonl"
    queries = [("one", "40P01"), ("two", "Übergang 🦆"), ("three", "the of and")]
    lines = [json.dumps({"_id": i, "text": t, "more": 1}) for i, t in queries]
    file.write_text("\ufeff" + "\r\n".join([*lines, "", "  "]), encoding="utf-8")
    result = run("search", "--queries", str(file), "--mode", "fulltext", "--limit", "2")
    assert (result.exit_code, result.stderr) == (0, "")
    answers = [json.loads(line) for line in result.stdout.splitlines()]
    assert [(a["query_id"], a["query"]) for a in answers] == queries
    assert len(answers[0]["conversations"]) == 2
    assert answers[2]["short"] is True


@pytest.mark.parametrize(("line", "said"), [
    (b"no json", "must be a JSON object"),
    (b'{"_id": "a", "text": " "}', "the query is empty"),
    (b'{"_id": "a", "text": "\\ud800"}', "not valid Unicode"),
], ids=lambda x: x[:20].decode() if isinstance(x, bytes) else "")  # fmt: skip
def test_bad_line_stops_before_any_query_is_answered(
    run: Run, tmp_path: Path, line: bytes, said: str
) -> None:
    file = tmp_path / "queries.jsonl"
    file.write_bytes(b'{"_id": "a", "text": "jobs"}\n\n' + line + b"\n")
    result = run("search", "--queries", str(file), "--mode", "fulltext")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"mail-assets: {file}, line 3: ")
    assert said in result.stderr


def test_reader_that_leaves_early_sees_no_traceback(corpus: Corpus, tmp_path: Path) -> None:
    file = tmp_path / "queries.jsonl"
    file.write_text('{"_id": "a", "text": "harbor job"}\n' * 40)
    done = spawn(
        ["search", "--queries", str(file), "--mode", "fulltext", "--limit", "50"],
        corpus.environ,
        "| head -1",
    )
    assert json.loads(done.stdout)["query_id"] == "a"
    assert done.stderr == b""


def test_query_that_begins_with_a_dash_is_explained(run: Run) -> None:
    refused = run("search", "-Wall")
    assert refused.exit_code == 2
    assert "No such option '-W'. Put -- before a query that begins with a dash." in refused.stderr
    found = run("search", "--limit", "1", "--", "-Wall gcc")
    assert found.exit_code == 0
    assert "-Wall was read as: without Wall." in found.stderr
