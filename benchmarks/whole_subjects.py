"""Measure the rank of a patch in a search for its subject.

    MAIL_HOME=... python -m benchmarks.whole_subjects LIST [--bare]

The questions are subjects of patch mails of LIST ("[PATCH v2 3/5] mm: fix the leak"), drawn with a
fixed seed, each base subject once. Cover letters and answers are not drawn. `--bare` leaves out the
brackets of a subject. For each mode, and for hybrid's page of conversations, the table has the mean
reciprocal rank of:

found       a message with that base subject: the patch in any version, or an answer to it
patch       the patch itself, in any version
newest      the newest version of the patch; the drawn one if the question names its version
drawn       the message whose subject was drawn, or another patch with the same subject
"""

import argparse
import random
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import pandas as pd
import psycopg

from mail_assets.evaluation.judged import reciprocal_rank
from mail_assets.evaluation.quality import estimate_mean
from mail_assets.mail.message.subjects import base_subject, read_patch_label
from mail_assets.search.language.request import MODES, Group, Mode, Request
from mail_assets.search.open import open_searcher
from mail_assets.settings.settings import load_settings

SEED, QUESTIONS, DEPTH = 39, 150, 50


class Mail(NamedTuple):
    """A message: id, subject, date in seconds since 1970, and whether it answers another."""

    message_id: str
    subject: str
    sent: float
    is_answer: bool

    @property
    def base(self) -> str:
        """The base subject, casefolded."""
        return base_subject(self.subject).casefold()

    @property
    def is_patch(self) -> bool:
        """True for a patch; False for a cover letter or an answer."""
        label = read_patch_label(self.subject)
        return label is not None and label.number != 0 and not self.is_answer


class Question(NamedTuple):
    """A subject as a question, and the right messages for each measure."""

    text: str
    wanted: dict[str, dict[str, int]]


def read_mail(connection: psycopg.Connection, name: str) -> list[Mail]:
    """Return the messages of a list in the order of their ids."""
    rows = connection.execute(
        "select message_id, subject, extract(epoch from sent_at)::float8, is_answer from messages"
        " where list = %s order by message_id, month, variant",
        [name],
    )
    return [Mail(*row) for row in rows]


def draw_questions(mail: list[Mail], *, bare: bool) -> list[Question]:
    """Return the subjects of QUESTIONS patches; the same mail gives the same questions."""
    by_base: dict[str, list[Mail]] = {}
    for one in mail:
        by_base.setdefault(one.base, []).append(one)
    first = {one.base: one for one in reversed(mail) if one.is_patch and len(one.base.split()) > 1}
    drawn = random.Random(SEED).sample(sorted(first), min(QUESTIONS, len(first)))
    return [_ask(first[base], by_base[base], bare=bare) for base in drawn]


def _ask(drawn: Mail, alike: list[Mail], *, bare: bool) -> Question:
    patches = [one for one in alike if one.is_patch]
    label = read_patch_label(drawn.subject)
    newest = max(patches, key=lambda one: one.sent)
    if not bare and label and label.version:
        newest = drawn
    return Question(
        base_subject(drawn.subject) if bare else drawn.subject,
        {
            "found": {one.message_id: 1 for one in alike},
            "patch": {one.message_id: 1 for one in patches},
            "newest": {newest.message_id: 1},
            "drawn": {one.message_id: 1 for one in patches if one.subject == drawn.subject},
        },
    )


def main() -> None:
    """Ask each question in each mode and print the table."""
    parser = argparse.ArgumentParser(description="Measure subjects of patches as questions.")
    parser.add_argument("list", help="the list that has the patches and is searched")
    parser.add_argument("--bare", action="store_true", help="leave out the brackets of subjects")
    arguments = parser.parse_args()
    settings = load_settings()
    with settings.database.connect("benchmark") as connection:
        mail = read_mail(connection, arguments.list)
    questions = draw_questions(mail, bare=arguments.bare)
    asked = [(mode, mode, Group.message) for mode in MODES]
    asked.append(("page", Mode.hybrid, Group.conversation))
    rows = {}
    with open_searcher(settings.search) as searcher:

        def find(mode: str, group: str, question: Question) -> list[str]:
            request = Request(
                question.text, mode=mode, group=group, lists=(arguments.list,), limit=DEPTH
            )
            return [hit.message_id for hit in searcher.search(request).hits]

        for name, mode, group in asked:
            rows[name] = _measure(questions, partial(find, mode, group))
    print(f"{len(questions)} subjects of {arguments.list}\n")
    print(pd.DataFrame(rows).T.to_markdown())


def _measure(questions: list[Question], find: Callable[[Question], list[str]]) -> dict[str, str]:
    values: dict[str, list[float]] = {}
    for question in questions:
        ranking = find(question)
        for measure, relevant in question.wanted.items():
            values.setdefault(measure, []).append(reciprocal_rank(ranking, relevant))
    means = {name: estimate_mean(found) for name, found in values.items()}
    return {name: f"{x.mean:.3f} [{x.low:.3f}, {x.high:.3f}]" for name, x in means.items()}


if __name__ == "__main__":
    main()
