"""Pairs of unspaced letters, and counts of words."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mail_assets.text.letters import UNSPACED, count_words, pair_letters


@pytest.mark.parametrize(("text", "pairs"), [
    ("数据库", "数据 据库"),
    ("在pg_class表中", "在 pg_class 表中"),
    ("40P01エラー", "40P01 エラ ラー"),
    ("백업을 했다", "백업 업을 했다"),
    ("ฐานข้อมูล", "ฐา าน นข้ ข้อ อมู มูล"),
    ("ក្រុម", "ក្រុ រុម"),
    ("葛\U000e0100城市", "葛\U000e0100城 城市"),
    ("ﾊﾞｯｸ", "ﾊﾞｯ ｯｸ"),
    ("か\u3099き", "か\u3099き"),
    ("𠀀𠀁𠀂", "𠀀𠀁 𠀁𠀂"),
    ("データ・ベース、了", "デー ータ ・ ベー ース 、 了"),
    ("用é和ж", "用 é 和 ж"),
])  # fmt: skip
def test_runs_of_unspaced_letters_are_written_as_pairs(text: str, pairs: str) -> None:
    assert pair_letters(text).split() == pairs.split()


@given(st.text(st.characters(exclude_characters="".join(map(chr, range(0x0E00, 0x40000))))))
def test_text_without_such_letters_stays_as_it_is(text: str) -> None:
    assert pair_letters(text) is text


@given(st.text("ab_. 数据库백업ฐ้", max_size=30))
def test_nothing_of_a_text_is_lost_or_joined(text: str) -> None:
    paired = pair_letters(text)
    assert {*paired} - {" "} == {*text} - {" "}
    assert re.sub(rf"[{UNSPACED}]+", " ", paired).split() == (
        re.sub(rf"[{UNSPACED}]+", " ", text).split()
    )


@pytest.mark.parametrize(("text", "count"), [
    ("", 0),
    ("The valve sticks, 3 times of 10.", 5),
    ("Das Ventil schließt nicht mehr ganz dicht.", 7),
    ("that’s it", 3),
    ("満潮のとき水泵が止まる理由は、弁が塩で固まるからです。", 6),
    ("ปั๊มน้ำหยุดทำงานเมื่อน้ำขึ้น", 7),
    ("valve 弁が塩で固まる", 2),
    ("12:30 2024-03-01 ===", 0),
], ids=["empty", "english", "german", "quote", "japanese", "thai", "mixed", "digits"])  # fmt: skip
def test_words_are_counted(text: str, count: int) -> None:
    assert count_words(text) == count
