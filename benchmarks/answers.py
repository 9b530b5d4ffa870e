"""Measure answers on questions with and without an answer in the archive, for docs/answers.md.

    MAIL_HOME=... python -m benchmarks.answers QUESTIONS.jsonl ... [--judged FOLDER ...]
        [--chat] [--floors] [--print N] [--mode MODE]

A file of questions is named for the list that they are asked of. It holds one object a line: `_id`,
`text`, and either `threads` (ids of messages in the threads that answer it) or `topic` (a query of
a judged set in a FOLDER); neither where the archive has no answer. `other_words` asks the same once
more in words that the mail does not use.

`--chat` lets the chat model of the settings answer. `--floors` chooses the floor of the confidence
on four fifths of the questions and rates it on the fifth, 20 times. `--print` lists the first N
questions with an answer of each file: what is cited, and whether it is relevant; it prints no mail.

Measures:

answered    share of the questions with an answer in the archive that were answered
refused     share of the questions without one that were refused
supported   share of the statements that the cited texts carry: every number, and most of the longer
            words (a check of words, not of meaning)
relevant    share of the cited messages that are judged relevant; mean over the answers
found       share of the questions with an answer whose answer cites a relevant message
"""

import argparse
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import psycopg

from mail_assets.answers.answer import Answer, Turn
from mail_assets.answers.chat import open_maker
from mail_assets.answers.evidence import Evidence, find_evidence
from mail_assets.answers.maker import AnswerMaker, read_answer, stream_answer
from mail_assets.evaluation.judged import QRELS, read_judgements
from mail_assets.search.language.request import MODES, Mode, Request
from mail_assets.search.open import open_searcher
from mail_assets.search.searcher import Searcher
from mail_assets.settings.settings import load_settings

#: The share of a statement's longer words that the cited texts must have.
MIN_WORDS = 0.6
#: Letters of a word that says something, and those of it that are compared: endings differ.
LONGER, COMPARED = 4, 5

_CITATION = re.compile(r"(?:\s{0,9}\[(?:\d++(?:, )?)++\])++")
_NUMBER = re.compile(r"\d++")
_WORD = re.compile(r"[^\W\d_]++")


class Statement(NamedTuple):
    """A statement of an answer up to a citation, and the numbers that it cites, none at its end."""

    text: str
    numbers: tuple[int, ...]


class JudgedAnswer(NamedTuple):
    """An answer with what it is measured by.

    `relevant` are the ids of the messages that answer, none where the archive does not.
    `statements` and `supported` count what it states; `cited` are ids of messages.
    """

    query_id: str
    relevant: frozenset[str]
    answered: bool
    statements: int
    supported: int
    cited: tuple[str, ...]


def split_statements(text: str) -> Iterator[Statement]:
    """Yield what a checked answer states, whose citations are written [n, m]."""
    at = 0
    for citation in _CITATION.finditer(text):
        numbers = tuple(int(number) for number in _NUMBER.findall(citation[0]))
        yield Statement(text[at : citation.start()].lstrip(" \n.,;"), numbers)
        at = citation.end()
    if _WORD.search(text, at):
        yield Statement(text[at:].lstrip(" \n.,;"), ())


def is_supported(statement: Statement, texts: Mapping[int, str]) -> bool:
    """Return whether the texts that a statement cites have its numbers and most of its words."""
    cited = " ".join(texts[number] for number in statement.numbers)
    if {*_NUMBER.findall(statement.text)} - {*_NUMBER.findall(cited)}:
        return False
    words = _longer_words(statement.text)
    return bool(cited) and len(words & _longer_words(cited)) >= MIN_WORDS * len(words)


def measure_answers(answers: Sequence[JudgedAnswer]) -> dict[str, float]:
    """Return the measures by their names, those without anything to measure left out."""
    known = [one for one in answers if one.relevant]
    unknown = [one for one in answers if not one.relevant]
    given = [one for one in known if one.answered and one.cited]
    shares: dict[str, list[float]] = {
        "answered": [one.answered for one in known],
        "refused": [not one.answered for one in unknown],
        "relevant": [len(one.relevant & {*one.cited}) / len({*one.cited}) for one in given],
        "found": [one.answered and not one.relevant.isdisjoint(one.cited) for one in known],
    }
    measures = {name: sum(values) / len(values) for name, values in shares.items() if values}
    if statements := sum(one.statements for one in answers):
        measures["supported"] = sum(one.supported for one in answers) / statements
    return {name: round(value, 4) for name, value in measures.items()}


