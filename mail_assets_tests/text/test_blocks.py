"""Blocks of lines that are kept whole."""

import pytest

from mail_assets.text.chunking import find_blocks


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("a\nSELECT 1,\n  2\n  FROM t;\nb", [(1, 4)], id="a statement"),
        pytest.param("SELECT 1; SELECT 2;\nb", [(0, 1)], id="on one line"),
        pytest.param("db=# select 1\ndb-#  from t;", [(0, 2)], id="with psql's prompt"),
        pytest.param("select this\n\nthat;", [], id="a blank line ends the search"),
        pytest.param("select what you like\nand go", [], id="prose without a semicolon"),
        pytest.param("selection;\ncreated;", [], id="words that begin like SQL"),
        pytest.param("x\n a | b\n---+---\n 1 | 2\n(1 row)\ny", [(1, 5)], id="a table"),
        pytest.param("a | b\nc | d\nx", [], id="two lines are no table"),
        pytest.param(
            " Sort  (cost=1.1..2.2 rows=3 width=4)\n   ->  Scan on t  (cost=0.0..1.0)\n"
            "         Filter: (a > 1)\ndone",
            [(0, 3)],
            id="a plan and what is indented below",
        ),
        pytest.param(
            "see:\n2026-01-05 10:11:12 UTC LOG:  a\n2026-01-05 10:11:13 UTC LOG:  b\n\tmore",
            [(1, 4)],
            id="a log to the end of the text",
        ),
        pytest.param(
            " a | b\n---+---\nselect 1;\n 1 | 2\n 3 | 4\n 5 | 6",
            [(3, 6), (2, 3)],
            id="both kinds, tables first",
        ),
        pytest.param("", [], id="nothing"),
    ],
)
def test_blocks_are_found_by_their_lines(text: str, expected: list[tuple[int, int]]) -> None:
    assert list(find_blocks(text.split("\n"))) == expected
