"""Two rankings into one, and what a thread says for its messages.

Each leg's scores are put on 0 to 1, from its last message to its best. Words weigh between
WORDS_LEAST and WORDS_MOST: the more of the question's weight (rare words weigh more) the best
message of full text holds, the more. A pasted sentence or an identifier is found whole and is
left to the words; a question in other words than the mail's is left to the meaning. Then the
best message of a thread lifts all of them: the thread around a decision is about it too.

How the numbers were chosen, and what else was tried: docs/search.md.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from mail_assets.search.candidates import Candidate

WORDS_LEAST, WORDS_MOST = 0.5, 0.95
#: What the best message of a thread is worth to each of it, beside a message's own score.
THREAD = 1.0
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
    """Return the candidates of both legs by their weighted scores, 1.0 for the best of both.

    A message is shown in the copy that the weightier leg found; chunks of another are dropped.
    """
    legs = (("semantic", mix.semantic, semantic), ("fulltext", mix.fulltext, fulltext))
    fused: dict[str, Candidate] = {}
    for name, weight, candidates in sorted(legs, key=lambda leg: -leg[1]):
        worths = _spread([one.score for one in candidates])
        for rank, (one, worth) in enumerate(zip(candidates, worths, strict=True), 1):
            found = replace(one, score=weight * worth, ranks={name: rank})
            known = fused.get(one.message_id)
            fused[one.message_id] = found if known is None else _both(known, found)
    return sorted(fused.values(), key=_order)


def lifted_threads(ranked: Iterable[Candidate]) -> list[str]:
    """Return the threads of the best candidates, whose other messages are worth a look."""
    threads = dict.fromkeys(one.thread_id for one in ranked if one.thread_id)
    return [*threads][:LIFTED_THREADS]


def lift(ranked: Iterable[Candidate], members: Iterable[Candidate]) -> list[Candidate]:
    """Return candidates and thread members by their own and their thread's best score, 0 to 1.

    `members` have no score of their own and follow those of their thread that have.
    """
    known = {one.message_id: one for one in members}
    known |= {one.message_id: one for one in ranked}
    best: dict[str, float] = {}
    for one in known.values():
        thread = one.thread_id or one.message_id
        best[thread] = max(best.get(thread, 0.0), one.score)
    found = [_lifted(one, best[one.thread_id or one.message_id]) for one in known.values()]
    # Python's sort is stable: members without a score stay in the order of their thread.
    return sorted(found, key=lambda c: (-c.score, not c.ranks, c.message_id if c.ranks else ""))


def by_leg(name: str, candidates: Iterable[Candidate]) -> list[Candidate]:
    """Return the ranking of one leg alone, with its ranks."""
    return [replace(one, ranks={name: rank}) for rank, one in enumerate(candidates, 1)]


def _order(candidate: Candidate) -> tuple[float, str]:
    return -candidate.score, candidate.message_id


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


def _lifted(one: Candidate, best: float) -> Candidate:
    thread_score = THREAD * best / (1 + THREAD)
    score = one.score / (1 + THREAD) + thread_score
    return replace(one, score=round(score, 6), thread_score=round(thread_score, 6))
