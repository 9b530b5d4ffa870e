"""Words are counted alike in scripts with blanks and without."""

import pytest

from mail_assets.text.letters import count_words


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("", 0),
        ("The valve sticks, 3 times of 10.", 5),
        ("Das Ventil schließt nicht mehr ganz dicht.", 7),
        ("that’s it", 3),
        ("満潮のとき水泵が止まる理由は、弁が塩で固まるからです。", 6),
        ("ปั๊มน้ำหยุดทำงานเมื่อน้ำขึ้น", 7),
        ("valve 弁が塩で固まる", 2),
        ("12:30 2024-03-01 ===", 0),
    ],
    ids=["empty", "english", "german", "quote", "japanese", "thai", "mixed", "digits"],
)
def test_words_are_counted(text: str, count: int) -> None:
    assert count_words(text) == count
