"""`mail-assets answer`: streams, exit codes, secrets."""

import json
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from click.testing import Result

from mail_assets.answers.answer import Answer, Citation
from mail_assets.cli.answer import _print_sources
from mail_assets_tests.cli.conftest import Run, assert_fails
from mail_assets_tests.openai.fake_chat import MODEL, chunk, fake_chat, stream
from mail_assets_tests.openai.fake_server import KEY, FakeServer, Reply, serving

QUESTION = "why do jobs run twice after a worker pauses"


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with serving(fake_chat("The lease ", "ran out [1], see [77].")) as server:
        yield server


@pytest.fixture
def answer(run: Run, server: FakeServer) -> Run:
    """`answer("--json", ..., MAIL_X="...")`: the question asked of the server."""
    chat = {"MAIL_CHAT_URL": server.url, "MAIL_CHAT_MODEL": MODEL, "MAIL_CHAT_KEY": KEY}

    def answer(*arguments: str, question: str = QUESTION, **environ: str) -> Result:
        return run("answer", question, *arguments, **{**chat, **environ})

    return answer


def texts_in_mail(found: dict[str, Any], connection: psycopg.Connection) -> list[str]:
    """The text at the spans of the passages of an answer."""
    texts = []
    for one in found["citations"]:
        rows = connection.execute(
            "select body_text from messages where message_id = %s and month = %s",
            [one["message_id"], one["month"]],
        ).fetchall()
        texts += [rows[0][0][start:end] for start, end in one["spans"]]
    return texts


def test_answer_prints_its_text_and_sources(answer: Run) -> None:
    result = answer()
    assert result.exit_code == 0
    text, _, sources = result.stdout.partition("\n\n")
    assert text == "The lease ran out [1], see."
    first, who, where = sources.splitlines()
    assert first.startswith("[1] ")
    assert who.startswith("    ")
    assert where.startswith("    <")
    assert " characters " in where
    assert result.stderr == "citations, addresses and links left out that no excerpt has: 1\n"


def test_answer_json_is_one_object(answer: Run) -> None:
    result = answer("--json")
    assert result.exit_code == 0
    found = json.loads(result.stdout)
    assert found["text"] == "The lease ran out [1], see."
    assert (found["answers"], found["complete"], found["dropped"]) == (True, True, 1)
    (citation,) = found["citations"]
    assert citation["number"] == 1
    assert all(start < end for start, end in citation["spans"])


def test_answer_without_a_model_is_passages(run: Run, connection: psycopg.Connection) -> None:
    result = run("answer", "when does a lease expire", "--json")
    assert (result.exit_code, result.stderr) == (0, "")
    found = json.loads(result.stdout)
    assert found["maker"] == "passages"
    assert 3 <= len(found["citations"]) <= 5
    assert texts_in_mail(found, connection) == [one["text"] for one in found["citations"]]
    printed = run("answer", "when does a lease expire").stdout
    assert printed.startswith(f"{found['reading']}\n{found['text']}\n\n[1] ")
    for one in found["citations"]:
        assert f"characters {one['spans'][0][0]}-{one['spans'][0][1]}\n\n{one['text']}" in printed


def test_several_passages_of_a_conversation_are_an_option(run: Run) -> None:
    asked = ("answer", "when does a lease expire", "--json")
    one, several = (json.loads(run(*asked, *more).stdout) for more in ((), ("--several",)))
    assert one["citations"] != several["citations"]


def test_budget_too_small_for_an_excerpt_exits_2(
    answer: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mail_assets.answers.excerpts.HEADER_TOKENS", 10_000)
    result = answer(MAIL_CHAT_BUDGET="2000")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(
        "mail-assets: MAIL_CHAT_BUDGET='2000': an excerpt needs at least 10"
    )


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--list", "nope"), "--list='nope': there are:"),
        (("--mode", "fuzzy"), "mode 'fuzzy'"),
        (("--after", "someday"), "'someday' is no day"),
        (("--limit", "0"), "limit 0"),
    ],
)
def test_wrong_argument_exits_2_before_the_model_is_asked(
    answer: Run, server: FakeServer, arguments: tuple[str, ...], says: str
) -> None:
    result = answer(*arguments)
    assert_fails(result, 2, says)
    assert server.seen == []


