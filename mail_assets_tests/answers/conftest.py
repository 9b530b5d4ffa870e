"""Fixtures of the tests of answers: a connection, and whole answers."""

from mail_assets.answers.answer import Answer, AnswerMaker, stream_answer
from mail_assets.answers.evidence import Evidence
from mail_assets_tests.search.conftest import connection

__all__ = ["connection"]  # fixture


def write_answer(maker: AnswerMaker, evidence: Evidence) -> Answer:
    """Return the whole answer, the last of its events."""
    *_, last = stream_answer(maker, evidence)
    assert isinstance(last, Answer)
    return last
