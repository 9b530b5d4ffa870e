"""Answers without a model: the sentences of the mail that say most of what is asked.

What a sentence's score is: sentences.py. What repeats a chosen sentence is left out. Below a floor
of the confidence there is no answer. How all this was chosen: docs/answers.md, "What was tried".
"""

import re
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass

from mail_assets.answers.answer import Citation, cite
from mail_assets.answers.evidence import Evidence
from mail_assets.answers.maker import Written
from mail_assets.answers.sentences import WeighedSentence
from mail_assets.search.language.request import Mode

#: Sentences of an answer, and of one message.
MAX_SENTENCES, MAX_OF_MESSAGE = 5, 3
#: The confidence below which the archive does not answer, by mode; similarities are the default
#: model's.
FLOORS = {Mode.hybrid: 0.44, Mode.semantic: 0.52, Mode.fulltext: 0.33}
#: A sentence's score as a share of the best one's below which it says too little.
MIN_SHARE = 0.6
#: The similarity from which a sentence needs none of the question's words.
NEAR = 0.5
#: The share of a sentence's words that another has too, from which it repeats that one.
REPEATED = 0.6

BREAK = "\n"
NOT_ENOUGH = "Not enough in the archive to answer this."

_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class ExtractiveMaker:
    """Chooses sentences; the same evidence always gives the same answer."""

    name: str = "extractive"
    budget: int = 6_000

    def write(self, evidence: Evidence) -> Generator[str, None, Written]:
        """Yield the sentences, each on a line of its own and with the number of its excerpt."""
        chosen = choose_sentences(evidence)
        if not chosen:
            yield f"{NOT_ENOUGH}{BREAK}{evidence.doubt}".rstrip()
            return Written(sufficient=False)
        for place, one in enumerate(chosen):
            yield f"{BREAK if place else ''}{one.text} [{one.number}]"
        return Written(_cite_sentences(evidence, chosen))


def choose_sentences(evidence: Evidence) -> list[WeighedSentence]:
    """Return the sentences that answer best, in the order of the excerpts; none below the floor."""
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
    """Return a citation of each excerpt with a chosen sentence, with the spans of these."""
    spans: dict[int, list[tuple[int, int]]] = {}
    for one in chosen:
        spans.setdefault(one.number, []).append((one.start, one.end))
    return tuple(
        cite(excerpt, tuple(spans[excerpt.number]))
        for excerpt in evidence.excerpts
        if excerpt.number in spans
    )
