"""Answers are measured by what they cite: whether it supports them, and whether it is relevant."""

import pytest

from benchmarks.answers import (
    JudgedAnswer,
    Statement,
    is_supported,
    measure_answers,
    split_statements,
)

TEXTS = {1: "A lease expires after 30 seconds,\nunless the worker renews it.", 2: "Use 0.9."}


@pytest.mark.parametrize(
    ("text", "statements"),
    [
        ("", []),
        ("It expires. [1]", [("It expires.", (1,))]),
        (
            "It expires [1], and is renewed [2, 3][4].",
            [("It expires", (1,)), ("and is renewed", (2, 3, 4))],
        ),
        ("One. [1]\nTwo. [2]", [("One.", (1,)), ("Two.", (2,))]),
        ("It expires [1]. So they say.", [("It expires", (1,)), ("So they say.", ())]),
        ("So they say.", [("So they say.", ())]),
        ("Set `argv[x]` and [note] [7]", [("Set `argv[x]` and [note]", (7,))]),
    ],
)
def test_a_statement_is_what_stands_before_a_citation(
    text: str, statements: list[tuple[str, tuple[int, ...]]]
) -> None:
    assert [*split_statements(text)] == [Statement(*one) for one in statements]


@pytest.mark.parametrize(
    ("statement", "supported"),
    [
        (Statement("Leases expire after 30 seconds", (1,)), True),
        (Statement("A worker renews its lease", (2, 1)), True),
        (Statement("Leases expire after 60 seconds", (1,)), False),
        (Statement("Leases expire after 30 seconds", (2,)), False),
        (Statement("Leases expire after 30 seconds", ()), False),
        (Statement("Bread bakes longer than 30 minutes", (1,)), False),
        (Statement("Use 0.9", (2,)), True),
    ],
)
def test_a_statement_is_supported_by_its_words_and_numbers(
    statement: Statement, supported: bool
) -> None:
    assert is_supported(statement, TEXTS) is supported


def test_measures_are_shares_of_their_questions() -> None:
    relevant = frozenset({"a", "b"})
    measures = measure_answers(
        [
            JudgedAnswer("right", relevant, True, 4, 3, ("a", "x")),
            JudgedAnswer("beside", relevant, True, 1, 1, ("x",)),
            JudgedAnswer("refused", relevant, False, 0, 0, ()),
            JudgedAnswer("known to be none", frozenset(), False, 0, 0, ()),
            JudgedAnswer("made up", frozenset(), True, 1, 0, ()),
        ]
    )
    assert measures == {
        "answered": 0.6667,
        "refused": 0.5,
        "relevant": 0.25,
        "found": 0.3333,
        "supported": 0.6667,
    }


def test_what_cannot_be_measured_is_left_out() -> None:
    assert measure_answers([]) == {}
    assert measure_answers([JudgedAnswer("q", frozenset(), False, 0, 0, ())]) == {"refused": 1.0}
