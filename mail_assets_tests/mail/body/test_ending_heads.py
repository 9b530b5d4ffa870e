"""Candidates for endings: what rules could match is never left out, most lines are."""

import pytest

from mail_assets.mail.body.footers import begins_ending, find_ending_heads

PARAGRAPH = "A line of a paragraph that is long enough to go on below."


@pytest.mark.parametrize(
    "line",
    [
        *("-- ", "—", "____", "Sent from my phone", "To unsubscribe, visit", "the lists list"),
        *("Отправлено с iPhone", "ОТПРАВЛЕНО С IPHONE", "Надіслано з iPhone", "Στάλθηκε από x"),
        *("נשלח מה-x", "أرسلت من x", "تم الإرسال من x", "发自我的 x", "從我的 x", "从我的 x"),
        *("傳送自 x", "發自我的 x", "私の x から送信", "나의 x에서 보냄", "나의 x에서 보냈습니다"),
        *("名 mailing list -- x@example.org", "“This message is for the addressee"),
    ],
)
def test_an_ending_of_any_script_is_a_candidate(line: str) -> None:
    assert begins_ending([line.strip()], 0)
    assert find_ending_heads(["", line.strip()], [1]) == [1]


@pytest.mark.parametrize("line", ["Jo", "漢字", "да нет", "είναι", "- an item", "# a comment"])
def test_most_lines_are_none(line: str) -> None:
    assert find_ending_heads([line], [0]) == []


def test_a_phrase_inside_a_paragraph_is_none_but_a_rule_is_a_candidate() -> None:
    texts = [PARAGRAPH, "To unsubscribe, visit", PARAGRAPH, "----", "To unsubscribe, visit"]
    assert find_ending_heads(texts, [*range(5)]) == [3, 4]
