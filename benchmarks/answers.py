"""Measure passages on judged questions, for docs/benchmarks.md.

    MAIL_HOME=... python -m benchmarks.answers [--fit] [--print] [QUESTIONS.jsonl ...]

A file of questions has the name of the list that is asked. The default is all files in
answer_questions/. Each line is an object: `_id`, `text`, `kind` ("own": in the words of the mail,
"other": in other words) and `answers`. An answer is a place in a body: (Message-ID, first
character, last character). There are none if the archive does not answer the question. The answers
were judged by reading the hits of a search for the question, and their conversations.

The first table has a row for each list and kind: the number of questions, and of those with an
answer; and the shares of the latter with an answer among the first 1, 3 and 5 passages.

`--fit` fits the coefficients of answers/passages.py for each list to the other lists. It prints the
measures of the held-out lists and the coefficients fitted to all lists. `--print` lists each
question with its passages.
"""

import argparse
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np
import pandas as pd
import psycopg

from mail_assets.answers.evidence import read_question
from mail_assets.answers.passages import (
    MOST,
    Features,
    Passage,
    find_passages,
    rate,
)
from mail_assets.search.language.request import Request
from mail_assets.search.open import open_searcher
from mail_assets.search.searcher import Searcher
from mail_assets.settings.settings import Settings, load_settings
from mail_assets.tables.lists import show_lists

FOLDER = Path(__file__).parent / "answer_questions"
#: Strength of the penalty on coefficients.
PENALTY = 1.0
#: Number of messages from which passages are taken, as in the command line.
MESSAGES = 12

Place: TypeAlias = tuple[str, int, int]
Rate: TypeAlias = Callable[[Features], float]


class Question(NamedTuple):
    """A question to a list, and the places in its mail that answer it."""

    query_id: str
    list_name: str
    text: str
    kind: str
    answers: tuple[Place, ...]


class Asked(NamedTuple):
    """A question and the passages found for it; `right`: each passage that answers is True."""

    question: Question
    passages: list[Passage]
    right: list[bool]


class Result(NamedTuple):
    """Judgement of the passages that are shown for a question, best first."""

    question: Question
    right: list[bool]


def main() -> None:
    """Ask all questions and print the tables."""
    parser = argparse.ArgumentParser(description="Measure passages on judged questions.")
    parser.add_argument("questions", nargs="*", type=Path, metavar="QUESTIONS.jsonl")
    parser.add_argument("--fit", action="store_true", help="fit the coefficients")
    parser.add_argument("--print", action="store_true", help="list the questions")
    arguments = parser.parse_args()
    files = arguments.questions or sorted(FOLDER.glob("*.jsonl"))
    asked = ask_all(load_settings(), [one for file in files for one in read_questions(file)])
    results = [choose(one, rate) for one in asked]
    print(tabulate(results).to_markdown())
    if arguments.fit:
        fit_all(asked)
    if arguments.print:
        for one in results:
            places = "".join("+" if right else "-" for right in one.right)
            print(f"{places:5} {one.question.list_name} {one.question.text}")


def read_questions(file: Path) -> Iterator[Question]:
    """Yield the questions of a file."""
    for line in file.read_text(encoding="utf-8").splitlines():
        one = json.loads(line)
        answers = tuple((mail, start, end) for mail, start, end in one["answers"])
        yield Question(one["_id"], file.stem, one["text"], one["kind"], answers)


def ask_all(settings: Settings, questions: Iterable[Question]) -> list[Asked]:
    """Return the passages found for each question in the published lists."""
    with (
        settings.database.connect("answers") as connection,
        open_searcher(settings.search) as searcher,
    ):
        show_lists(connection, settings.languages)
        return [ask(searcher, connection, one) for one in questions]


def ask(searcher: Searcher, connection: psycopg.Connection, question: Question) -> Asked:
    """Return the passages found for a question."""
    request = Request(question.text, lists=(question.list_name,), limit=MESSAGES)
    request = read_question(connection, request).request
    hits = [hit for hit in searcher.search(request).hits if hit.text == 1]
    passages = find_passages(searcher, connection, request, hits)
    return Asked(question, passages, [answers(one, question.answers) for one in passages])


