"""Summarize a thread by its own sentences, without a model.

The best sentence of the message that opens the thread says what was asked or proposed, the latest
that states a decision how it ended; those that are worth most fill the rest, and one that repeats
what is taken is worth less (maximal marginal relevance: Carbonell and Goldstein 1998).
"""

import math
from collections.abc import Collection, Sequence

from mail_assets.summaries.candidates import Candidate, find_candidates
from mail_assets.summaries.decisions import is_decision
from mail_assets.summaries.message_text import MessageText
from mail_assets.summaries.similarity import Vector, group_by_term, measure_similarity, weigh_terms
from mail_assets.summaries.summary import Part, Sentence, Summary, describe_thread
from mail_assets.summaries.worth import WEIGHTS, Weights, is_fragment, weigh_candidates

#: Goes into the fingerprint: raise it when summaries would come out differently.
EXTRACTIVE_VERSION = "4"
FINGERPRINT = f"extractive-{EXTRACTIVE_VERSION}"

MAX_SENTENCES = 10
_SAME = 0.9  # cosine from which a sentence only repeats another


def summarize(messages: Sequence[MessageText], weights: Weights = WEIGHTS) -> Summary:
    """Return the summary of a thread; its archived messages are given in the thread's order.

    Raises:
        ValueError: there is no message
    """
    if not messages:
        raise ValueError("a thread without an archived message cannot be summarized")
    candidates = find_candidates(messages)
    opening = _find_opening(messages, candidates)
    parts = [_part_of(one, opening) for one in candidates]
    chosen = _choose(
        weigh_candidates(messages, candidates, weights),
        weigh_terms([one.terms for one in candidates]),
        [
            [i for i, one in enumerate(candidates) if one.message == opening],
            _find_outcome(messages, candidates, parts),
        ],
        count_sentences(len(messages)),
    )
    sentences = (_sentence(messages, candidates[i], parts[i]) for i in sorted(chosen))
    return describe_thread(messages, sentences)


def count_sentences(messages: int) -> int:
    """Return how many sentences the summary of so many messages has at most."""
    return min(2 + math.ceil(math.log2(messages)), MAX_SENTENCES)


def _find_opening(messages: Sequence[MessageText], candidates: Sequence[Candidate]) -> int:
    """Return the place of the message that asks or proposes.

    It is the first one, or where that has no whole sentence, as a bare patch has none, the next of
    the same author, if nobody else has written before.
    """
    for one in candidates:
        if messages[one.message].author != messages[0].author:
            break
        if not is_fragment(one.text):
            return one.message
    return 0


def _part_of(one: Candidate, opening: int) -> Part:
    if one.message <= opening:
        return "question"
    return "outcome" if is_decision(one.text) else "discussion"


def _find_outcome(
    messages: Sequence[MessageText], candidates: Sequence[Candidate], parts: Sequence[Part]
) -> list[int]:
    """Return the candidate that states a decision last, the first of its message, or none."""
    stated = [i for i, part in enumerate(parts) if part == "outcome"]
    return sorted(
        stated,
        key=lambda i: (messages[candidates[i].message].sent_at, -candidates[i].index),
    )[-1:]


def _choose(
    worth: Sequence[float],
    vectors: Sequence[Vector],
    required: Sequence[Collection[int]],
    size: int,
) -> list[int]:
    """Return the best of each group that is required, then the best of all, each beside others."""
    left = dict(enumerate(worth))
    holders = group_by_term(vectors)
    chosen: list[int] = []
    for group in (*required, *[left] * size):
        pool = [i for i in group if i in left]
        if pool and len(chosen) < size:
            best = max(pool, key=lambda i: (left[i], -i))
            chosen.append(best)
            del left[best]
            sharing = {i for term in vectors[best] for i in holders[term]}
            for i in sharing & left.keys():
                repeated = measure_similarity(vectors[i], vectors[best])
                if repeated < _SAME:
                    left[i] = min(left[i], worth[i] - repeated)
                else:
                    del left[i]
    return chosen


def _sentence(messages: Sequence[MessageText], one: Candidate, part: Part) -> Sentence:
    return Sentence(messages[one.message].message_id, one.start, one.end, one.text, part)