def _longer_words(text: str) -> set[str]:
    return {word[:COMPARED] for word in _WORD.findall(text.lower()) if len(word) >= LONGER}


FOLLOW_UP = "And what was decided about that in the end?"
ROUNDS, FOLDS, SEED = 20, 5, 20_240_301


class Question(NamedTuple):
    """A question to a list, and the ids of the messages that answer it, none where nothing does.

    `other_words` is the same question without the words of the mail, "" where nothing answers.
    """

    query_id: str
    list_name: str
    text: str
    relevant: frozenset[str]
    other_words: str = ""


class Asked(NamedTuple):
    """A question, what it was answered from, and the answer.

    `is_found`: what answers is in the excerpts.
    """

    question: Question
    confidence: float
    is_found: bool
    answer: Answer
    judged: JudgedAnswer


class Asker(NamedTuple):
    """Asks questions of one maker in one mode."""

    searcher: Searcher
    connection: psycopg.Connection
    maker: AnswerMaker
    mode: str

    def ask(self, question: Question, text: str = "", history: Sequence[Turn] = ()) -> Asked:
        """Ask a question, or another text about the same."""
        request = Request(
            text or question.text, mode=self.mode, lists=(question.list_name,), limit=12
        )
        evidence = find_evidence(
            self.searcher, self.connection, request, self.maker.budget, history
        )
        answer = read_answer(stream_answer(self.maker, evidence))
        judged = judge(question, answer, evidence)
        read = {one.hit.message_id for one in evidence.excerpts}
        is_found = not question.relevant.isdisjoint(read)
        return Asked(question, evidence.confidence, is_found, answer, judged)


def main() -> None:
    """Ask all questions and print the tables."""
    parser = argparse.ArgumentParser(description="Measure answers.")
    parser.add_argument("questions", nargs="+", type=Path, metavar="QUESTIONS.jsonl")
    parser.add_argument("--judged", nargs="*", type=Path, default=[], metavar="FOLDER")
    parser.add_argument("--mode", choices=MODES, default=Mode.hybrid.value)
    parser.add_argument("--chat", action="store_true", help="by the chat model of the settings")
    parser.add_argument("--floors", action="store_true", help="choose the floor anew")
    parser.add_argument("--print", type=int, default=0, metavar="N", help="list so many questions")
    arguments = parser.parse_args()
    settings = load_settings()
    with (
        open_maker(settings.chat if arguments.chat else None, settings.chat_key) as maker,
        settings.database.connect("answers") as connection,
        open_searcher(settings.search) as searcher,
    ):
        topics = {k: v for folder in arguments.judged for k, v in read_topics(folder).items()}
        asker = Asker(searcher, connection, maker, arguments.mode)
        asked: dict[str, list[Asked]] = {}
        in_other_words: dict[str, list[Asked]] = {}
        follow_ups: dict[str, list[Asked]] = {}
        for file in arguments.questions:
            found = [asker.ask(one) for one in read_questions(connection, file, topics)]
            asked[file.stem] = found
            others = [
                asker.ask(one.question, one.question.other_words)
                for one in found
                if one.question.other_words
            ]
            in_other_words[f"{file.stem}: found"] = [one for one in others if one.is_found]
            in_other_words[f"{file.stem}: not found"] = [one for one in others if not one.is_found]
            follow_ups |= ask_follow_ups(asker, file.stem, found)
    print(tabulate(asked).to_markdown())
    print(f"\n{tabulate(in_other_words).to_markdown()}")
    print(f"\n{tabulate(follow_ups).to_markdown()}")
    if arguments.floors:
        groups = [*asked.values(), *in_other_words.values()]
        every = [one for group in groups for one in group]
        print(f"\n{validate_floor([x for x in every if x.is_found or not x.question.relevant])}")
    for of_file in asked.values():
        print_questions([one for one in of_file if one.question.relevant][: arguments.print])


def read_topics(folder: Path) -> dict[str, frozenset[str]]:
    """Return the relevant messages of each query of a judged set."""
    return {topic: frozenset(ids) for topic, ids in read_judgements(folder / QRELS).items()}