def answers(passage: Passage, places: Sequence[Place]) -> bool:
    """Return whether a passage and a judged place share half of the shorter one."""
    start, end = passage.paragraph[:2]
    return any(
        passage.hit.message_id == message_id
        and 2 * (min(end, last) - max(start, first)) >= min(end - start, last - first)
        for message_id, first, last in places
    )


def choose(asked: Asked, rate: Rate) -> Result:
    """Return the best passages of a question, at most one of each conversation."""
    rates = [rate(one.features) for one in asked.passages]
    threads: dict[str, int] = {}
    for place in sorted(range(len(rates)), key=lambda place: -rates[place]):
        hit = asked.passages[place].hit
        threads.setdefault(hit.thread_id or hit.message_id, place)
    return Result(asked.question, [asked.right[place] for place in [*threads.values()][:MOST]])


def tabulate(results: Sequence[Result]) -> pd.DataFrame:
    """Return the measures by list and kind."""
    groups = {
        f"{name}, {kind} words": [
            one for one in results if (one.question.list_name, one.question.kind) == (name, kind)
        ]
        for name in dict.fromkeys(one.question.list_name for one in results)
        for kind in ("own", "other")
    }
    return pd.DataFrame(
        {name: measure(some) for name, some in [*groups.items(), ("all", results)]}
    ).T


def measure(results: Sequence[Result]) -> dict[str, float]:
    """Return the measures of some questions."""
    known = [one for one in results if one.question.answers]
    found = {
        f"found at {most}": round(
            float(np.mean([any(one.right[:most]) for one in known])) if known else 0.0, 2
        )
        for most in (1, 3, 5)
    }
    return {
        "questions": len(results),
        "with an answer": len(known),
        **found,
    }


def fit_all(asked: Sequence[Asked]) -> None:
    """Print the measures of each list, fitted to the other lists, and the coefficients."""
    rows = {}
    for name in dict.fromkeys(one.question.list_name for one in asked):
        weights = fit_passages([one for one in asked if one.question.list_name != name])
        held = [one for one in asked if one.question.list_name == name]
        rows[name] = measure([choose(one, by_weights(weights)) for one in held])
    print(f"\nheld out\n\n{pd.DataFrame(rows).T.to_markdown()}\n")
    names = ("INTERCEPT", *Features._fields, "BOTH")
    print(", ".join(f"{a}={b:.2f}" for a, b in zip(names, fit_passages(asked), strict=True)))


def fit_passages(asked: Sequence[Asked]) -> np.ndarray:
    """Return the weights of the regression that predicts if a passage answers."""
    inputs = [inputs_of(one.features) for some in asked for one in some.passages]
    return fit(np.array(inputs), np.array([one for some in asked for one in some.right]))


def inputs_of(one: Features) -> tuple[float, ...]:
    """Return the inputs of the regression for a passage."""
    return (*one, one.words * one.similarity)


def by_weights(weights: np.ndarray) -> Rate:
    """Return a function that rates a passage by the weights."""
    return lambda one: float(weights[0] + np.dot(weights[1:], inputs_of(one)))


def fit(inputs: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return intercept and weights of a logistic regression: Newton's method, ridge penalty."""
    inputs = np.c_[np.ones(len(inputs)), inputs]
    penalty = np.diag([0.0, *[PENALTY] * (inputs.shape[1] - 1)])
    weights = np.zeros(inputs.shape[1])
    for _ in range(50):
        rates = 1 / (1 + np.exp(-inputs @ weights))
        slope = inputs.T @ (right - rates) - penalty @ weights
        curve = (inputs * (rates * (1 - rates))[:, None]).T @ inputs + penalty
        weights += np.linalg.solve(curve, slope)
    return weights


if __name__ == "__main__":
    main()
