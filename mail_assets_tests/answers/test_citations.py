"""Citations are checked before they are shown, however the stream is cut."""

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mail_assets.answers.citations import CitationFilter

NUMBERS = range(1, 4)

#: (what the model writes, what is shown, numbers cited, citations dropped)
CASES = [
    ("It waits [1].", "It waits [1].", [1], 0),
    ("It waits [9].", "It waits.", [], 1),
    ("Both [2][1] say so [2].", "Both [2][1] say so [2].", [2, 1], 0),
    ("Both [2][7] say so.", "Both [2] say so.", [2], 1),
    ("All [1, 3].", "All [1, 3].", [1, 3], 0),
    ("All [1; 8,3].", "All [1, 3].", [1, 3], 1),
    ("All [1-3].", "All [1, 2, 3].", [1, 2, 3], 0),
    ("All [2\u20139].", "All [2, 3].", [2, 3], 6),
    ("None [7, 8].", "None.", [], 2),
    ("Odd [ 2 ] one.", "Odd [2] one.", [2], 0),
    ("Zero [0] and [00].", "Zero and.", [], 2),
    ("Marks [,9] [9,] [1,] [9 9].", "Marks [1].", [1], 4),
    ("A chain [1-2-3] [1-2-9].", "A chain [1, 2, 3] [1, 2].", [1, 2, 3], 1),
    ("Padded [01].", "Padded.", [], 1),
    ("Huge [99999999999999999999999].", "Huge.", [], 1),
    ("Back [3-1].", "Back.", [], 1),
    ("Wide [1-99999999999].", "Wide.", [], 1),
    ("Arabic [\u0669] digits [\u0661].", "Arabic digits [1].", [1], 1),
    ("Code `argv[9]` stays [1].", "Code `argv[9]` stays [1].", [1], 0),
    ("```\na[7] = b[1];\n```\nso [2]", "```\na[7] = b[1];\n```\nso [2]", [2], 0),
    ("No code ` here [7]\n` and [1]", "No code ` here\n` and [1]", [1], 1),
    ("Alone ` [8] [1]", "Alone ` [1]", [1], 1),
    ("Open [1", "Open [1", [], 0),
    ("Text [sic] and [] and [a1].", "Text [sic] and [] and [a1].", [], 0),
    ("[[1]] and [[8]]", "[[1]] and [?]", [1], 1),
    ("[[9]7] and [1, [8] 9]", "[?7] and [1,? 9]", [], 2),
    ("[x [7] y]", "[x y]", [], 1),
    ("Spaces   stay  [1]  here.  ", "Spaces   stay  [1]  here.  ", [1], 0),
    ("Red \x1b[31mtext\x1b[0m\x07 [1]\u202e.", "Red [31mtext[0m [1].", [1], 0),
    ("Tab\tand\nline [1]", "Tab\tand\nline [1]", [1], 0),
    ("", "", [], 0),
    ("Labels [Excerpt 9] [excerpts 1 and 8] [Ref. 2].", "Labels [1] [2].", [1, 2], 2),
    ("Notes [^9] and [^3] and [#2].", "Notes and [3] and [2].", [3, 2], 1),
    ("Round (9), round (Excerpt 2), round (1, 9).", "Round, round [2], round [1].", [2, 1], 2),
    ("Wide \u30109\u3011 \u30101\u2020source\u3011 \uff082\uff09.", "Wide [1] [2].", [1, 2], 1),
    ("Daggers [9\u2020a-b.txt] \u3014Fuente 3\u3015.", "Daggers [3].", [3], 1),
    ("In (2024), bug (#17254), [#17254].", "In (2024), bug (#17254), [#17254].", [], 0),
    ("See open(2), f_(1), `f`(1), (PostgreSQL 9).", "See open(2), f_(1), `f`(1), (PostgreSQL 9).",
     [], 0),
    ("Two: (1) it waits, and (2) it ends (9).", "Two: (1) it waits, and (2) it ends.", [], 1),
    ("(1) It waits (1).\n(2) It ends (2).", "(1) It waits [1].\n(2) It ends [2].", [1, 2], 0),
    ("(9) is none, (2) is one.", " is none, [2] is one.", [2], 1),
    ("[see 9] and (excerpts) and [9 lives]", "[see 9] and (excerpts) and [9 lives]", [], 0),
    ("[exc[9]erpt 2] (9[9]1) \u3010(9)9\u3011", "[exc?erpt 2] (9?1) \u3010?9\u3011", [], 3),
]  # fmt: skip


def shown(pieces: list[str]) -> tuple[str, list[int], int]:
    citations = CitationFilter(NUMBERS)
    text = "".join(citations.feed(piece) for piece in pieces) + citations.finish()
    return text, citations.cited, citations.dropped


@pytest.mark.parametrize(("text", "seen", "cited", "dropped"), CASES)
def test_citations_are_checked_wherever_the_text_is_cut(
    text: str, seen: str, cited: list[int], dropped: int
) -> None:
    assert shown([text]) == (seen, cited, dropped)
    assert shown([*text]) == (seen, cited, dropped)
    for cut in range(len(text)):
        assert shown([text[:cut], text[cut:]]) == (seen, cited, dropped)


PARTS = st.sampled_from(
    ["[", "]", "1", "2", "9", ",", "-", " ", "`", "```", "\n", "a", "[1]", "[9]", "[2, 8]",
     "`x[9]`", "(", ")", "\u3010", "\u3011", "^", "excerpt", "(1)", "(8)"]
)  # fmt: skip


@settings(max_examples=200)
@example(["[", "[9]", "9", "]"])
@example(["[", ",", "1", "1", "]"])
@given(st.lists(PARTS.filter(lambda part: "`" not in part), max_size=30))
def test_unknown_citation_is_never_shown(parts: list[str]) -> None:
    citations = CitationFilter(NUMBERS)
    seen = "".join(citations.feed(part) for part in parts)
    for numbers in re.findall(r"[\[\u3010](?:excerpt)?([\d ,;^-]*\d)[\]\u3011]", seen):
        assert {int(number) for number in re.findall(r"\d+", numbers)} <= {*NUMBERS}


def test_only_possible_citations_are_held_back() -> None:
    citations = CitationFilter(NUMBERS)
    assert citations.feed("The harbor") == "The harbor"
    assert citations.feed(" master says [") == " master says"
    assert citations.feed("1") == ""
    assert citations.feed("] and") == " [1] and"
    assert citations.feed(" [sic") == " [sic"


def test_long_text_is_not_held_back() -> None:
    citations = CitationFilter(NUMBERS)
    assert len(citations.feed("`" + "x" * 300)) == 301
    assert len(citations.feed(" [" + "1, " * 100)) > 0
