"""Summarize a thread by its own sentences, without a model.

A sentence is worth what its signals add up to: centrality, place, the replies that it drew, and
whether it states a decision. The best are taken, one that repeats what is taken is worth less
(maximal marginal relevance, Carbonell and Goldstein 1998).
"""

import math
from collections.abc import Sequence

from mail_assets.summaries.candidates import Candidate, find_candidates
from mail_assets.summaries.centrality import (
    Vector,
    measure_centrality,
    measure_similarity,
    weigh_terms,
)
from mail_assets.summaries.decisions import is_decision
from mail_assets.summaries.message_text import MessageText
from mail_assets.summaries.reactions import count_reactions
from mail_assets.summaries.summary import Part, Sentence, Summary

#: Goes into the fingerprint: raise it when summaries would come out differently.
EXTRACTIVE_VERSION = "1"
FINGERPRINT = f"extractive-{EXTRACTIVE_VERSION}"

_MAX_SENTENCES = 10
_REDUNDANCY = 1.0
_DECISION = 1.0
_FIRST = 1.0  # of the thread's first message
_REACTION = 0.5  # a message that answers, in doublings
_LEAD = 0.5  # of the first sentence of a message


def summarize(messages: Sequence[MessageText]) -> Summary:
    """Return the summary of a thread; its archived messages are given in the thread's order.

    Raises:
        ValueError: there is no message
    """
    if not messages:
        raise ValueError("a thread without an archived message cannot be summarized")
    candidates = find_candidates(messages)
    vectors = weigh_terms([candidate.terms for candidate in candidates])
    worth = _weigh(messages, candidates, vectors)
    chosen = _choose(worth, vectors, _size(len(messages)))
    return Summary(
        tuple(_sentence(messages, candidates[number]) for number in sorted(chosen)),
        tuple(dict.fromkeys(message.author for message in messages)),
        min(message.sent_at for message in messages),
        max(message.sent_at for message in messages),
        tuple(message.message_id for message in messages if message.has_patch),
    )


def _size(messages: int) -> int:
    """Return how many sentences a summary has at most."""
    return min(2 + math.ceil(math.log2(messages)), _MAX_SENTENCES)


def _weigh(
    messages: Sequence[MessageText], candidates: Sequence[Candidate], vectors: Sequence[Vector]
) -> list[float]:
    signals = zip(
        candidates,
        measure_centrality(vectors),
        count_reactions(messages, candidates),
        strict=True,
    )
    return [
        central
        + _REACTION * math.log2(1 + reactions)
        + _LEAD / (1 + one.index)
        + _FIRST * (one.message == 0) / (1 + one.index)
        + _DECISION * is_decision(one.text)
        for one, central, reactions in signals
    ]


def _choose(worth: list[float], vectors: Sequence[Vector], size: int) -> list[int]:
    """Return the numbers of the sentences that are worth most beside each other."""
    left = dict(enumerate(worth))
    chosen: list[int] = []
    while left and len(chosen) < size:
        best = max(left, key=lambda number: (left[number], -number))
        chosen.append(best)
        del left[best]
        for number in left:
            again = measure_similarity(vectors[number], vectors[best])
            left[number] = min(left[number], worth[number] - _REDUNDANCY * again)
    return chosen


def _sentence(messages: Sequence[MessageText], one: Candidate) -> Sentence:
    return Sentence(messages[one.message].message_id, one.start, one.end, one.text, _part_of(one))


def _part_of(one: Candidate) -> Part:
    if one.message == 0:
        return "question"
    return "outcome" if is_decision(one.text) else "discussion"
