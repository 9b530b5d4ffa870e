"""The judged questions: enough of each kind, and without mail."""

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.answers import (
    Question,
    Result,
    ask_all,
    fit,
    measure,
    read_questions,
)
from mail_assets_tests.sample_corpus import Corpus

FILES = sorted((Path(__file__).parents[2] / "benchmarks" / "answer_questions").glob("*.jsonl"))


def test_half_have_no_answer_and_many_are_in_other_words() -> None:
    questions = [one for file in FILES for one in read_questions(file)]
    assert len(FILES) == 3
    assert len(questions) >= 120
    assert len({(one.list_name, one.query_id) for one in questions}) == len(questions)
    assert len({(one.list_name, one.text) for one in questions}) == len(questions)
    for share in (
        np.mean([bool(one.answers) for one in questions]),
        np.mean([one.kind == "other" for one in questions]),
    ):
        assert 0.4 <= share <= 0.6


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_places_are_ids_and_characters_alone(file: Path) -> None:
    for line in file.read_text().splitlines():
        one = json.loads(line)
        assert {*one} == {"_id", "text", "kind", "answers"}
        assert one["kind"] in ("own", "other")
        for message_id, start, end in one["answers"]:
            assert isinstance(message_id, str)
            assert 0 <= start < end


def test_questions_are_asked_of_the_published_lists(corpus: Corpus) -> None:
    question = Question("q", "harbor-dev", "which clock decides that a lease is over", "own", ())
    [asked] = ask_all(corpus.settings, [question])
    assert len(asked.passages) > 1


def result(right: list[bool], *, known: bool = True) -> Result:
    places = (("a@example.org", 0, 9),) if known else ()
    return Result(Question("q", "dev", "why?", "own", places), right)


def test_measures_are_shares_of_questions_with_an_answer() -> None:
    results = [
        result([True, False]),
        result([False, True]),
        result([False, False]),
        result([False, False], known=False),
    ]
    shares = {"found at 1": 0.33, "found at 3": 0.67, "found at 5": 0.67}
    assert measure(results) == {"questions": 4, "with an answer": 3, **shares}


def test_fit_separates_what_can_be_separated() -> None:
    inputs = np.array([[0.0], [0.1], [0.2], [0.8], [0.9], [1.0]])
    weights = fit(inputs, np.array([0.0, 0, 0, 1, 1, 1]))
    assert weights[1] > 0
    assert weights[0] + 0.5 * weights[1] == pytest.approx(0, abs=1e-6)
