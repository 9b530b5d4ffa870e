"""Fusion: the rankings of both legs as one, with the evidence of threads.

Each leg's scores are normalised to 0 to 1, from its last message to its best. The weight of full
text is between MIN_FULLTEXT_WEIGHT and MAX_FULLTEXT_WEIGHT: the more of the query's weight (rare
words weigh more) its best message contains, the higher. A pasted sentence or an identifier is found
whole and is left to full text; a question in other words than the mail's is left to the semantic
leg. The best message of a thread in each leg raises all messages of the thread: the thread around a
decision is about it too.

How the numbers were chosen, and what else was tried: docs/search.md.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from mail_assets.search.candidates import Candidate

MIN_FULLTEXT_WEIGHT, MAX_FULLTEXT_WEIGHT = 0.5, 0.95
#: What a thread's evidence weighs beside a message's own score.
THREAD_WEIGHT = 3.0
#: Threads that are completed with their other messages, and how many of these all together.
MAX_THREADS, MAX_THREAD_MESSAGES = 10, 200


@dataclass(frozen=True)
class LegWeights:
    """What each leg weighs; the sum is 1."""

    semantic: float
    fulltext: float


def weigh_legs(covered: float) -> LegWeights:
    """Return the weights of the legs; `covered` as in FulltextRanking."""
    fulltext = MIN_FULLTEXT_WEIGHT + (MAX_FULLTEXT_WEIGHT - MIN_FULLTEXT_WEIGHT) * covered
    return LegWeights(semantic=1 - fulltext, fulltext=fulltext)


def fuse(
    semantic: Sequence[Candidate], fulltext: Sequence[Candidate], weights: LegWeights
) -> list[Candidate]:
    """Return the candidates of both legs, best first, their scores 0 to 1.

    A thread's evidence is the normalised score of its best message in each leg, which need not be
    the same message. A message is shown in the copy that the leg with the greater weight found;
    chunks of another copy are dropped.
    """
    legs = (
        ("semantic", weights.semantic, semantic),
        ("fulltext", weights.fulltext, fulltext),
    )
    fused: dict[str, Candidate] = {}
    evidence: dict[str, float] = {}
    for name, weight, candidates in sorted(legs, key=lambda leg: -leg[1]):
        scores = _normalise([one.score for one in candidates])
        best: dict[str, float] = {}
        for rank, (one, score) in enumerate(zip(candidates, scores, strict=True), 1):
            found = replace(one, score=weight * score, ranks={name: rank})
            known = fused.get(one.message_id)
            fused[one.message_id] = found if known is None else _merge(known, found)
            best.setdefault(one.thread_key, score)
        for thread, score in best.items():
            evidence[thread] = evidence.get(thread, 0.0) + weight * score
    scored = (_add_evidence(one, evidence[one.thread_key]) for one in fused.values())
    return sorted(scored, key=lambda one: (-one.score, one.message_id))


def select_threads(ranked: Iterable[Candidate]) -> list[str]:
    """Return the threads of the best candidates, which are completed with their messages."""
    threads = dict.fromkeys(one.thread_id for one in ranked if one.thread_id)
    return [*threads][:MAX_THREADS]


def add_thread_messages(
    ranked: Sequence[Candidate], messages: Iterable[Candidate]
) -> list[Candidate]:
    """Return candidates and those messages of their threads that no leg found, best first.

    These have no score of their own: they follow those of their thread that have, in its order.
    """
    found = {one.message_id for one in ranked}
    threads = {one.thread_id: one.thread_score for one in ranked}
    added = [
        replace(one, score=threads[one.thread_id], thread_score=threads[one.thread_id])
        for one in messages
        if one.message_id not in found
    ]
    # Python's sort is stable: what is equal stays in its order.
    return sorted([*ranked, *added], key=lambda one: -one.score)


def rank_single_leg(name: str, candidates: Iterable[Candidate]) -> list[Candidate]:
    """Return the ranking of one leg alone, with its ranks."""
    return [replace(one, ranks={name: rank}) for rank, one in enumerate(candidates, 1)]


def _normalise(scores: Sequence[float]) -> list[float]:
    """Return scores, best first, on 0 to 1; all 1 where they are equal."""
    if not scores:
        return []
    best, last = scores[0], scores[-1]
    return [(score - last) / (best - last) if best > last else 1.0 for score in scores]


def _merge(known: Candidate, found: Candidate) -> Candidate:
    """Return a candidate that both legs found, in the copy of the first."""
    chunks = known.chunks or found.chunks if found.copy == known.copy else known.chunks
    ranks: Mapping[str, int] = known.ranks | found.ranks
    return replace(known, score=known.score + found.score, chunks=chunks, ranks={**ranks})


def _add_evidence(one: Candidate, evidence: float) -> Candidate:
    """Return a candidate with its own score and its thread's evidence, weighed."""
    thread_score = THREAD_WEIGHT * evidence / (1 + THREAD_WEIGHT)
    score = round(one.score / (1 + THREAD_WEIGHT) + thread_score, 6)
    return replace(one, score=score, thread_score=round(thread_score, 6))
