"""Two rankings into one, and what a thread says for its messages.

Each leg's scores are put on 0 to 1, from its last message to its best. Words weigh between
WORDS_LEAST and WORDS_MOST: the more of the question's weight (rare words weigh more) the best
message of full text holds, the more. A pasted sentence or an identifier is found whole and is
left to the words; a question in other words than the mail's is left to the meaning. The best of
a thread in each leg lifts all of its messages: the thread around a decision is about it too.

How the numbers were chosen, and what else was tried: docs/search.md.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from mail_assets.search.candidate import Candidate

WORDS_LEAST, WORDS_MOST = 0.5, 0.95
#: What a thread's evidence is worth to each of its messages, beside a message's own score.
THREAD = 3.0
#: Threads whose other messages are brought in, and how many of them all together.
LIFTED_THREADS, LIFTED_MESSAGES = 10, 200


@dataclass(frozen=True)
class Mix:
    """What each leg is worth; the two make 1."""

    semantic: float
    fulltext: float


def mix_of(covered: float) -> Mix:
    """Return the mix for a question of whose weight the best message by words has this share."""
    words = WORDS_LEAST + (WORDS_MOST - WORDS_LEAST) * covered
    return Mix(semantic=1 - words, fulltext=words)


def fuse(semantic: Sequence[Candidate], fulltext: Sequence[Candidate], mix: Mix) -> list[Candidate]:
    """Return the candidates of both legs, best first, their scores 0 to 1.

    A thread's evidence is the worth of its best message by meaning and of its best by words,
    which need not be the same. A message is shown in the copy that the weightier leg found;
    chunks of another are dropped.
    """
    legs = (("semantic", mix.semantic, semantic), ("fulltext", mix.fulltext, fulltext))
    fused: dict[str, Candidate] = {}
    evidence: dict[str, float] = {}
    for name, weight, candidates in sorted(legs, key=lambda leg: -leg[1]):
        worths = _spread([one.score for one in candidates])
        best: dict[str, float] = {}
        for rank, (one, worth) in enumerate(zip(candidates, worths, strict=True), 1):
            found = replace(one, score=weight * worth, ranks={name: rank})
            known = fused.get(one.message_id)
            fused[one.message_id] = found if known is None else _both(known, found)
            best.setdefault(_thread(one), worth)
        for thread, worth in best.items():
            evidence[thread] = evidence.get(thread, 0.0) + weight * worth
    lifted = (_lifted(one, evidence[_thread(one)]) for one in fused.values())
    return sorted(lifted, key=lambda one: (-one.score, one.message_id))


def lifted_threads(ranked: Iterable[Candidate]) -> list[str]:
    """Return the threads of the best candidates, whose other messages are worth a look."""
    threads = dict.fromkeys(one.thread_id for one in ranked if one.thread_id)
    return [*threads][:LIFTED_THREADS]


def joined(ranked: Sequence[Candidate], members: Iterable[Candidate]) -> list[Candidate]:
    """Return candidates and those members of their threads that no leg found, best first.

    These have no score of their own: they follow those of their thread that have, in its order.
    """
    found = {one.message_id for one in ranked}
    threads = {one.thread_id: one.thread_score for one in ranked}
    silent = [
        replace(one, score=threads[one.thread_id], thread_score=threads[one.thread_id])
        for one in members
        if one.message_id not in found
    ]
    # Python's sort is stable: what is equal stays in its order.
    return sorted([*ranked, *silent], key=lambda one: -one.score)


def by_leg(name: str, candidates: Iterable[Candidate]) -> list[Candidate]:
    """Return the ranking of one leg alone, with its ranks."""
    return [replace(one, ranks={name: rank}) for rank, one in enumerate(candidates, 1)]


def _thread(candidate: Candidate) -> str:
    return candidate.thread_id or candidate.message_id


def _spread(scores: Sequence[float]) -> list[float]:
    """Return scores, best first, on 0 to 1; all 1 where they are equal."""
    if not scores:
        return []
    best, last = scores[0], scores[-1]
    return [(score - last) / (best - last) if best > last else 1.0 for score in scores]


def _both(known: Candidate, found: Candidate) -> Candidate:
    chunks = known.chunks or found.chunks if found.copy == known.copy else known.chunks
    ranks: Mapping[str, int] = known.ranks | found.ranks
    return replace(known, score=known.score + found.score, chunks=chunks, ranks={**ranks})


def _lifted(one: Candidate, evidence: float) -> Candidate:
    thread_score = THREAD * evidence / (1 + THREAD)
    score = round(one.score / (1 + THREAD) + thread_score, 6)
    return replace(one, score=score, thread_score=round(thread_score, 6))
