"""Passages of the right conversation are shown for questions about the samples."""

import psycopg
import pytest

from mail_assets.answers.answer import Answer, PassageMaker
from mail_assets.answers.evidence import find_evidence
from mail_assets.search.language.request import Request
from mail_assets.search.searcher import Searcher
from mail_assets_tests.answers.conftest import write_answer

LISTS = ("harbor-dev", "harbor-users")

#: Questions, and the message that answers each.
QUESTIONS = [
    ("which clock decides that a lease is over",
     "PR0P264MB4009A4315B021C9E@PR0P264MB4009.example.com"),
    ("how does the fencing token of harbor_complete work",
     "20240307080213.GA5218@solheim.example.org"),
    ("which deadlock do harbor_cancel and harbor_boost run into",
     "844515623.20240318122018@example.com"),
    ("which cron entries does daylight saving time skip",
     "20240319193112.1912-1-bjorn@akesson.example.net"),
    ("what changed in Harbor 0.8.7", "20240322110008.GA4313@solheim.example.org"),
]  # fmt: skip


@pytest.mark.parametrize(("question", "message_id"), QUESTIONS)
def test_passage_of_the_conversation_is_shown(
    searcher: Searcher, connection: psycopg.Connection, question: str, message_id: str
) -> None:
    found = answer(searcher, connection, question)
    query = (
        "select b.message_id from threads a join threads b using (thread_id)"
        " where a.message_id = %s"
    )
    thread = {one for (one,) in connection.execute(query, [message_id]).fetchall()}
    assert thread & {one.message_id for one in found.citations}


def answer(searcher: Searcher, connection: psycopg.Connection, question: str) -> Answer:
    maker = PassageMaker()
    evidence = find_evidence(searcher, connection, Request(question, lists=LISTS), maker.budget)
    return write_answer(maker, evidence)
