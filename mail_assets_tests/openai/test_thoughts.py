"""What a model thinks before its answer is no part of it, however it comes in pieces."""

import pytest

from mail_assets.openai.chat import leave_out_thoughts


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ("<think>Who asks [1]? <b>me</b></think>\n\nThe lease [2].", "The lease [2]."),
        ("\n<think>\n</think>INSUFFICIENT: no mail.", "INSUFFICIENT: no mail."),
        ("<think>a</think><think>b</think>", "<think>b</think>"),
        ("<think>without end", ""),
        ("<think>a</think>", ""),
        ("<think>a</think>  \n", ""),
        ("<thing> is a tag", "<thing> is a tag"),
        ("<thi", "<thi"),
        ("The tag <think>is</think> one", "The tag <think>is</think> one"),
        (" plain", " plain"),
        ("", ""),
    ],
)
def test_one_block_of_thoughts_is_left_out_at_the_beginning(said: str, answer: str) -> None:
    for size in range(1, len(said) + 2):
        pieces = [said[at : at + size] for at in range(0, len(said), size)]
        assert "".join(leave_out_thoughts(pieces)) == answer


def test_an_answer_without_thoughts_waits_for_nothing() -> None:
    assert [*leave_out_thoughts(["The ", "lease"])] == ["The ", "lease"]
