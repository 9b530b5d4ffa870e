"""Sentences of mail, and other text without sentences."""

import pytest

from mail_assets.text.sentences import find_blocks, find_sentences, join_lines

CASES = {
    "marks": ("It leaks. Why? Stop it!", ["It leaks.", "Why?", "Stop it!"]),
    "wrapped lines": (
        "The pump leaks at\nnight. We saw it.",
        ["The pump leaks at\nnight.", "We saw it."],
    ),
    "abbreviations": (
        "Use a valve, e.g. a new one. Ask Dr. Roe.",
        ["Use a valve, e.g. a new one.", "Ask Dr. Roe."],
    ),
    "initials": ("J. R. Roe wrote it. I did not.", ["J. R. Roe wrote it.", "I did not."]),
    "versions and files": (
        "Use 2.3.1 of pump.c here. It works.",
        ["Use 2.3.1 of pump.c here.", "It works."],
    ),
    "dots within": (
        "It opens... and closes. Then it waits.",
        ["It opens... and closes.", "Then it waits."],
    ),
    "quotes and brackets": (
        'He said "no." (I agree.) Then we left.',
        ['He said "no."', "(I agree.)", "Then we left."],
    ),
    "small letters": (
        "it leaks again. we should close it.",
        ["it leaks again.", "we should close it."],
    ),
    "a list": (
        "We need:\n- a valve\n- a second sensor\n1. Close it.",
        ["We need:", "a valve", "a second sensor", "Close it."],
    ),
    "a greeting above": ("Hi Sam,\nThe pump leaks.", ["Hi Sam,", "The pump leaks."]),
    "paragraphs": ("No mark\n\nat all", ["No mark", "at all"]),
    "Chinese and Japanese": ("泵漏水了。我们要换阀门！好", ["泵漏水了。", "我们要换阀门！", "好"]),
    "words that name fields too": (
        "Subject lines are long.\nLink order decides.\nDate parsing fails.\nBug reports help.\n"
        "To fix it, close it.\nFrom here it leaks.\nFixes are welcome.\ncommit it.",
        [
            *("Subject lines are long.", "Link order decides.", "Date parsing fails."),
            *("Bug reports help.", "To fix it, close it.", "From here it leaks."),
            *("Fixes are welcome.", "commit it."),
        ],
    ),
    "an address": (
        "See https://example.org/a.b?c=d. It helps.",
        ["See https://example.org/a.b?c=d.", "It helps."],
    ),
    "no text": (" \n\n ", []),
}
NO_PROSE = {
    "C": "int open_valve(int pressure)\n{\n    return pressure > 4;\n}",
    "a shell": "$ make install\n# reboot",
    "a shell that names its host": (
        "bo@pump:~/work# pump start --all\n[bo@pump valves]$ make check\nbo@pump-2 % make install"
    ),
    "substitutions": "s/the the/the/\ns/valev/valve/g s/pmup/pump/",
    "what git appends to a patch": (
        "base-commit: 8bb7eca972ad531c9b149c0a51ab43a417385813\n"
        "change-id: 20240501-leaking-valve-5d72f9979fad\n"
        "prerequisite-patch-id: 53b6b8a0f1b2d8b58e0d5c6c02fe0d8bc1b4e6f2"
    ),
    "what to pull": "git://git.example.org/pump.git tags/valves-6.11\nhttps://example.org/p fixes",
    "SQL": "select *\n  from pumps\n where leaks;",
    "a server's log": "LOG:  checkpoint starting\nDETAIL:  it was time\nHINT:  wait",
    "roff": ".TH PUMP 3\n.SH NAME",
    "trailers": "Signed-off-by: Jo Roe <jo@example.org>\nReviewed-by: Sam Poe <sam@example.org>",
    "fields": "Subject: the pump\nDate: Mon, 4 Mar 2024\nBug: 12\nTo: list@example.org",
    "a commit": "commit 1a2b3c4d5e6f\nAuthor: Jo Roe\nFixes #12\nLink https://example.org/1",
    "a link": "https://example.org/pump",
    "rules": "-----------\n===========",
    "a table": "  name | pressure\n-------+---------\n  north | 4",
}


@pytest.mark.parametrize(("text", "sentences"), CASES.values(), ids=CASES)
def test_text_is_cut_into_sentences(text: str, sentences: list[str]) -> None:
    assert [text[start:end] for start, end in find_sentences(text)] == sentences


@pytest.mark.parametrize("text", NO_PROSE.values(), ids=NO_PROSE)
def test_other_text_than_prose_has_no_sentence(text: str) -> None:
    assert list(find_sentences(text)) == []


def test_indented_display_among_prose_is_left_out() -> None:
    text = "The page says this:\n\n    pump the water out\n\nIt is wrong."
    assert [text[a:b] for a, b in find_sentences(text)] == ["The page says this:", "It is wrong."]


def test_only_the_span_asked_for_is_read() -> None:
    text = "> It leaks.\nIt does. Always.\n> Why?"
    spans = list(find_sentences(text, 12, 29))
    assert [text[start:end] for start, end in spans] == ["It does.", "Always."]


def test_joined_lines_keep_items_on_their_own() -> None:
    text = "We decided:\n\n- The pump stays,\n  and  its valve.\n2. It\nis oiled.\n"
    assert join_lines(text) == "We decided:\n- The pump stays, and its valve.\n2. It is oiled."


@pytest.mark.parametrize(("text", "expected"), [
    pytest.param("a\nSELECT 1,\n  2\n  FROM t;\nb", [(1, 4)], id="a statement"),
    pytest.param("SELECT 1; SELECT 2;\nb", [(0, 1)], id="on one line"),
    pytest.param("db=# select 1\ndb-#  from t;", [(0, 2)], id="with psql's prompt"),
    pytest.param("select this\n\nthat;", [], id="a blank line ends the search"),
    pytest.param("select what you like\nand go", [], id="prose without a semicolon"),
    pytest.param("selection;\ncreated;", [], id="words that begin like SQL"),
    pytest.param("x\n a | b\n---+---\n 1 | 2\n(1 row)\ny", [(1, 5)], id="a table"),
    pytest.param("a | b\nc | d\nx", [], id="two lines are no table"),
    pytest.param(" Sort  (cost=1.1..2.2 rows=3 width=4)\n   ->  Scan on t  (cost=0.0..1.0)\n"
                 "         Filter: (a > 1)\ndone", [(0, 3)],
                 id="a plan and what is indented below"),
    pytest.param("see:\n2026-01-05 10:11:12 UTC LOG:  a\n2026-01-05 10:11:13 UTC LOG:  b\n\tmore",
                 [(1, 4)], id="a log to the end of the text"),
    pytest.param(" a | b\n---+---\nselect 1;\n 1 | 2\n 3 | 4\n 5 | 6", [(3, 6), (2, 3)],
                 id="both kinds, tables first"),
    pytest.param("", [], id="nothing"),
])  # fmt: skip
def test_blocks_are_found_by_their_lines(text: str, expected: list[tuple[int, int]]) -> None:
    assert list(find_blocks(text.split("\n"))) == expected
