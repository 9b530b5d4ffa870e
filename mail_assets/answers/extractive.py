"""Answers without a model: the best sentences of the mail, with their citations.

sentences.py scores the sentences. A sentence that repeats a chosen one is left out. Below a floor
of the confidence there is no answer. docs/answers.md, "Sentences of the mail", has the results.
"""

import re
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass

from mail_assets.answers.answer import Citation, cite
from mail_assets.answers.evidence import Evidence
from mail_assets.answers.maker import Written
from mail_assets.answers.sentences import WeighedSentence
from mail_assets.search.language.request import Mode

#: Most sentences of an answer, and of one message in it.
MAX_SENTENCES, MAX_OF_MESSAGE = 5, 3
#: Least confidence of an answer, by mode, with similarities of the default encoder.
FLOORS = {Mode.hybrid: 0.44, Mode.semantic: 0.52, Mode.fulltext: 0.33}
#: Least score of a sentence, as a share of the best one's.
MIN_SHARE = 0.6
#: Least similarity of a sentence that has no word of the question.
NEAR = 0.5
#: A sentence repeats another if they share this part of the words of the shorter one.
REPEATED = 0.6

BREAK = "\n"
NOT_ENOUGH = "Not enough in the archive to answer this."

_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class ExtractiveMaker:
    """Answers with sentences of the mail; the same evidence always gives the same answer."""

    name: str = "extractive"
    budget: int = 6_000

    def write(self, evidence: Evidence) -> Generator[str, None, Written]:
        """Yield the sentences, one a line, each with the number of its excerpt."""
        chosen = choose_sentences(evidence)
        if not chosen:
            yield f"{NOT_ENOUGH}{BREAK}{evidence.doubt}".rstrip()
            return Written(sufficient=False)
        for place, one in enumerate(chosen):
            yield f"{BREAK if place else ''}{one.text} [{one.number}]"
        return Written(_cite_sentences(evidence, chosen))


def choose_sentences(evidence: Evidence) -> list[WeighedSentence]:
    """Return the best sentences in the order of the excerpts; none below the floor."""
    if evidence.confidence < FLOORS[Mode(evidence.mode)]:
        return []
    messages = {one.number: one.hit.message_id for one in evidence.excerpts}
    telling = [one for one in evidence.sentences if one.own or one.near >= NEAR]
    ranked = sorted(telling, key=lambda one: (-one.score, one.number, one.start))
    chosen: list[WeighedSentence] = []
    for one in ranked:
        if len(chosen) == MAX_SENTENCES or one.score < MIN_SHARE * ranked[0].score:
            break
        of_message = [x for x in chosen if messages[x.number] == messages[one.number]]
        if len(of_message) < MAX_OF_MESSAGE and not _repeats(one, chosen):
            chosen.append(one)
    return sorted(chosen, key=lambda one: (one.number, one.start))


def _repeats(one: WeighedSentence, chosen: Iterable[WeighedSentence]) -> bool:
    words = _words(one)
    return any(
        len(words & other) >= REPEATED * min(len(words), len(other))
        for other in map(_words, chosen)
    )


def _words(one: WeighedSentence) -> set[str]:
    return {*_WORD.findall(one.text.lower())}


def _cite_sentences(evidence: Evidence, chosen: Sequence[WeighedSentence]) -> tuple[Citation, ...]:
    spans: dict[int, list[tuple[int, int]]] = {}
    for one in chosen:
        spans.setdefault(one.number, []).append((one.start, one.end))
    return tuple(
        cite(excerpt, tuple(spans[excerpt.number]))
        for excerpt in evidence.excerpts
        if excerpt.number in spans
    )
