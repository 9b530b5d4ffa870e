"""The questions that answers are measured by, and the floor that is chosen on them."""

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.answers import choose_floor

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks" / "answer_questions"


@pytest.mark.parametrize("file", sorted(FOLDER.glob("*.jsonl")), ids=lambda file: file.stem)
def test_many_questions_have_an_answer_and_many_have_none(file: Path) -> None:
    questions = [json.loads(line) for line in file.read_text().splitlines()]
    answered = [one for one in questions if one.keys() & {"threads", "topic"}]
    assert len({one["_id"] for one in questions}) == len(questions)
    assert len({one["text"] for one in questions}) == len(questions)
    assert len(answered) >= 40
    assert len(questions) - len(answered) >= 40


def test_the_floor_parts_what_is_known_from_what_is_not() -> None:
    confidence = np.array([0.1, 0.2, 0.6, 0.3, 0.5, 0.7, 0.9])
    known = np.array([False, False, False, False, True, True, True])
    assert choose_floor(confidence, known) == 0.5