def read_questions(
    connection: psycopg.Connection, file: Path, topics: dict[str, frozenset[str]]
) -> Iterator[Question]:
    """Yield the questions of a file."""
    for line in file.read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        relevant = topics[record["topic"]] if "topic" in record else frozenset()
        if threads := record.get("threads"):
            query = (
                "select b.message_id from threads a join threads b using (thread_id)"
                " where a.message_id = any(%s)"
            )
            relevant = frozenset(one for (one,) in connection.execute(query, [threads]))
        other_words = record.get("other_words", "")
        yield Question(record["_id"], file.stem, record["text"], relevant, other_words)


def ask_follow_ups(asker: Asker, name: str, asked: Sequence[Asked]) -> dict[str, list[Asked]]:
    """Return what a follow-up to the answered questions is answered with and without them."""
    known = [one for one in asked if one.question.relevant and one.answer.sufficient]
    return {
        f"{name}: in context": [
            asker.ask(one.question, FOLLOW_UP, [Turn(one.question.text, one.answer.text)])
            for one in known
        ],
        f"{name}: alone": [asker.ask(one.question, FOLLOW_UP) for one in known],
    }


def judge(question: Question, answer: Answer, evidence: Evidence) -> JudgedAnswer:
    """Return what an answer is measured by; it supports what the excerpts say that it cites."""
    texts = {one.number: one.text for one in evidence.excerpts}
    statements = [*split_statements(answer.text)] if answer.sufficient else []
    return JudgedAnswer(
        query_id=question.query_id,
        relevant=question.relevant,
        answered=answer.sufficient,
        statements=len(statements),
        supported=sum(is_supported(one, texts) for one in statements),
        cited=tuple(one.message_id for one in answer.citations),
    )


def tabulate(asked: dict[str, list[Asked]]) -> pd.DataFrame:
    """Return the measures of each group of answers, and the median milliseconds."""
    rows = {}
    for name, found in asked.items():
        measures = measure_answers([one.judged for one in found])
        took = float(np.median([one.answer.took_ms for one in found])) if found else 0.0
        rows[name] = {"questions": len(found), **measures, "p50_ms": round(took)}
    return pd.DataFrame(rows).T


def validate_floor(asked: Sequence[Asked]) -> str:
    """Return floors chosen on four fifths of the questions, and their rates on the others."""
    confidence = np.array([one.confidence for one in asked])
    known = np.array([bool(one.question.relevant) for one in asked])
    random = np.random.default_rng(SEED)
    rates, floors = [], []
    for _ in range(ROUNDS):
        order = random.permutation(len(asked))
        for fold in range(FOLDS):
            held, rest = order[fold::FOLDS], np.delete(order, slice(fold, None, FOLDS))
            floors.append(choose_floor(confidence[rest], known[rest]))
            passes = confidence[held] >= floors[-1]
            rates.append((passes[known[held]].mean(), (~passes[~known[held]]).mean()))
    answered, refused = np.mean(rates, axis=0)
    low, middle, high = np.quantile(floors, (0.05, 0.5, 0.95))
    return (
        f"floor {middle:.3f} [{low:.3f}, {high:.3f}], on held-out questions: answered "
        f"{answered:.3f}, refused {refused:.3f}; "
        + "; ".join(
            f"at {floor:.2f} {np.mean(confidence[known] >= floor):.3f}, "
            f"{np.mean(confidence[~known] < floor):.3f}"
            for floor in np.arange(round(low, 2) - 0.05, high + 0.05, 0.02)
        )
    )


def choose_floor(confidence: np.ndarray, known: np.ndarray) -> float:
    """Return the floor at which the shares of wrong refusals and of wrong answers are least."""
    floors = np.unique(confidence)
    wrong = [(confidence[known] < x).mean() + (confidence[~known] >= x).mean() for x in floors]
    return float(floors[int(np.argmin(wrong))])


def print_questions(asked: Sequence[Asked]) -> None:
    """Print what was cited for each question, and whether it is judged relevant."""
    for one in asked:
        print(f"\n{one.question.text}")
        if not one.answer.sufficient:
            print("    refused")
        for citation in one.answer.citations:
            relevant = "relevant" if citation.message_id in one.question.relevant else "not judged"
            print(f"    <{citation.message_id}> {len(citation.spans)}, {relevant}")


if __name__ == "__main__":
    main()
