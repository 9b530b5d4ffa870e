"""A model's sentence is kept where the messages that it cites support it, and nowhere else."""

import pytest

from mail_assets.summaries.chat import check_reply
from mail_assets.summaries.summary import MessageText
from mail_assets_tests.summaries.chat_thread import THREAD


def kept(line: str, thread: tuple[MessageText, ...] = THREAD) -> list[str]:
    return [sentence.text for sentence in check_reply(line, thread).sentences]


@pytest.mark.parametrize(
    "line",
    [
        "question: The pump stops at high tide since release 4.2. [1]",
        "- **question**: The pump stops at high tide. [1]",
        "discussion: The float valve sticks when salt dries on it. [2]",
        "Discussion: Bo Roe says that the `float valve` sticks with salt. [2]",
        'discussion: Bo says "salt dries on it" at the valve. [2]',
        "outcome: Ann Poe committed the fix to the main branch. [1, 3]",
        "outcome: The fix of set_valve() is committed to the branch. [3].",
    ],
)
def test_a_supported_sentence_is_kept_without_its_citations(line: str) -> None:
    [text] = kept(line)
    assert "[" not in text
    assert "**" not in text


@pytest.mark.parametrize(
    "line",
    [
        "The pump stops at high tide. [1]",
        "summary: The pump stops at high tide. [1]",
        "question: The pump stops at high tide.",
        "question: The pump stops at high tide. [0]",
        "question: The pump stops at high tide. [4]",
        "question: The pump stops at high tide since release 4.3. [1]",
        "question: The pump stops at high tide since release 2. [1]",
        "question: The pump of Zoe stops at high tide. [1]",
        "discussion: Ann says that the float valve sticks with salt. [2]",
        "discussion: The float valve sticks when salt dries on it. [1]",
        'discussion: The valve "sticks when wet" with salt. [2]',
        "outcome: The fix of reset_valve() is committed to the branch. [3]",
        "outcome: The fix is committed, see https://evil.example.net/ for it. [3]",
        "outcome: Everybody agreed happily about something else entirely. [3]",
        "outcome: " + "the fix is committed " * 60 + "[3]",
        "",
    ],
)
def test_what_the_cited_messages_do_not_support_is_left_out(line: str) -> None:
    checked = check_reply(line, THREAD)
    assert checked.sentences == ()
    assert checked.unsupported == bool(line)


def test_a_sentence_is_placed_where_its_words_stand() -> None:
    reply = "outcome: The fix was committed, the float valve sticks no more with salt. [1, 2, 3]"
    [sentence] = check_reply(reply, THREAD).sentences
    place = next(x for x in THREAD if x.message_id == sentence.message_id)
    assert place.body[sentence.start : sentence.end] == (
        "I think that the float valve sticks when salt dries on it."
    )
    assert sentence.part == "outcome"
    assert sentence.also == ("c@example.org",)


def test_invisible_characters_do_not_come_back() -> None:
    assert kept("question: The pump\u200b stops at high\u202e tide. [1]") == [
        "The pump stops at high tide."
    ]