@pytest.mark.parametrize("as_json", [(), ("--json",)])
def test_broken_answer_exits_1_and_is_marked_incomplete(
    answer: Run, server: FakeServer, as_json: tuple[str, ...]
) -> None:
    server.script = [Reply(pieces=[chunk("The lease [1]")], cut=1)]
    result = answer(*as_json)
    assert result.exit_code == 1
    assert "mail-assets: the answer is incomplete: " in result.stderr
    assert "The lease [1]" in result.stdout
    if as_json:
        assert json.loads(result.stdout)["complete"] is False


def test_refusal_of_the_server_exits_1_without_the_key(answer: Run) -> None:
    result = answer(MAIL_CHAT_KEY="sk-wrong-key")
    assert_fails(result, 1, "HTTP 401: Incorrect API key provided; MAIL_CHAT_KEY is refused")
    assert "sk-wrong-key" not in result.stderr


@pytest.mark.parametrize(
    "said",
    [
        "INSUFFICIENT: no mail on it.",
        "It is so.",
    ],
)
def test_weak_answer_has_a_remark(answer: Run, server: FakeServer, said: str) -> None:
    server.script = [Reply(pieces=stream([said]))]
    result = answer()
    assert result.exit_code == 0
    assert result.stderr.startswith("the model found no answer in the excerpts, or cites none")
    assert result.stdout == said.removeprefix("INSUFFICIENT: ") + "\n"


def test_nothing_found_is_a_note(answer: Run, server: FakeServer) -> None:
    result = answer("--mode", "fulltext", question="xyzzy")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "nothing was found to answer from\n"
    assert server.seen == []


def test_unanswerable_question_is_declined(run: Run) -> None:
    result = run("answer", "which oven bakes the best sourdough bread", "--limit", "5")
    assert (result.exit_code, result.stdout) == (0, "The archive says nothing near it.\n")


def test_passages_ask_no_chat_model(answer: Run, server: FakeServer) -> None:
    result = answer("--passages", "--json")
    assert json.loads(result.stdout)["maker"] == "passages"
    assert server.seen == []


def test_questions_of_stdin_follow_up_until_an_empty_line(run: Run, server: FakeServer) -> None:
    chat = {"MAIL_CHAT_URL": server.url, "MAIL_CHAT_MODEL": MODEL, "MAIL_CHAT_KEY": KEY}
    asked = f"{QUESTION}\nand since when\n\n{QUESTION}"
    result = run("answer", "--json", stdin=asked, **chat)
    assert result.exit_code == 0
    found = [json.loads(line) for line in result.stdout.splitlines()]
    assert [one["question"] for one in found] == [QUESTION, "and since when", QUESTION]
    sent = [seen.body["messages"] for seen in server.seen]
    assert [len(messages) for messages in sent] == [2, 4, 2]
    assert sent[1][1] == {"role": "user", "content": QUESTION}
    assert sent[1][2] == {"role": "assistant", "content": "The lease ran out, see."}


def test_several_answers_are_separated_by_an_empty_line(run: Run) -> None:
    asked = "which oven bakes the best sourdough bread\n" * 2
    result = run("answer", stdin=asked)
    assert result.stdout == "The archive says nothing near it.\n\n" * 2


def test_wrong_question_of_stdin_does_not_stop_the_next(run: Run) -> None:
    asked = "lease has:pach\nwhich oven bakes the best sourdough bread\n"
    result = run("answer", stdin=asked)
    assert result.stdout == "The archive says nothing near it.\n\n"
    assert result.stderr.startswith("mail-assets: kind 'pach'")
    assert result.exit_code == 2


def test_id_of_a_source_has_no_control_characters(capsys: pytest.CaptureFixture[str]) -> None:
    cited = Citation(
        number=1, message_id="b\x9b31m@example.org", month="2024-03", lists=("dev",),
        subject="Boats", from_name="Ann", from_email="ann@example.org",
        sent_at="2024-03-04T09:00:00Z", spans=((0, 5),),
    )  # fmt: skip
    _print_sources(Answer("why", "small", "So [1].", True, True, "", (cited,), 0, 1, 1.0))
    assert "<b\ufffd31m@example.org>" in capsys.readouterr().out
