"""Makers are measured on questions with and without an answer in the samples."""

from collections.abc import Iterator, Sequence

import psycopg
import pytest

from benchmarks.answers import JudgedAnswer, is_supported, measure_answers, split_statements
from mail_assets.answers.chat import ChatMaker
from mail_assets.answers.evidence import find_evidence
from mail_assets.answers.extractive import ExtractiveMaker
from mail_assets.answers.maker import AnswerMaker, read_answer, stream_answer
from mail_assets.openai.chat import ChatModel
from mail_assets.openai.client import Client, Server
from mail_assets.search.language.request import Request
from mail_assets.search.searcher import Searcher
from mail_assets_tests.openai.fake_chat import MODEL, stream
from mail_assets_tests.openai.fake_server import KEY, FakeServer, Json, Reply, serving

LISTS = ("harbor-dev", "harbor-users")

#: Questions, and the message that answers each.
ANSWERED = [
    (
        "which clock decides that a lease is over",
        "PR0P264MB4009A4315B021C9E@PR0P264MB4009.example.com",
    ),
    (
        "how does the fencing token of harbor_complete work",
        "20240307080213.GA5218@solheim.example.org",
    ),
    (
        "which deadlock do harbor_cancel and harbor_boost run into",
        "844515623.20240318122018@example.com",
    ),
    (
        "which cron entries does daylight saving time skip",
        "20240319193112.1912-1-bjorn@akesson.example.net",
    ),
    ("what changed in Harbor 0.8.7", "20240322110008.GA4313@solheim.example.org"),
]
UNANSWERED = [
    "which oven bakes the best sourdough bread",
    "how do I tune a guitar to open G",
    "when is the deadline for my tax return",
    "which train goes from Vienna to Venice at night",
    "how much snow can a flat roof carry",
    "why do the leaves of my tomato plants turn yellow",
    "how do I center an element with CSS grid",
    "which distance operators does pgvector offer",
]


def quoting_model(body: Json) -> Reply:
    """Answer with a line of each of two excerpts, as a good model would."""
    mail = body["messages"][-1]["content"].split("\n")
    starts = [i for i, line in enumerate(mail) if line.strip("[]").isdecimal()][:2]
    lines = [mail[mail.index("|", start) + 1].removeprefix("| ") for start in starts]
    said = " ".join(f"{line} {mail[start]}." for line, start in zip(lines, starts, strict=True))
    return Reply(pieces=stream([*said]))


def inventing_model(body: Json) -> Reply:
    """Answer with what no excerpt says, cited all the same."""
    return Reply(pieces=stream(["Bananas ripen in 77 days at sea [1]. ", "Sailors eat them."]))


@pytest.fixture(params=[quoting_model, inventing_model])
def chat(request: pytest.FixtureRequest) -> Iterator[ChatMaker]:
    model = FakeServer({"/v1/chat/completions": request.param})
    with (
        serving(model) as server,
        Client(Server("MAIL_CHAT", server.url, KEY), lambda stopped, seconds: None) as client,
    ):
        yield ChatMaker(client, ChatModel(MODEL, server.url))


def test_extractive_answers_are_right_or_refused(
    searcher: Searcher, connection: psycopg.Connection
) -> None:
    measures = measure(searcher, connection, ExtractiveMaker(), ANSWERED)
    assert measures == {"answered": 1.0, "refused": 1.0, "found": 1.0, "supported": 1.0} | {
        "relevant": measures["relevant"]
    }
    assert measures["relevant"] > 0.2  # one message of up to five is judged for each question


def test_chat_answers_are_measured_by_their_citations(
    searcher: Searcher,
    connection: psycopg.Connection,
    chat: ChatMaker,
    request: pytest.FixtureRequest,
) -> None:
    measures = measure(searcher, connection, chat, ANSWERED[:2])
    quotes = request.node.callspec.params["chat"] is quoting_model
    assert measures["supported"] == (1.0 if quotes else 0.0)
    # of what has nothing to do with the archive, the model is not asked
    assert measures["refused"] == 1.0


def measure(
    searcher: Searcher,
    connection: psycopg.Connection,
    maker: AnswerMaker,
    answered: Sequence[tuple[str, str]],
) -> dict[str, float]:
    """Ask the questions, and those without an answer, and measure the answers."""
    judged = []
    for question, relevant in [*answered, *((text, "") for text in UNANSWERED)]:
        request = Request(question, lists=LISTS)
        evidence = find_evidence(searcher, connection, request, maker.budget)
        answer = read_answer(stream_answer(maker, evidence))
        texts = {one.number: one.text for one in evidence.excerpts}
        statements = [*split_statements(answer.text)] if answer.sufficient else []
        judged.append(
            JudgedAnswer(
                question,
                frozenset({relevant} - {""}),
                answer.sufficient,
                len(statements),
                sum(is_supported(one, texts) for one in statements),
                tuple(one.message_id for one in answer.citations),
            )
        )
    return measure_answers(judged)
