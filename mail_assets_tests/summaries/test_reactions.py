"""Reactions: who quoted a sentence and answered it."""

from mail_assets.summaries.extractive import count_reactions, find_candidates
from mail_assets.summaries.summary import MessageText
from mail_assets_tests.summaries.threads import write_message

ASKED = "The pump at the north pier stops at night. The valve of the south pier is quite old."


def reactions(*answers: str) -> list[int]:
    messages: list[MessageText] = [write_message(0, ASKED)]
    messages += [write_message(i, text, "Sam Poe", 0) for i, text in enumerate(answers, 1)]
    return count_reactions(messages, find_candidates(messages))[:2]


def test_a_sentence_that_is_quoted_above_an_answer_counts() -> None:
    assert reactions("> The pump at the north pier stops at night.\n\nIt needs oil every day.") == [
        1,
        0,
    ]


def test_lines_may_be_wrapped_anew() -> None:
    assert reactions("> The pump at the\n> north pier stops\n> at night.\n\nIt needs oil.") == [
        1,
        0,
    ]


def test_every_message_that_answers_counts_once() -> None:
    answer = "> The pump at the north pier stops at night.\nIt needs oil.\n" * 2
    assert reactions(answer, answer) == [2, 0]


def test_a_quote_below_the_answer_and_a_quote_in_a_quote_count_nothing() -> None:
    below = "It needs oil.\n\n> The pump at the north pier stops at night.\n"
    nested = "> > The pump at the north pier stops at night.\n> Does it?\n\nIt does, every night."
    assert reactions(below) == [0, 0]
    assert reactions(nested) == [0, 0]


def test_of_a_long_quote_only_the_end_is_answered() -> None:
    middle = "".join(
        f"> Line {i} of a long report about other things entirely.\n" for i in range(20)
    )
    quote = f"> The pump at the north pier stops at night.\n{middle}"
    assert reactions(f"{quote}\nThat is long.") == [0, 0]
