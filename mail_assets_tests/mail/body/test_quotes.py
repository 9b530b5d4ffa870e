"""Quote marks, and what only looks like them."""

import pytest

from mail_assets_tests.mail.kinds import letters

FULL = "as long a line as the mail program of its author would ever send"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param(">> a\n> > b\nJD> c\n  > d\nme", "qqqqt", id="quote marks"),
        pytest.param("山田> a\nMü> b\nИП>> c\n김철수>\nme", "qqqqt", id="names in any script"),
        pytest.param("＞ 引用\n＞引用\n山田＞ 引用\nme", "qqqt", id="full-width marks"),
        pytest.param("設定>保存\nA＞B\n1> x\nчисло> 5", "tttt", id="a mark within a line"),
        pytest.param("psql> select 1;\nSQL> select 2\n", "ttt", id="prompts quote nobody"),
        pytest.param("a->b > c\nif a>b\nx => y", "ttt", id="a > inside a line"),
        pytest.param(
            "see\n>>> import os\n>>> os.sep\n'/'", "tttt", id="a Python session is no quote"
        ),
        pytest.param("> x\n>>> import os\nme", "qqt", id="deep quotes among others"),
        pytest.param("me\n>From my side\nno", "ttt", id=">From escapes new text"),
        pytest.param("> he\n>From his side\nme", "qqt", id=">From among quotes"),
        pytest.param(
            f"> {FULL}\nrest\n> of it; {FULL}\nthe\n> end\nme", "qqqqqt", id="quotes wrapped again"
        ),
        pytest.param(f"> {FULL}\nrest\n> of it\nme", "qtqt", id="one rest may be an answer"),
        pytest.param(
            f"> {FULL}?\nno\n> and {FULL}?\nyes\n> end", "qtqtq", id="answers to sentences"
        ),
        pytest.param(
            f"> {FULL}\n> and so on\nno\n> and this\nyes\n> end",
            "qqtqtq",
            id="answers to short lines",
        ),
        pytest.param("| one\n| two\n| three\nme", "qqqt", id="bars quote in threes"),
        pytest.param("| one\n| two\nme", "ttt", id="two bars do not"),
        pytest.param(
            "Xavier wrote:\n| one\n\nme\n| two\nme", "aqttqt", id="bars under an attribution do"
        ),
        pytest.param(" a | b\n---+---\n 1 | 2\n 3 | 4\n(2 rows)", "ttttt", id="psql table"),
        pytest.param(
            " a | b\n---+---\n   | x\n   | y\n   | z", "ttttt", id="psql table, empty first column"
        ),
        pytest.param("+---+\n| a |\n+---+\n| 1 |\n+---+", "ttttt", id="psql table with border"),
        pytest.param(
            "        QUERY PLAN\n-----------------\n Sort  (cost=1.1..2.2 rows=3 width=4)\n"
            "   ->  Seq Scan on t  (cost=0.0..1.0 rows=3 width=4)\n         Filter: (a > 1)",
            "ttttt",
            id="EXPLAIN plan",
        ),
    ],
)
def test_marks_make_a_quote_where_nothing_else_explains_them(body: str, expected: str) -> None:
    assert letters(body) == expected


SESSION = ">>> import crane\n>>> crane.lift(3)\n'up'"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param(f"Try:\n\n{SESSION}\n\n> old\n\nyes", "ttttttqtt", id="above a quote"),
        pytest.param(f"Jo wrote:\n> old\n\nTry:\n{SESSION}", "aqttttt", id="below a quote"),
        pytest.param("> old\nme\n  >>> 1 + 1\n  2\n  >>>", "qtttt", id="indented"),
        pytest.param("see\n\n>>> lift()\n>>>\n", "ttttt", id="a last prompt without its blank"),
        pytest.param(f"> >>> lift()\n> 'no'\nme\n{SESSION}", "qqtttt", id="answers a session"),
        pytest.param(f">>>> lift()\n>'no'\nme\n{SESSION}", "qqtttt", id="marks without blanks"),
        pytest.param(">>> why?\n\nso\n\n> how?\nthus", "qtttqt", id="no output"),
        pytest.param(">>> why?\nno\n\n>> how?\nthus", "qttqt", id="depth 2 in the body"),
        pytest.param(">>> why?\nno\n\n> > how?\nthus", "qttqt", id="depth 2 with blanks"),
        pytest.param(">>> why?\nno\n\n> >> how?\nthus", "qttqt", id="depth 3 with a blank"),
        pytest.param("Jo wrote:\n>>> why?\nno\n> so", "aqtq", id="below an attribution"),
        pytest.param("> he:\n>>> why?\nno\n> so", "qqtq", id="below a quoted line"),
    ],
)
def test_a_session_beside_quotes_is_told_from_a_deep_quote(body: str, expected: str) -> None:
    assert letters(body) == expected
