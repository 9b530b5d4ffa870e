"""A chat server on loopback answers questions about the samples."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import psycopg
import pytest

from mail_assets.answers.answer import Answer, Sources, Text, stream_answer
from mail_assets.answers.chat import INSUFFICIENT, ChatMaker
from mail_assets.answers.evidence import Turn, find_evidence
from mail_assets.openai import ChatModel, Client, EndpointError, Server
from mail_assets.search.language.request import Request
from mail_assets.search.searcher import Searcher
from mail_assets_tests.openai.fake_chat import MODEL, chunk, fake_chat, stream
from mail_assets_tests.openai.fake_server import KEY, FakeServer, Reply, serving
from mail_assets_tests.sample_corpus import QUERY, ROOT

Ask = Callable[..., Answer]


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with serving(fake_chat("The lease ", "ran out [", "1", "][2]", ", see [77].")) as server:
        yield server


@pytest.fixture
def shown() -> list[str]:
    return []


@pytest.fixture
def ask(
    server: FakeServer, searcher: Searcher, connection: psycopg.Connection, shown: list[str]
) -> Iterator[Ask]:
    """A function that asks a question; the events go to `shown`."""
    with Client(Server("MAIL_CHAT", server.url, KEY), lambda stopped, seconds: None) as client:
        maker = ChatMaker(client, ChatModel(MODEL, server.url))

        def ask(question: str = QUERY, history: Sequence[Turn] = (), **fields: Any) -> Answer:
            request = Request(question, **fields)
            evidence = find_evidence(searcher, connection, request, maker.budget, history)
            first, *events, last = stream_answer(maker, evidence)
            assert isinstance(first, Sources)
            for event in events:
                assert isinstance(event, Text)
                shown.append(event.text)
            assert isinstance(last, Answer)
            assert last.text == "".join(event.text for event in events if isinstance(event, Text))
            return last

        yield ask


def test_answer_streams_with_checked_citations(ask: Ask, shown: list[str]) -> None:
    found = ask()
    assert found.text == "The lease ran out [1][2], see."
    assert "".join(shown) == found.text
    assert len(shown) >= 3
    assert (found.answers, found.complete, found.fault) == (True, True, "")
    assert found.dropped == 1
    assert [citation.number for citation in found.citations] == [1, 2]


def test_citation_spans_are_the_sent_characters(
    ask: Ask, server: FakeServer, connection: psycopg.Connection
) -> None:
    found = ask()
    sent = server.seen[0].body["messages"][1]["content"]
    for citation in found.citations:
        rows = connection.execute(
            "select body_text, subject from messages where message_id = %s", [citation.message_id]
        ).fetchall()
        assert {subject for _, subject in rows} == {citation.subject}
        for start, end in citation.spans:
            line = rows[0][0][start:end].strip().split("\n")[0]
            assert f"\n| {line}\n" in sent
        assert f"\n[{citation.number}]\n| From: {citation.from_name} <" in sent
        assert f"\n| Message-ID: {citation.message_id}\n" in sent
    assert sent.endswith(f"\n\nQuestion: {QUERY}")


def test_filters_limit_the_sent_excerpts(ask: Ask, server: FakeServer) -> None:
    ask("lease", lists=("harbor-users",), limit=5)
    sent = server.seen[0].body["messages"][1]["content"]
    lists = [line for line in sent.split("\n") if line.startswith("| List: ")]
    assert lists
    assert all("harbor-users" in line for line in lists)
    assert len({line for line in sent.split("\n") if line.startswith("| Message-ID: ")}) <= 5


@pytest.mark.parametrize(
    "said",
    [
        [f"{INSUFFICIENT} nothing on tides [99]."],
        [*INSUFFICIENT, " nothing", " on tides [99]."],
        ["\n ", "INSUFF", "ICIENT", ": nothing on tides [99]."],
        [f"**{INSUFFICIENT}", " nothing on tides [99]."],
        [f"**{INSUFFICIENT}", "*", "* ", "nothing on tides [99]."],
        ["**INSUFFICIENT**", ": nothing on tides [99]."],
        ["Insufficient: nothing on tides [99]."],
    ],
)
def test_refusal_is_recognized_and_its_mark_is_hidden(
    ask: Ask, server: FakeServer, shown: list[str], said: list[str]
) -> None:
    server.script = [Reply(pieces=stream(said))]
    found = ask()
    assert (found.answers, found.complete, found.dropped) == (False, True, 1)
    assert found.text.strip() == "nothing on tides." == "".join(shown).strip()
    assert found.citations == ()


def test_refusal_may_begin_with_underscores(ask: Ask, server: FakeServer) -> None:
    server.script = [Reply(pieces=stream([INSUFFICIENT, " ", "__init__ is not named."]))]
    assert ask().text == "__init__ is not named."


@pytest.mark.parametrize("said", [
    "INSUFFICIENT_PRIVILEGE is raised [1].", "Insufficient memory: the lease [1]", "INSUFFICIENT",
    "I", "**So** it is [1]",
])  # fmt: skip
def test_word_like_the_mark_is_an_answer(ask: Ask, server: FakeServer, said: str) -> None:
    server.script = [Reply(pieces=stream([*said]))]
    found = ask()
    assert (found.answers, found.text) == ("[1]" in said, said)


@pytest.mark.parametrize(
    ("reply", "says"),
    [
        (Reply(pieces=[chunk("It waits [1] and ["), chunk("2")], cut=1), "RemoteProtocolError"),
        (Reply(pieces=[chunk("It waits [1] and ["), chunk("2")]), "the answer broke off"),
        (Reply(pieces=stream(["It waits [1] and [", "2"], "length")), "finish_reason is 'length'"),
    ],
)
def test_broken_answer_keeps_its_text_and_reports_the_fault(
    ask: Ask, server: FakeServer, shown: list[str], reply: Reply, says: str
) -> None:
    server.script = [reply]
    found = ask()
    assert (found.complete, found.text) == (False, "It waits [1] and [2")
    assert "".join(shown) == found.text
    assert says in found.fault
    assert [citation.number for citation in found.citations] == [1]
    assert len(server.seen) == 1


def test_failure_within_the_first_word_breaks_the_answer(ask: Ask, server: FakeServer) -> None:
    server.script = [Reply(pieces=[chunk("INSU")], cut=1)]
    found = ask()
    assert (found.complete, found.answers, found.text) == (False, False, "INSU")


def test_failure_before_the_first_word_is_an_error(
    ask: Ask, server: FakeServer, shown: list[str]
) -> None:
    server.script = [Reply(pieces=[b": wait\n\n"], cut=1)]
    with pytest.raises(EndpointError, match="RemoteProtocolError"):
        ask()
    assert shown == []


def test_empty_answer_is_incomplete(ask: Ask, server: FakeServer) -> None:
    server.script = [Reply(pieces=stream([" \n"]))]
    found = ask()
    assert (found.complete, found.fault) == (False, "the model answered nothing")


@pytest.mark.parametrize("question", ["xyzzy", "ornitorrinco"])
def test_model_is_not_called_without_excerpts(ask: Ask, server: FakeServer, question: str) -> None:
    found = ask(question, mode="fulltext")
    assert (found.answers, found.complete, found.excerpts) == (False, True, 0)
    assert server.seen == []


def test_answer_as_json_has_its_keys(ask: Ask) -> None:
    found = ask().as_json()
    assert [*found] == [
        *("question", "maker", "text", "answers", "complete", "fault", "citations"),
        *("dropped", "excerpts", "took_ms", "reading"),
    ]
    assert [*found["citations"][0]] == [
        *("number", "message_id", "lists", "month", "subject", "from_name", "from_email"),
        *("sent_at", "spans", "contested", "text", "namesake"),
    ]


def test_follow_up_is_asked_with_its_history(ask: Ask, server: FakeServer) -> None:
    ask("and since when", history=[Turn(QUERY, "The lease ran out [1], see [4].")])
    system, question, answer, last = server.seen[0].body["messages"]
    assert system["role"] == "system"
    assert question == {"role": "user", "content": QUERY}
    # the numbers of an earlier answer are of other excerpts
    assert answer == {"role": "assistant", "content": "The lease ran out, see."}
    assert last["content"].endswith("\n\nQuestion: and since when")
    # "and since when" alone finds none of this
    assert "lease" in last["content"].rpartition("Question: ")[0].lower()


def test_unknown_ids_and_urls_are_removed(ask: Ask, server: FakeServer) -> None:
    said = f"It ran out <{ROOT}>, see <made@up.example.org> or https://up.example.org/m/1 [1]."
    server.script = [Reply(pieces=stream([*said]))]
    found = ask()
    assert found.text == f"It ran out <{ROOT}>, see <[...]> or [...] [1]."
    assert found.dropped == 2
