"""Extractive summaries: what holds of every one of them."""

import pytest

from mail_assets.summaries.extractive import summarize
from mail_assets_tests.summaries.threads import START, write_message

QUESTION = """Hello all,

The pump at the north pier stops whenever the tide is above four meters. I propose that we
replace the valve by one that opens at a lower pressure.

    int pump_pressure(int tide) { return tide * 2; }

Regards,
Jo Roe
"""
ANSWER = """On Friday, Jo Roe wrote:
> The pump at the north pier stops whenever the tide is above four meters. I propose that we
> replace the valve by one that opens at a lower pressure.

A lower pressure would also open the valve in a storm, so a second sensor is needed.

--
Sam Poe
"""
OUTCOME = """Jo Roe wrote:
> A lower pressure would also open the valve in a storm, so a second sensor is needed.

Applied, with the second sensor. Thanks!
"""
THREAD = [
    write_message(0, QUESTION),
    write_message(1, ANSWER, "Sam Poe", 0),
    write_message(2, OUTCOME, "Lee Doe", 1),
]


def test_every_sentence_stands_where_it_says() -> None:
    bodies = {message.message_id: message.body for message in THREAD}
    sentences = summarize(THREAD).sentences
    assert sentences
    for one in sentences:
        assert bodies[one.message_id][one.start : one.end] == one.text


def test_a_thread_has_a_question_a_discussion_and_an_outcome() -> None:
    parts = {one.part: one.text for one in summarize(THREAD).sentences}
    assert parts["outcome"] == "Applied, with the second sensor."
    assert parts["discussion"].startswith("A lower pressure")
    assert parts["question"].startswith("I propose")


def test_people_dates_and_patches_are_those_of_all_messages() -> None:
    diff = "Here it is at last, as we said.\n\n--- a/pump.c\n+++ b/pump.c\n@@ -1 +1 @@\n-a\n+b\n"
    summary = summarize([*THREAD, write_message(3, diff, "Jo Roe", 2)])
    assert summary.participants == ("Jo Roe", "Sam Poe", "Lee Doe")
    assert (summary.first_at, (summary.last_at - START).total_seconds()) == (START, 3 * 3600)
    assert summary.patches == ("m3@example.org",)


def test_a_thread_without_text_has_no_sentences() -> None:
    assert summarize([write_message(0, "")]).sentences == ()


def test_a_thread_without_messages_is_refused() -> None:
    with pytest.raises(ValueError, match="without an archived message"):
        summarize([])
