"""Fusion of search with one leg more, on ids alone: fast enough for many ways of many queries.

Messages that say little (`brief` in fusion.py) are ranked as the others here.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from mail_assets.search import fusion
from mail_assets.search.matches import MAX_THREAD_MESSAGES, MAX_THREADS, Candidate


class Found(NamedTuple):
    """A message as a leg finds it; `similarity` is the cosine of its nearest vector."""

    message_id: str
    thread: str
    begins: bool
    similarity: float


class Leg(NamedTuple):
    """Messages, best first, with what the leg says of each, 0 to 1; `own`: not of threads alone."""

    weight: float
    found: Sequence[Found]
    claims: Sequence[float]
    own: bool = True


def semantic_leg(weight: float, found: Iterable[Found], *, own: bool = True) -> Leg:
    """Return the leg of some messages by meaning, without what is below the floor."""
    near = [one for one in found if one.similarity > fusion.FLOOR]
    claims = [(one.similarity - fusion.FLOOR) / (1 - fusion.FLOOR) for one in near]
    return Leg(weight, near, claims, own)


def fulltext_leg(weight: float, candidates: Iterable[Candidate]) -> Leg:
    """Return the leg of words as it was recorded."""
    known = [*candidates]
    found = [Found(one.message_id, one.thread_key, one.begins, one.score) for one in known]
    return Leg(weight, found, [one.score for one in known])


def rank(legs: Sequence[Leg], mix: fusion.Mix, members: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the messages of some legs and of the best threads, best first: see fusion.py.

    A leg that is not a message's own is evidence for threads alone.
    """
    asked = [leg for leg in legs if leg.found]
    alone = len([leg for leg in asked if leg.own]) == 1
    threads, first = (0.0, 0.0) if alone else (mix.threads, mix.first)
    own: dict[str, float] = {}
    evidence: dict[str, float] = {}
    known: dict[str, Found] = {}
    for leg in asked:
        best: dict[str, float] = {}
        for one, score in zip(leg.found, fusion._spread(leg.claims), strict=True):
            best.setdefault(one.thread, score)
            if leg.own:
                known.setdefault(one.message_id, one)
                own[one.message_id] = own.get(one.message_id, 0.0) + leg.weight * score
        for thread, score in best.items():
            evidence[thread] = evidence.get(thread, 0.0) + leg.weight * score
    scored, of_thread = {}, {}
    for message_id, one in known.items():
        begins = (1 + first * one.begins) / (1 + first) / (1 + threads)
        of_thread[one.thread] = begins * threads * evidence[one.thread]
        scored[message_id] = begins * own[message_id] + of_thread[one.thread]
    places = sorted((n, one.thread) for leg in asked for n, one in enumerate(leg.found))
    for thread in [*dict.fromkeys(thread for _, thread in places)][:MAX_THREADS]:
        for message_id in members.get(thread, ())[:MAX_THREAD_MESSAGES]:
            scored.setdefault(message_id, of_thread.get(thread, 0.0))
    return sorted(scored, key=lambda one: -scored[one])
